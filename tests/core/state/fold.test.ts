import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import { afterRound } from '../../../src/core/rules/after-round.ts'
import { elapsedMs, emptyState, NO_FAILURES, sessionTokens } from '../../../src/core/state/state.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import {
  created,
  ended,
  FIRST_AT,
  fold,
  foldAll,
  ran,
  recorded,
  refused,
  resumed,
  says,
  started,
  turn,
  usage,
  worked,
} from '../../support/session-events.ts'

promise('M3', 'Tokens are counted once per thread, those of sub-agents included')
test('tokens are counted once per thread, from absolute totals, sub-agents included', () => {
  const state = foldAll([
    created(),
    started(1),
    turn(1, 'A'),
    usage(1, 'A', 100),
    usage(1, 'A', 250),
    usage(1, 'sub', 40),
    ended(1, worked),
    started(2),
    turn(2, 'B'),
    usage(2, 'B', 7),
  ])
  expect(sessionTokens(state)).toBe(297)
  expect(state.contextTokens).toBe(7)
})

promise('M26')
test('a full context, of earlier versions too, uses no tokens, and fills the window', () => {
  const none = { input: 0, cachedInput: 0, output: 0, reasoning: 0 }
  const window = { ...none, total: 258_400 }
  const full = { ...usage(1, 'A', 0), total: window, last: window }
  const state = foldAll([created(), started(1), turn(1, 'A'), usage(1, 'A', 120), full, ended(1, worked)])
  expect([sessionTokens(state), state.contextTokens]).toEqual([120, 258_400])
})

test("a sub-agent's context does not pass for that of the round", () => {
  const state = foldAll([created(), started(1), turn(1, 'A'), usage(1, 'A', 100), usage(1, 'sub', 9000)])
  expect(state.contextTokens).toBe(100)
})

test('a round that died counts as a failure and not as a round', () => {
  const state = foldAll([created(), started(1), ended(1, { class: 'crashed', message: 'killed' })])
  expect(state.roundsUsed).toBe(0)
  expect(state.failures).toEqual({
    inARow: 1,
    since: FIRST_AT + 2000,
    idleCrashes: 1,
    refusals: 0,
    silences: 0,
    forbidden: 0,
  })
  expect(
    foldAll([created(), started(1), ended(1, { class: 'crashed', message: '' }), started(1), ended(1, worked)])
      .failures,
  ).toEqual(NO_FAILURES)
})

promise('W20')
test('access that is refused (403) three times in a row needs a person, and what comes between begins the count anew', () => {
  const forbidden: RoundOutcome = { class: 'network', message: 'no', status: 403 }
  const gone: RoundOutcome = { class: 'network', message: 'gone' }
  const after = (...outcomes: RoundOutcome[]) => {
    const state = foldAll([created(), ...outcomes.flatMap(outcome => [started(1), ended(1, outcome)])])
    const step = afterRound(forbidden, state, { now: FIRST_AT, random: 0, maxWaitMs: 3_600_000 })
    return [state.failures.forbidden, step.kind]
  }
  expect(after(forbidden)).toEqual([1, 'wait'])
  expect(after(forbidden, forbidden)).toEqual([2, 'wait'])
  expect(after(forbidden, forbidden, forbidden)).toEqual([3, 'end'])
  expect(after(forbidden, forbidden, gone, forbidden)).toEqual([1, 'wait'])
  expect(after(forbidden, forbidden, worked, forbidden)).toEqual([1, 'wait'])
})

test('what a round has to be told is kept until a round that was told it has counted', () => {
  const events: SessionEvent[] = [
    created(),
    started(1),
    ended(1, worked),
    { type: 'done-nominated', round: 1, by: ['MAIN.md'] },
    { type: 'done-refused', round: 1, reason: 'tree-changed', detail: 'it changed 1 file (x).' },
    { type: 'steered', round: null, text: 'use tabs', delivered: false },
  ]
  const state = foldAll(events)
  expect(state.notices.map(({ text }) => text).join('\n')).toMatch(
    /did not accept the claim that the work is done: it changed 1 file[\s\S]*use tabs/,
  )
  expect(foldAll([...events, started(2), ended(2, { class: 'crashed', message: '' })]).notices).toHaveLength(2)
  expect(foldAll([...events, started(2), ended(2, worked)]).notices).toEqual([])
})

test('text that reached the running turn is told a second time only if that round did not count', () => {
  const steered: SessionEvent = { type: 'steered', round: 1, text: 'use tabs', delivered: true }
  expect(foldAll([created(), started(1), steered, ended(1, worked)]).notices).toEqual([])
  expect(foldAll([created(), started(1), steered, ended(1, { class: 'throttle', message: '' })]).notices).toEqual([
    { from: 'person', text: 'A person says: use tabs' },
  ])
  expect(foldAll([created(), started(1), { type: 'steered', round: 1, text: 'x', delivered: true }]).notices).toEqual(
    [],
  )
})

