import { expect, test } from 'vitest'
import type { PersonAsked } from '../../src/session/person.ts'
import { busy, type Cue, forEver, HOUR, never, roundsOf, runSession, works, written } from '../support/breaking-in.ts'
import { CLAIMED, endsAs, ofType, type Play, UNCLAIMED } from '../support/played-session.ts'
import { worked } from '../support/session-events.ts'

test('an interrupted round counts, so does the time for which the session holds, and the next round is told', async () => {
  const { events, inputs, outcome } = await runSession(
    [forEver, works],
    [
      { on: 'turn-started', afterMs: 60_000, say: ['interrupt'] },
      { on: 'held', afterMs: 300_000, say: ['steer use tabs', 'unpause'] },
    ],
    { limits: { rounds: 2, timeMs: HOUR } },
  )
  expect(roundsOf(events)).toEqual([
    [1, 'interrupted', true],
    [2, 'worked', true],
  ])
  expect(inputs[1]).toContain('A person interrupted the last round')
  expect(inputs[1]).toContain('A person says: use tabs')
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', durationMs: 361_000 })
})

test('what an interrupted round had been told, before it and in it, is told again', async () => {
  const { inputs } = await runSession(
    [forEver, works],
    [
      { on: 'session-created', say: [] },
      { on: 'turn-started', say: ['steer mind the gap', 'interrupt'] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 2 }, onBegin: ({ runner }) => void runner.steer('use tabs') },
  )
  expect(inputs[0]).toContain('use tabs')
  expect(inputs[1]).toContain('use tabs')
  expect(inputs[1]).toContain('mind the gap')
})

