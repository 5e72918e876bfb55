import { expect, test } from 'vitest'
import { PersonAsked } from '../../src/session/person.ts'
import { busy, forEver, HOUR, never, roundsOf, runSession, works } from '../support/breaking-in.ts'
import { CLAIMED, endsAs, ofType } from '../support/played-session.ts'

const NOBODY = 'No session is running now. Try again in a moment.'
const settle = { settle: (clock: { wait(ms: number): Promise<void> }) => clock.wait(10_000) }

test.each(['interrupt', 'replan leave out the API'] as const)(
  'what comes while the session ends is not promised, and the next session is not held: %s',
  async said => {
    const asked = new PersonAsked(new AbortController().signal)
    const { replies, outcome, events } = await runSession(
      [works],
      [{ on: 'done-accepted', afterMs: 5000, say: [said] }],
      { memory: () => CLAIMED, asked, ...settle },
    )
    expect(replies).toEqual([NOBODY])
    expect(outcome).toEqual({ kind: 'done', verified: false })
    expect(ofType(events, 'replan-asked')).toEqual([])
    expect(asked.isPaused).toBe(false)
  },
)

test('an interruption that comes as the work is done holds no other session, and a pause does', async () => {
  for (const say of [['interrupt'], ['pause'], ['interrupt', 'pause']] as const) {
    const asked = new PersonAsked(new AbortController().signal)
    const { outcome } = await runSession([works], [{ on: 'done-nominated', say }], {
      memory: () => CLAIMED,
      asked,
      ...settle,
    })
    expect(outcome).toEqual({ kind: 'done', verified: false })
    expect(asked.isPaused).toBe(say.some(said => said === 'pause'))
  }
})

test('where no time is left no plan can be changed, that is said, and nothing holds', async () => {
  const asked = new PersonAsked(new AbortController().signal)
  const { replies, outcome, events } = await runSession(
    [forEver, never],
    [{ on: 'winding-down', say: ['replan x', 'interrupt'] }],
    { limits: { rounds: 9, timeMs: HOUR }, asked },
  )
  expect(replies).toContain(
    'The limit of time of s is reached, so its plan can be changed once it is resumed with more.',
  )
  expect(ofType(events, 'replan-asked')).toEqual([])
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(asked.isPaused).toBe(false)
})

test('a change of plan for which the time has run out holds nothing, and is made when the session is resumed', async () => {
  const asked = new PersonAsked(new AbortController().signal)
  const { outcome, events } = await runSession(
    [forEver, busy],
    [{ on: 'turn-started', afterMs: HOUR - 5000, say: ['replan docs first'] }],
    { limits: { rounds: 9, timeMs: HOUR }, asked },
  )
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(asked.isPaused).toBe(false)
  const { inputs, prepared, discarded } = await runSession([works], [], { journal: events, usage: FULL_AT_HALF })
  expect(inputs[0]).toBe('Change the plan:\n\ndocs first')
  expect(prepared - inputs.length - discarded).toBe(0)
  expect(discarded).toBeLessThan(2)
})

const FULL_AT_HALF = { primary: { usedPercent: 50, windowMinutes: 300, resetsAt: null }, secondary: null }

test('a session that is about to stop says so of all that is asked of it, and holds nothing', async () => {
  const asked = new PersonAsked(new AbortController().signal)
  const { replies, outcome, events } = await runSession(
    [forEver, never],
    [{ on: 'turn-started', say: ['stop', 'pause', 'replan x', 'interrupt'] }],
    { asked },
  )
  expect(replies.slice(1)).toEqual([
    's is about to end; codemachine resume continues.',
    's is about to end; its plan can be changed once it is resumed.',
    'Round 1 of s is interrupted, and s ends; codemachine resume continues.',
  ])
  expect(roundsOf(events)).toEqual([[1, 'interrupted', true]])
  expect(outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  expect([asked.isPaused, ofType(events, 'replan-asked').length]).toEqual([false, 0])
})

test('what is said of a wait with a change of plan behind it is what comes to pass', async () => {
  const { replies, events } = await runSession(
    [busy, works],
    [
      { on: 'waiting', say: ['replan x', 'interrupt', 'unpause', 'interrupt', 'retry'] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(replies).toEqual([
    expect.stringContaining('The agent that changes the plan of s is asked once its wait is over'),
    's waits to change its plan, then pauses; codemachine retry ends the wait.',
    's continues after its plan is changed.',
    's holds once its wait is over and its plan is changed; codemachine unpause continues.',
    'The wait is over; the agent that changes the plan of s is asked now.',
    's continues.',
  ])
  expect(events.map(({ type }) => type).indexOf('replanned')).toBeLessThan(
    events.map(({ type }) => type).indexOf('held'),
  )
})

test.each(['stop --now', 'stop'] as const)('a skip does not take back a "%s"', async stop => {
  const asked = new PersonAsked(new AbortController().signal)
  const { replies } = await runSession([forEver], [{ on: 'turn-started', say: ['skip', stop] }], { asked })
  expect(replies).toHaveLength(2)
  expect(asked).toMatchObject({ endedBy: 'stop', ending: { aborted: stop === 'stop --now' } })
  const again = new PersonAsked(new AbortController().signal)
  const { replies: after } = await runSession([forEver], [{ on: 'turn-started', say: ['stop', 'skip'] }], {
    asked: again,
  })
  expect(after[1]).toContain('s ends now, and the run with it')
})

test('a signal that comes after a skip ends the next session too', async () => {
  const signal = new AbortController()
  const asked = new PersonAsked(signal.signal)
  await runSession([forEver], [{ on: 'turn-started', say: ['skip'] }], {
    asked,
    onEvent: ({ type }) => {
      if (type === 'skip-asked') signal.abort('SIGINT')
    },
  })
  expect(asked).toMatchObject({ endedBy: 'SIGINT', ending: { aborted: true }, stopping: { aborted: true } })
})

test('while a session is to hold, no thread is started ahead', async () => {
  const { prepared } = await runSession([works], [{ on: 'held', say: ['stop'] }], {
    limits: { rounds: 5 },
    onEvent: ({ type }, { asked }) => {
      if (type === 'round-started') asked.pause()
    },
  })
  expect(prepared).toBe(1)
})

test('time for which a session was held is no part of a failure that goes on', async () => {
  const { outcome, events } = await runSession(
    [busy, busy, works],
    [
      { on: 'waiting', say: ['pause'] },
      { on: 'held', afterMs: 23.9 * HOUR, say: ['unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(ofType(events, 'waiting')).toHaveLength(2)
})

test('a person who breaks in again and again is not taken for rounds that do not get on', async () => {
  const memory = { ...CLAIMED, tasks: [{ id: 'T1', name: 'x', done: true }] }
  const { outcome } = await runSession(
    [forEver, forEver, forEver, forEver, forEver, forEver, endsAs({ class: 'worked', message: null })],
    [
      { on: 'turn-started', nth: 'each', afterMs: 60_000, say: ['interrupt'] },
      { on: 'held', nth: 'each', say: ['unpause'] },
    ],
    { limits: { rounds: 9 }, memory: () => memory, policy: { stallRounds: 3 } },
  )
  expect(outcome).toEqual({ kind: 'done', verified: false })
})