test('text that reached an agent is told to the next round, too, if that round did not count, and by whom it was heard', () => {
  const to = { agent: 'backend-dev-1' }
  const steered: SessionEvent = { type: 'steered', round: 1, text: 'use tabs', delivered: true, ...to }
  expect(foldAll([created(), started(1), steered, ended(1, worked)]).notices).toEqual([])
  const { notices, personSaid } = foldAll([created(), started(1), steered, ended(1, { class: 'crashed', message: '' })])
  expect(notices[0]).toEqual({
    from: 'person',
    text: 'A person says, to backend-dev-1, an agent of that round: use tabs',
  })
  expect(personSaid).toEqual(['use tabs'])
  // The round is told an answer itself.
  const answer: SessionEvent = { ...steered, answers: 'Q1' }
  expect(foldAll([created(), started(1), answer, ended(1, { class: 'crashed', message: '' })])).toMatchObject({
    notices: [],
    personSaid: [],
  })
})

test('a session that is resumed after a cut goes on where it stood, and the next round is told', () => {
  const state = foldAll([created(), started(1), ended(1, worked), started(2), resumed(9)])
  expect(state).toMatchObject({ roundsUsed: 1, limits: { rounds: 9 }, running: null })
  expect(state.notices).toEqual([{ from: 'codemachine', text: expect.stringMatching(/cut off/) }])
})

const until = new Date(FIRST_AT + 3_600_000).toISOString()
const waiting: SessionEvent = {
  type: 'waiting',
  round: 1,
  reason: 'round-failed',
  cause: { class: 'window', message: 'full' },
  until,
}
const interrupted: SessionEvent = {
  type: 'session-ended',
  outcome: { kind: 'interrupted', by: 'SIGINT' },
  exitCode: 130,
  rounds: 0,
  tokens: 0,
  durationMs: 5000,
}

test('a wait that was cut off or interrupted is still to be waited when the session is resumed', () => {
  const stopped: SessionEvent = { type: 'wait-ended', round: 1, reason: 'stopped' }
  for (const cut of [[], [stopped], [stopped, interrupted]]) {
    expect(foldAll([created(), waiting, ...cut, resumed()]).waiting).toMatchObject({ until: FIRST_AT + 3_600_000 })
  }
  expect(foldAll([created(), waiting, { type: 'wait-ended', round: 1, reason: 'retry' }, resumed()]).waiting).toBeNull()
  const needsPerson: SessionEvent = { ...interrupted, outcome: { kind: 'needs-person', reason: 'x', hint: null } }
  expect(foldAll([created(), waiting, needsPerson, resumed()]).waiting).toBeNull()
})

const replanAsked: SessionEvent = { type: 'replan-asked', text: 'the docs first' }

test('time for which a session was held counts, and none in which nobody worked on it', () => {
  const events = [created(), started(1), { type: 'paused' }, ended(1, worked)] as const
  expect(elapsedMs(foldAll(events), 'running', FIRST_AT + 60_000)).toBe(60_000)
  const goesOn = foldAll([...events, { type: 'unpaused' }])
  expect(elapsedMs(goesOn, 'running', FIRST_AT + 60_000)).toBe(60_000)
  expect(foldAll([...events, resumed()]).workedMs).toBe(3000)
})

test('a change of plan is asked for until it is over, also when the session was cut off and resumed', () => {
  const more: SessionEvent = { type: 'replan-asked', text: 'in French' }
  expect(foldAll([created(), replanAsked, more]).replan).toBe('the docs first\n\nin French')
  expect(foldAll([created(), replanAsked, started(1), resumed()])).toMatchObject({
    replan: 'the docs first',
    pausedAt: null,
  })
  const over = foldAll([created(), replanAsked, started(1), { type: 'replanned', round: 1, files: [] }])
  expect(over).toMatchObject({ replan: null, notices: [] })
})

test('a change of plan that came to its end forgets failures before it, though it does not count', () => {
  const failed = [created(), started(1), ended(1, { class: 'throttle', message: null })] as const
  expect(foldAll([...failed, started(1), ended(1, worked, { counts: false })]).failures).toEqual(NO_FAILURES)
})

test('time for which the machine slept is neither work nor part of a failure that goes on', () => {
  const hour = 3_600_000
  const failed: RoundOutcome = { class: 'network', message: null }
  const before = [created(), started(1), ended(1, failed)] as const
  const slept = foldAll([...before, { type: 'machine-slept', round: null, ms: 30 * hour }])
  expect(slept.failures.since).toBe(FIRST_AT + 2000 + 30 * hour)
  expect(elapsedMs(slept, 'running', FIRST_AT + 31 * hour)).toBe(hour)
  const wait: SessionEvent = { ...waiting, until: new Date(FIRST_AT).toISOString() }
  const at = new Date(FIRST_AT + 30 * hour).toISOString()
  const woken = fold(foldAll([...before, wait]), {
    v: 1,
    at,
    session: 's',
    type: 'wait-ended',
    round: 1,
    reason: 'over',
  })
  expect(woken.failures.since).toBe(FIRST_AT + 2000 + 30 * hour)
})