test('a session that is held already says so, and one that waits for a limit holds after that', async () => {
  const busy = endsAs({ class: 'throttle', message: 'slow down' })
  const { events, replies, codes } = await runSession(
    [busy, works],
    [
      { on: 'waiting', say: ['interrupt'] },
      { on: 'held', say: ['interrupt', 'unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(replies[0]).toContain('once its wait is over')
  expect(replies[1]).toContain('is paused already')
  expect(codes).toEqual(['done', 'already-paused', 'done'])
  const order = ['waiting', 'interrupt-asked', 'wait-ended', 'held', 'unpaused'] as const
  const types = events.map(({ type }) => type)
  expect(order.map(type => types.indexOf(type))).toEqual(
    order.map(type => types.indexOf(type)).toSorted((a, b) => a - b),
  )
  expect(types).toEqual(expect.arrayContaining([...order]))
})

test('retry says that the part of the usage limit which may be used is passed over, only where that was waited for', async () => {
  const uses: Play = ({ run, clock }) => {
    const primary = { usedPercent: 95, windowMinutes: 300, resetsAt: clock.now() + HOUR }
    run.onEvent({ type: 'limits', primary, secondary: null })
    return worked
  }
  const options = { policy: { maxUsage: 90 }, limits: { rounds: 2 } }
  const share = await runSession([uses, works], [{ on: 'waiting', say: ['retry'] }], options)
  expect(share.replies).toEqual([
    expect.stringMatching(/^The wait is over; round 2 of s starts\. --max-usage has no effect until \d\d:\d\d\.$/),
  ])
  const failed = await runSession([busy, works], [{ on: 'waiting', say: ['retry', 'retry'] }], {
    limits: { rounds: 1 },
  })
  expect(failed.replies[0]).toBe('The wait is over; round 1 of s starts.')
  expect(failed.codes).toEqual(['done', 'not-waiting'])
})

test('a skipped session ends without its round being counted, also while it holds or waits', async () => {
  for (const cues of [
    [{ on: 'turn-started', say: ['skip'] }],
    [
      { on: 'turn-started', say: ['interrupt'] },
      { on: 'held', say: ['skip'] },
    ],
  ] satisfies Cue[][]) {
    const { outcome, events, replies } = await runSession([forEver, never], cues)
    expect(outcome).toEqual({ kind: 'interrupted', by: 'skip' })
    expect(events.at(-1)).toMatchObject({ exitCode: 130, rounds: cues.length - 1 })
    expect(replies.at(-1)).toContain('the queue is empty')
  }
  const busy = endsAs({ class: 'throttle', message: 'slow down' })
  const waited = await runSession([busy, never], [{ on: 'waiting', say: ['skip'] }])
  expect(waited.outcome).toEqual({ kind: 'interrupted', by: 'skip' })
})

test.each([
  [['pause', 'skip'], null],
  [['stop', 'skip'], 'stop'],
  [['skip', 'stop'], 'stop'],
  [['interrupt', 'skip'], null],
] as const)('after %s the next session is not paused, and ends by: %s', async (say, endedBy) => {
  let asked: PersonAsked | null = null
  const { outcome } = await runSession([forEver], [{ on: 'turn-started', say }], {
    onBegin: playing => {
      asked = playing.asked
    },
  })
  expect(outcome).toEqual({ kind: 'interrupted', by: 'skip' })
  expect(asked).toMatchObject({
    isPaused: false,
    endedBy,
    ending: { aborted: false },
    stopping: { aborted: endedBy !== null },
  })
})

test('a change of plan interrupts the round, runs while the session holds, does not count, and can be asked for again', async () => {
  const plans = ['the plan\n', 'the plan\n', 'the other plan\n', 'the third plan\n']
  const { events, inputs, outcome } = await runSession(
    [forEver, works, works, works],
    [
      { on: 'turn-started', say: ['replan do the docs first'] },
      { on: 'held', say: ['replan and leave out the API'] },
      { on: 'held', nth: 2, afterMs: 300_000, say: ['unpause'] },
    ],
    { limits: { rounds: 2, timeMs: HOUR / 2 }, memory: rounds => written(plans[Math.min(rounds, 3)] ?? '') },
  )
  expect(roundsOf(events)).toEqual([
    [1, 'interrupted', true],
    [2, 'worked', false],
    [2, 'worked', false],
    [2, 'worked', true],
  ])
  expect(inputs[1]).toBe('Change the plan:\n\ndo the docs first')
  expect(inputs[2]).toBe('Change the plan:\n\nand leave out the API')
  expect(inputs[3]).toContain('A person had the plan changed.')
  expect(ofType(events, 'replanned')).toMatchObject([
    {
      round: 2,
      files: [{ file: 'MAIN.md', diff: '--- MAIN.md\n+++ MAIN.md\n@@ -1,1 +1,1 @@\n-the plan\n+the other plan\n' }],
    },
    { files: [{ file: 'MAIN.md', diff: expect.stringContaining('-the other plan\n+the third plan\n') }] },
  ])
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
})

test('a change of plan that failed is tried again, and shown as one; it needs no round that is left', async () => {
  const plans = ['old\n', 'old\n', 'half\n', 'new\n']
  const { events, inputs } = await runSession(
    [forEver, endsAs({ class: 'throttle', message: 'slow down' }), works],
    [
      { on: 'turn-started', say: ['replan turn it round'] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 1 }, memory: rounds => written(plans[Math.min(rounds, 3)] ?? '') },
  )
  expect(roundsOf(events)).toEqual([
    [1, 'interrupted', true],
    [2, 'throttle', false],
    [2, 'worked', false],
  ])
  expect(inputs[2]).toBe(inputs[1])
  expect(ofType(events, 'replanned')).toMatchObject([{ files: [{ diff: expect.stringContaining('-old\n+new\n') }] }])
  expect(events.at(-1)).toMatchObject({ outcome: { kind: 'limit' }, rounds: 1 })
})

test('what is asked for while the plan is being changed is one change with that', async () => {
  const { events, inputs } = await runSession(
    [forEver, forEver, works],
    [
      { on: 'turn-started', say: ['replan the docs first'] },
      { on: 'turn-started', nth: 2, say: ['replan in French'] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 1 } },
  )
  expect(inputs[2]).toBe('Change the plan:\n\nthe docs first\n\nin French')
  expect(ofType(events, 'replanned')).toMatchObject([{ files: [] }])
})

test.each([
  ['refused', endsAs({ class: 'refused', message: 'no' }), [] as const],
  ['interrupted by the person', forEver, ['interrupt'] as const],
])('a change of plan that was %s is over, and the session holds', async (_, play, say) => {
  const { events, inputs } = await runSession(
    [forEver, play, works],
    [
      { on: 'turn-started', say: ['replan the docs first'] },
      { on: 'turn-started', nth: 2, say },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 2 } },
  )
  expect([ofType(events, 'replanned').length, inputs.length]).toEqual([1, 3])
  expect(roundsOf(events).at(-1)).toEqual([2, 'worked', true])
  const replanned = events.findIndex(({ type }) => type === 'replanned')
  expect(events.findIndex(({ type }) => type === 'held')).toBeGreaterThan(replanned)
})

test('no claim is judged of a change of plan, and the next round does not inherit it', async () => {
  const withdrawnAfter: number[] = []
  const { events } = await runSession(
    [forEver, works, works],
    [
      { on: 'turn-started', say: ['replan call it done'] },
      { on: 'held', say: ['unpause'] },
    ],
    {
      limits: { rounds: 2 },
      memory: rounds => (rounds === 2 ? { ...CLAIMED, tasks: [{ id: 'T1', name: 'x', done: true }] } : UNCLAIMED),
      onWithdraw: rounds => withdrawnAfter.push(rounds),
    },
  )
  expect(withdrawnAfter.at(-1)).toBe(2)
  expect(ofType(events, 'done-nominated')).toEqual([])
})

test('a session that was cut off in a change of plan makes it first when it is resumed, and then goes on by itself', async () => {
  const first = await runSession(
    [forEver, works],
    [
      { on: 'turn-started', say: ['replan the docs first'] },
      { on: 'held', say: ['unpause'] },
    ],
    { limits: { rounds: 2 } },
  )
  const second = first.events.findIndex(
    ({ type, ...of }) => type === 'round-started' && 'round' in of && of.round === 2,
  )
  const cut = first.events.slice(0, second + 1)
  const { inputs, events } = await runSession([works], [], { journal: cut })
  expect(inputs[0]).toBe('Change the plan:\n\nthe docs first')
  expect(roundsOf(events).slice(0, 2)).toEqual([
    [2, 'worked', false],
    [2, 'worked', true],
  ])
  expect(ofType(events, 'held')).toEqual([])
})

test('what is said to a session that a person has just ended is not taken for heard', async () => {
  const replies: string[] = []
  const { outcome, events } = await runSession([works], [], {
    limits: { rounds: 2 },
    onBegin: ({ asked, runner }) => {
      asked.skip()
      void runner.steer('use tabs').then(reply => replies.push(reply))
    },
  })
  expect(outcome).toEqual({ kind: 'interrupted', by: 'skip' })
  expect(replies).toEqual(['over'])
  expect(ofType(events, 'steered')).toEqual([])
})
