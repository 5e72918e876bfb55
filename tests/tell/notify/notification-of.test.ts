import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import type { RoundOutcome, SessionOutcome } from '../../../src/core/events/outcome.ts'
import { notificationOf, sampleNotification } from '../../../src/tell/notify/notification.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { AT, ended, needsPerson, recorded, roundEnded, state, stuck, waiting } from './samples.ts'

const head = {
  v: 1,
  at: AT,
  session: '20261120_1',
  host: 'tower',
  directory: '/home/ann/parser',
  goal: 'Port the parser. Keep the tests green.',
}
const GOAL = 'Goal: Port the parser. Keep the tests green.'

promise('O8', 'A person is told how a session ended, and of what needs them')
test('a person is told how a session ended, and what it took', () => {
  expect(notificationOf(ended, state)).toEqual({
    ...head,
    event: 'ended',
    title: 'codemachine in parser: done, gates pass',
    message: `Done, gates pass. 3 rounds, 2 h 5 min, 45.2k tokens. ${GOAL}`,
    outcome: { kind: 'done', verified: true },
    exitCode: 0,
    rounds: 3,
    tokens: 45_210,
    durationMs: 7_500_000,
    questions: 0,
  })
})

test('what it has cost is told where there are prices, with the tokens that have none', () => {
  const prices = [{ model: 'gpt-6', in: 1, cached: 1, out: 1 }]
  const told = (unpriced: number) => notificationOf(ended, { ...state, prices, cost: { amount: 3.2, unpriced } })
  expect(told(0)).toMatchObject({
    cost: { amount: 3.2, unpriced: 0 },
    message: `Done, gates pass. 3 rounds, 2 h 5 min, 45.2k tokens, cost 3.20. ${GOAL}`,
  })
  expect(told(900)?.message).toContain(', cost 3.20, without 900 tokens that have no price. Goal')
})

test('questions that were asked are counted at the end', () => {
  const told = (questions: number) => notificationOf(ended, { ...state, questions })
  expect(told(2)).toMatchObject({
    questions: 2,
    message: `Done, gates pass. 3 rounds, 2 h 5 min, 45.2k tokens. It asked 2 questions. ${GOAL}`,
  })
  expect(told(1)?.message).toContain(' It asked 1 question. ')
})

test('a session that ends for want of a person says what to do', () => {
  expect(notificationOf(needsPerson, state)).toMatchObject({
    event: 'needs-person',
    title: 'codemachine in parser: needs a person',
    message: `codex is not logged in. Run codex login. 0 rounds, 1 s, 0 tokens. ${GOAL}`,
    exitCode: 4,
  })
})

const LOOK =
  'Find the cause with codemachine logs. Remove it, or write in MAIN.md what the agent should try; then codemachine resume.'

test.each<[SessionOutcome, string, string]>([
  [{ kind: 'done', verified: false }, 'done, not verified', 'Done, not verified: no gates are configured.'],
  [{ kind: 'limit', limit: 'time' }, 'limit reached', 'Limit reached: the time is used up.'],
  [
    { kind: 'stalled', rounds: 3, why: 'same-refusal' },
    'stalled',
    `Stalled: the same claim was refused 3 times, and nothing that codemachine tried helped. ${LOOK}`,
  ],
  [{ kind: 'interrupted', by: 'SIGHUP' }, 'interrupted', 'Interrupted (its terminal was closed).'],
  [{ kind: 'interrupted', by: 'stop' }, 'stopped', 'Stopped by a person.'],
  [{ kind: 'interrupted', by: 'skip' }, 'skipped', 'Skipped by a person.'],
])('every outcome has its words: %j', (outcome, title, message) => {
  const told = notificationOf(
    recorded({ type: 'session-ended', outcome, exitCode: 3, rounds: 1, tokens: 1_250_000, durationMs: 60_000 }),
    state,
  )
  expect(told).toMatchObject({ event: 'ended', title: `codemachine in parser: ${title}`, outcome })
  expect(told?.message).toBe(`${message} 1 round, 1 min, 1.3M tokens. ${GOAL}`)
})

test('a wait is told of when it is longer than half an hour', () => {
  expect(notificationOf(waiting(30), state)).toBeNull()
  expect(notificationOf(waiting(31), state)).toEqual({
    ...head,
    event: 'waiting',
    title: 'codemachine in parser: waiting until 2026-11-21 01:31 UTC',
    message: `The session continues in 31 min (usage limit: usage limit reached). ${GOAL}`,
    round: 2,
    until: '2026-11-21T01:31:00.000Z',
    cause: { class: 'window', message: 'usage limit reached' },
  })
  const refused = { ...waiting(31), cause: { class: 'network', message: null, status: 403 } } as const
  expect(notificationOf(refused, state)?.message).toContain('(the server refused access (403))')
})