test('four cuts in a row are told of once', () => {
  const cut = [started(1), resumed()]
  expect(foldAll([created(), ...cut, ...cut, ...cut, ...cut]).notices).toHaveLength(1)
})

test('crashes are in a row only without another failure between them', () => {
  const fails = (end: RoundOutcome['class']) => [started(1), ended(1, { class: end, message: null })]
  expect(foldAll([created(), ...fails('crashed'), ...fails('network'), ...fails('crashed')]).failures).toMatchObject({
    inARow: 3,
    idleCrashes: 1,
  })
})

test('that codex waits for the network is over with the first thing that comes from the model', () => {
  const away: SessionEvent = {
    type: 'error',
    round: 1,
    message: 'Reconnecting... waiting for network',
    details: null,
    willRetry: true,
    waitsForNetwork: true,
  }
  const offline = [created(), started(1), turn(1, 'A'), away, away]
  expect(foldAll(offline).offlineSince).toBe(FIRST_AT + 3000)
  expect(foldAll([...offline, says(1, 'Back.')]).offlineSince).toBeNull()
  // What was waited for within the round counts as failing, too.
  const broken: RoundOutcome = { class: 'network', message: 'The network is away.' }
  expect(foldAll([...offline, ended(1, broken)]).failures.since).toBe(FIRST_AT + 3000)
  expect(foldAll([...offline, says(1, 'Back.'), ended(1, broken)]).failures.since).toBe(FIRST_AT + 6000)
})

test('what hung is told once, however often it hung', () => {
  const silent: RoundOutcome = { class: 'silent', message: 'Nothing came from codex for 6 minutes.' }
  const state = foldAll([created(), started(1), ended(1, silent), started(1), ended(1, silent)])
  expect(state.notices).toEqual([
    { from: 'codemachine', text: expect.stringContaining('Nothing came from codex for 6 minutes.') },
  ])
})

const same = { treeBefore: 'a', treeAfter: 'a', changed: [], changedCount: 0 }
const idle = (round: number, outcome = worked, rest = {}) => [
  started(round),
  ended(round, outcome, { ...same, ...rest }),
]

test('rounds that come out the same are counted, also when two results take turns', () => {
  expect(foldAll([created(), ...idle(1), ...idle(2), ...idle(3)]).stall.idleRounds).toBe(3)
  const toAndFro = [1, 2, 3, 4].flatMap(round => idle(round, worked, { treeAfter: `${round % 2}` }))
  expect(foldAll([created(), ...toAndFro]).stall.idleRounds).toBe(3)
  expect(foldAll([created(), ...idle(1), ...idle(2), ...idle(3, worked, { memory: 'n' })]).stall.idleRounds).toBe(1)
})

test('a round is not idle that failed, was interrupted, was talked to, or waited on a command that takes long', () => {
  const before = [created(), ...idle(1), ...idle(2)]
  const minutes = (n: number) => n * 60_000
  const long = [started(3), ran(3, minutes(6)), ended(3, worked, { ...same, durationMs: minutes(8) })]
  const short = [started(3), ran(3, minutes(4)), ended(3, worked, { ...same, durationMs: minutes(5) })]
  const busyOtherwise = [started(3), ran(3, minutes(6)), ended(3, worked, { ...same, durationMs: minutes(20) })]
  const talkedTo: SessionEvent = { type: 'steered', round: 3, text: 'wait', delivered: true }
  const count = (events: readonly SessionEvent[]) => foldAll([...before, ...events]).stall.idleRounds
  expect(count(idle(3, { class: 'network', message: null }))).toBe(2)
  expect(count(idle(3, { class: 'interrupted', message: null }))).toBe(2)
  expect(count([started(3), talkedTo, ended(3, worked, same)])).toBe(2)
  expect(count(long)).toBe(2)
  expect(count(short)).toBe(3)
  expect(count(busyOtherwise)).toBe(3)
})

test('the same refusal counts only in rounds that follow each other', () => {
  const round = (n: number) => [started(n), ended(n, worked, { treeAfter: String(n) })]
  const again = foldAll([created(), ...round(1), refused(1, 'x'), ...round(2), refused(2, 'x')])
  expect(again.stall.sameRefusals).toBe(2)
  const apart = foldAll([created(), ...round(1), refused(1, 'x'), ...round(2), ...round(3), refused(3, 'x')])
  expect(apart.stall.sameRefusals).toBe(1)
  const other = foldAll([created(), ...round(1), refused(1, 'x'), ...round(2), refused(2, 'y')])
  expect(other.stall.sameRefusals).toBe(1)
})

