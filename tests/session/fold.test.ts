import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../src/session/events.ts'
import { countsAsRound } from '../../src/session/outcome.ts'
import { emptyState, fold, type SessionState, sessionTokens } from '../../src/session/state.ts'

const counts = (total: number) => ({ input: total, cachedInput: 0, output: 0, reasoning: 0, total })

function recorded(events: readonly SessionEvent[]): Recorded[] {
  return events.map((event, i) => ({
    v: 1,
    at: new Date(1_795_000_000_000 + i * 1000).toISOString(),
    session: '20261120_1',
    ...event,
  }))
}

function foldAll(events: readonly SessionEvent[]): SessionState {
  return recorded(events).reduce(fold, emptyState('20261120_1'))
}

const created: SessionEvent = {
  type: 'session-created',
  goal: 'build X',
  template: 'goal',
  directory: '/work',
  limits: { rounds: 3 },
  sandbox: 'workspace-write',
  network: false,
  overrides: [],
  model: null,
  effort: null,
  queued: null,
  codemachine: '0.1.0',
}

const started = (round: number): SessionEvent => ({
  type: 'round-started',
  round,
  agent: 'goal-worker',
  engine: 'codex',
  codex: '0.169.0',
  model: null,
  input: 'Go on.',
})

const turn = (round: number, thread: string): SessionEvent => ({
  type: 'turn-started',
  round,
  thread,
  turn: `${thread}-turn`,
})

const usage = (round: number, thread: string, total: number): SessionEvent => ({
  type: 'usage',
  round,
  thread,
  total: counts(total),
  last: counts(total),
  contextWindow: 258_400,
})

type EndedRoundEvent = Extract<SessionEvent, { type: 'round-ended' }>

const ended = (round: number, outcome: EndedRoundEvent['outcome']): SessionEvent => ({
  type: 'round-ended',
  round,
  outcome,
  counts: countsAsRound(outcome.class),
  durationMs: 1000,
  tokens: null,
  treeBefore: 'a',
  treeAfter: 'b',
  changed: ['x'],
  changedCount: 1,
})

const worked = { class: 'worked', message: null } as const

test('tokens are counted once per thread, from absolute totals, sub-agents included', () => {
  const state = foldAll([
    created,
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

test("a sub-agent's context does not pass for that of the round", () => {
  const state = foldAll([created, started(1), turn(1, 'A'), usage(1, 'A', 100), usage(1, 'sub', 9000)])
  expect(state.contextTokens).toBe(100)
})

test('a round that died counts as a failure and not as a round', () => {
  const state = foldAll([created, started(1), ended(1, { class: 'crashed', message: 'killed' })])
  expect(state.roundsUsed).toBe(0)
  expect(state.failuresInARow).toBe(1)
  expect(
    foldAll([created, started(1), ended(1, { class: 'crashed', message: '' }), started(1), ended(1, worked)])
      .failuresInARow,
  ).toBe(0)
})

test('what a round has to be told is kept until a round that was told it has counted', () => {
  const events: SessionEvent[] = [
    created,
    started(1),
    ended(1, worked),
    { type: 'done-nominated', round: 1, by: ['MAIN.md'] },
    { type: 'done-refused', round: 1, reason: 'tree-changed', detail: 'it changed 1 file (x).' },
    { type: 'steered', round: null, text: 'use tabs', delivered: false },
  ]
  const state = foldAll(events)
  expect(state.notices.join('\n')).toMatch(/refused: it changed 1 file[\s\S]*use tabs/)
  expect(foldAll([...events, started(2), ended(2, { class: 'crashed', message: '' })]).notices).toHaveLength(2)
  expect(foldAll([...events, started(2), ended(2, worked)]).notices).toEqual([])
})

test('text that reached the running turn is told a second time only if that round did not count', () => {
  const steered: SessionEvent = { type: 'steered', round: 1, text: 'use tabs', delivered: true }
  expect(foldAll([created, started(1), steered, ended(1, worked)]).notices).toEqual([])
  expect(foldAll([created, started(1), steered, ended(1, { class: 'throttle', message: '' })]).notices).toEqual([
    'A person says: use tabs',
  ])
  expect(foldAll([created, started(1), { type: 'steered', round: 1, text: 'x', delivered: true }]).notices).toEqual([])
})

test('a session that is resumed after a cut goes on where it stood, and the next round is told', () => {
  const state = foldAll([
    created,
    started(1),
    ended(1, worked),
    started(2),
    { type: 'session-resumed', limits: { rounds: 9 }, codemachine: '0.1.0' },
  ])
  expect(state).toMatchObject({ roundsUsed: 1, maxRounds: 9, running: null })
  expect(state.notices.join()).toMatch(/cut off/)
})

const anyEvent: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.constant(created),
  fc.nat(5).map(started),
  fc.tuple(fc.nat(5), fc.constantFrom('A', 'B', '__proto__')).map(([round, thread]) => turn(round, thread)),
  fc.tuple(fc.nat(5), fc.constantFrom('A', 'B', '__proto__'), fc.nat()).map(args => usage(...args)),
  fc
    .tuple(fc.nat(5), fc.constantFrom('worked', 'crashed', 'network', 'interrupted', 'window'))
    .map(([round, end]) => ended(round, { class: end, message: null } as EndedRoundEvent['outcome'])),
  fc.record({ type: fc.constant('warning' as const), round: fc.constant(null), message: fc.string() }),
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