promise('W43', 'Where the code goes to a remote model because a provider is away, a person is notified')
test('so is a session that is stuck or paused, and the end of a round', () => {
  for (const [how, then] of [
    ['goes-on', 'continues by itself at 2026-11-21 01:30 UTC.'],
    ['needs-person', 'ends at 2026-11-21 01:30 UTC.'],
  ] as const) {
    const until = '2026-11-21T01:30:00.000Z'
    expect(notificationOf(recorded({ type: 'hold-until', until, how }), state)).toEqual({
      ...head,
      event: 'paused',
      title: 'codemachine in parser: paused',
      message: `The session is paused. To continue, type: codemachine unpause. Without that, it ${then} ${GOAL}`,
      until,
      how,
    })
  }
  const reason = "The provider local does not answer. Codex's default model works in its place."
  expect(notificationOf({ ...stuck, type: 'warning', round: null, message: reason, remote: 'local' }, state)).toEqual({
    ...head,
    event: 'needs-person',
    about: 'remote',
    title: 'codemachine in parser: local does not answer, so a remote model continues and gets your code',
    message: expect.stringContaining(`${reason} To stop that, type: codemachine stop --now.`),
    provider: 'local',
    reason,
  })
  expect(notificationOf({ ...stuck, type: 'warning', round: null, message: reason }, state)).toBeNull()
  expect(notificationOf(stuck, state)).toEqual({
    ...head,
    event: 'stuck',
    title: 'codemachine in parser: stuck',
    message: `No progress in 3 rounds. The next round is told to try another approach. ${GOAL}`,
    round: 5,
    rounds: 3,
    why: 'nothing-changed',
    remedy: 'another-way',
  })
  expect(notificationOf(roundEnded, state)).toEqual({
    ...head,
    event: 'round-ended',
    title: 'codemachine in parser: round 2 ended',
    message: `worked; 3 min 12 s, 950 tokens, 1 file changed. ${GOAL}`,
    round: 2,
    roundOutcome: { class: 'worked', message: null },
    counts: true,
    durationMs: 192_000,
    tokens: 950,
    changedCount: 1,
  })
})

test('a change of engine is told with both engines and the cause', () => {
  const change = { type: 'engine-changed', round: 7, from: 'codex', to: 'claude', isUsual: false } as const
  const event = recorded({ ...change, until: '2026-11-21T06:00:00.000Z', why: 'The usage window is full.' })
  expect(notificationOf(event, state)).toMatchObject({
    event: 'waiting',
    title: 'codemachine in parser: claude continues instead of codex',
    message: `The usage window is full. ${GOAL}`,
  })
})

test('nothing else is told', () => {
  const told = Object.values<SessionEvent>(sampleEvents)
    .filter(event => notificationOf(recorded(event), state) !== null)
    .map(event => event.type)
  expect(told.sort()).toEqual(['engine-changed', 'hold-until', 'round-ended', 'session-ended', 'stuck', 'waiting'])
})

test('whatever an agent or codex says, what is shown is one line that steers nothing', () => {
  fc.assert(
    fc.property(hostileEvent, hostileText, hostileText, (event, goal, directory) => {
      const told = notificationOf(event, { ...state, goal, directory })
      if (told === null) return
      for (const line of [told.title, told.message, told.goal]) {
        expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
        expect(line.isWellFormed()).toBe(true)
      }
      expect([told.title.length <= 120, told.message.length <= 1000, told.goal.length <= 500]).not.toContain(false)
      const json = JSON.stringify(told)
      expect(json).not.toMatch(/\n/)
      expect(JSON.parse(json)).toEqual(told)
      expect(json.length).toBeLessThan(40_000)
    }),
  )
})

test('texts of others are cut', () => {
  const long = 'x'.repeat(100_000)
  for (const event of [
    { ...needsPerson, outcome: { kind: 'needs-person', reason: long, hint: { do: 'say', text: long } } },
    {
      ...needsPerson,
      outcome: { kind: 'needs-person', reason: '', hint: { do: 'mend-plan', files: [long], more: false } },
    },
    { ...waiting(60), cause: { class: 'network', message: long } },
    { ...roundEnded, outcome: { class: 'refused', message: long } },
  ])
    expect(JSON.stringify(notificationOf(event as Recorded, { ...state, goal: long })).length).toBeLessThan(8000)
})

test('the text of a test says that it is one', () => {
  expect(sampleNotification(AT, 'tower', '/')).toMatchObject({ event: 'test', title: 'codemachine in /: a test' })
})

const hostileText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('\x1b', '\x07', '\n', '\u009c', '\u2028', '\u202e', '\ud800', '😀', 'a'),
    maxLength: 40,
  }),
  fc.constantFrom('a\n'.repeat(4000), '😀'.repeat(3000), ' '.repeat(5000), '\x1b]9;4;1;50\x07'),
)

const roundOutcome: fc.Arbitrary<RoundOutcome> = fc.record({
  class: fc.constantFrom('worked', 'network', 'window'),
  message: fc.option(hostileText),
})

const sessionOutcome: fc.Arbitrary<SessionOutcome> = fc.oneof(
  fc.record({
    kind: fc.constant('needs-person' as const),
    reason: hostileText,
    hint: fc.option(
      fc.oneof(
        fc.record({ do: fc.constant('say' as const), text: hostileText }),
        fc.record({ do: fc.constant('mend-plan' as const), files: fc.array(hostileText), more: fc.boolean() }),
      ),
    ),
  }),
  fc.record({ kind: fc.constant('done' as const), verified: fc.boolean() }),
)

const hostileEvent: fc.Arbitrary<Recorded> = fc
  .oneof(
    sessionOutcome.map(outcome => ({ ...ended, outcome })),
    fc
      .record({ cause: roundOutcome, until: fc.oneof(hostileText, fc.constant(nextDay())) })
      .map(more => ({ ...waiting(60), ...more })),
    roundOutcome.map(outcome => ({ ...roundEnded, outcome })),
  )
  .map(event => event as Recorded)

function nextDay(): string {
  return new Date(Date.parse(AT) + 86_400_000).toISOString()
}