const anyEvent: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.constant(created()),
  fc.nat(5).map(started),
  fc.tuple(fc.nat(5), fc.constantFrom('A', 'B', '__proto__')).map(([round, thread]) => turn(round, thread)),
  fc.tuple(fc.nat(5), fc.constantFrom('A', 'B', '__proto__'), fc.nat()).map(args => usage(...args)),
  fc
    .tuple(fc.nat(5), fc.constantFrom('worked', 'crashed', 'network', 'interrupted', 'window'))
    .map(([round, end]) => ended(round, { class: end, message: null } as RoundOutcome)),
  fc.record({ type: fc.constant('warning' as const), round: fc.constant(null), message: fc.string() }),
  fc.constantFrom<SessionEvent[]>(
    waiting,
    interrupted,
    { type: 'paused' },
    { type: 'unpaused' },
    { type: 'wait-ended', round: 1, reason: 'over' },
    { type: 'winding-down', round: 1, limit: 'time', graceMs: 1 },
    { type: 'stuck', round: 1, rounds: 3, why: 'nothing-changed', remedy: 'another-way' },
    refused(1, 'x'),
    resumed(),
  ),
  fc.constant<SessionEvent>({ type: 'done-nominated', round: 1, by: ['tasks.json'] }),
  fc.constant<SessionEvent>({ type: 'done-accepted', round: 1, tree: 'b' }),
  fc.constant<SessionEvent>({
    type: 'session-ended',
    outcome: { kind: 'done', verified: false },
    exitCode: 0,
    rounds: 1,
    tokens: 1,
    durationMs: 1,
  }),
)

promise('J3', 'State is a fold: any events in any order fold, and in two parts to the same')
test('any events in any order fold, and folding in two parts gives the same', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.nat(40), (events, cut) => {
      const all = recorded(events)
      const whole = all.reduce(fold, emptyState('s'))
      const parts = all.slice(cut).reduce(fold, all.slice(0, cut).reduce(fold, emptyState('s')))
      expect(parts).toEqual(whole)
      expect(whole.events).toBe(events.length)
      expect(whole.roundsUsed).toBeGreaterThanOrEqual(0)
    }),
  )
})

test('the model in use is what codex said last, and is kept where a version of codex does not say it', () => {
  const says = (model: string, effort: string | null): SessionEvent => ({
    type: 'turn-started',
    round: 1,
    thread: 'A',
    turn: 'A-turn',
    model,
    effort,
  })
  expect(foldAll([created(), started(1), turn(1, 'A')])).toMatchObject({ modelInUse: null, effortInUse: null })
  const known = [created(), started(1), says('gpt-6', 'high'), turn(1, 'B')]
  expect(foldAll(known)).toMatchObject({ model: null, modelInUse: 'gpt-6', effortInUse: 'high' })
  expect(foldAll([...known, ended(1, worked), resumed()])).toMatchObject({ modelInUse: 'gpt-6', effortInUse: 'high' })
  const rerouted: SessionEvent = { type: 'model-rerouted', round: 1, from: 'gpt-6', to: 'gpt-6-mini', reason: 'busy' }
  expect(foldAll([...known, rerouted])).toMatchObject({ modelInUse: 'gpt-6-mini', effortInUse: 'high' })
  expect(foldAll([...known, says('gpt-5', null)])).toMatchObject({ modelInUse: 'gpt-5', effortInUse: null })
})

promise('L16')
test('of commands that end with their round the next one is told, ten at the most, but not those of one that does not work', () => {
  const command = (n: number) => ({
    kind: 'command' as const,
    id: `c${n}`,
    command: `make part${n}\n  and more`,
    directory: '/',
    output: '',
    exitCode: null,
    durationMs: null,
    status: 'running' as const,
    cutOffMs: 5,
  })
  const cutOff = (n: number): SessionEvent => ({ type: 'item-completed', round: 1, item: command(n) })
  const many = Array.from({ length: 12 }, (_, n) => cutOff(n))
  const state = foldAll([created(), started(1), turn(1, 'A'), ...many, cutOff(0), ended(1, worked)])
  expect(state.notices).toHaveLength(10)
  expect(state.notices[0]?.text).toContain(
    'so codemachine ended it: `make part0 and more`. Its output may be incomplete.',
  )
  const after = foldAll([
    created(),
    started(1),
    turn(1, 'A'),
    cutOff(1),
    ended(1, worked),
    started(2),
    ended(2, worked),
  ])
  expect(after.notices).toEqual([])
  expect(foldAll([created(), { ...sampleEvents['review-started'] }, cutOff(1)]).notices).toEqual([])
})
