import { describe, expect, test } from 'vitest'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import {
  discountSleep,
  elapsedMs,
  emptyState,
  type Failures,
  failuresAfter,
  hold,
  isCall,
  isKnown,
  NO_FAILURES,
  partOf,
  releaseHold,
  type SessionState,
  sessionStatusOf,
  sharesPlan,
  tokensOfProviders,
} from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'

const NONE = emptyState('s')
const ended = { outcome: { kind: 'limit', limit: 'time' }, exitCode: 3, durationMs: 5000 } as const

test('nothing is known of a session before its first event', () => {
  const { id, login, ...rest } = NONE
  expect(login).toBe('codex')
  const values = Object.values(rest).filter(value => typeof value !== 'object' || Array.isArray(value))
  expect(values.filter(value => value !== false && value !== '' && value !== 0 && String(value) !== '')).toEqual([])
  expect(NONE).toMatchObject({ limits: { rounds: null, timeMs: null, tokens: null }, claim: { state: 'none' } })
})

test('a template says what its sessions share, and whether they are calls', () => {
  const kinds = ['goal', 'build', 'agent', 'unknown'].map(name => ({ kind: OWN_TEMPLATES.get(name) ?? null }))
  expect(kinds.map(sharesPlan)).toEqual([false, true, false, false])
  expect(kinds.map(isCall)).toEqual([false, false, true, false])
  const known = kinds.flatMap(kind => [null, 'carving'].map(unknownPart => isKnown({ ...kind, unknownPart })))
  expect(known).toEqual([true, false, true, false, true, false, false, false])
})

test('a round has the rights of its kind; one that is not known, and one without a kind, the usual ones', () => {
  const kind = OWN_TEMPLATES.get('build') ?? null
  const usual = partOf(null, null)
  expect(usual).toMatchObject({ claims: true, free: false, countsForStall: true, delegates: true })
  expect([partOf(kind, 'carving'), partOf(kind, 'toString'), partOf(kind, null), partOf(null, 'summary')]).toEqual([
    usual,
    usual,
    usual,
    usual,
  ])
  expect(partOf(kind, 'summary')).toBe(kind?.parts.summary)
})

test('a session runs if something has happened in it since the process began that works there', () => {
  const at = (ms: number) => ({ at: new Date(ms).toISOString() })
  const status = (runner: Parameters<typeof sessionStatusOf>[1], change: Partial<SessionState> = {}) =>
    sessionStatusOf({ ...NONE, updatedAt: 9000, ...change }, runner)
  expect([status(at(9000)), status(at(8000)), status(at(9001)), status(null), status('unknown')]).toEqual([
    'running',
    'running',
    'cut-off',
    'cut-off',
    'unknown',
  ])
  expect([status(at(8000), { ended }), status('unknown', { ended })]).toEqual(['ended', 'ended'])
})

test('a session has taken until its end, until now, or until its last sign of life', () => {
  const state = { ...NONE, workedMs: 100, beganAt: 1000, updatedAt: 1500 }
  const elapsed = (['running', 'cut-off', 'unknown'] as const).map(status => elapsedMs(state, status, 3000))
  expect(elapsed).toEqual([2100, 600, 600])
  expect(elapsedMs({ ...state, beganAt: 2000 }, 'cut-off', 3000)).toBe(100)
  expect(elapsedMs({ ...state, ended }, 'ended', 3000)).toBe(5000)
})

test('tokens are those of the provider that is in use', () => {
  const counts = (total: number) => ({ input: total, cachedInput: 0, output: 0, reasoning: 0, total })
  const state = { ...NONE, providerTokens: { local: 5 }, threadTokens: { a: counts(7) } }
  const of = (providerInUse: string | null) => tokensOfProviders({ ...state, providerInUse })
  expect([of(null), of('local'), of('other')]).toEqual([{ local: 5 }, { local: 12 }, { local: 5, other: 7 }])
  expect(tokensOfProviders({ ...state, providerInUse: 'other', threadTokens: {} })).toEqual({ local: 5 })
})

describe('a hold', () => {
  test('begins at once where nothing runs and nothing is waited for', () => {
    const cause: RoundOutcome = { class: 'network', message: null }
    const busy: Partial<SessionState>[] = [
      { running: running() },
      { waiting: { until: 1, since: 0, reason: 'round-failed', cause } },
      { checking: { kind: 'gate', gate: 'g', when: 'claim', since: 0 } },
      { step: { number: 1, kind: 'look', name: 'x', since: 0 } },
      { decision: { id: 'd', title: '', body: '', choices: [], default: null, since: 0, until: 1 } },
    ]
    expect(busy.map(each => hold({ ...NONE, ...each }, 5).heldSince)).toEqual(busy.map(() => null))
    expect(hold(NONE, 5)).toMatchObject({ pausedAt: 5, heldSince: 5 })
    expect(hold({ ...NONE, pausedAt: 3, heldSince: 4 }, 5)).toMatchObject({ pausedAt: 3, heldSince: 4 })
  })

  test('is added up, and moves on the beginning of failures', () => {
    const failures = { ...NO_FAILURES, since: 10 }
    const held = { ...NONE, heldSince: 20, heldMs: 5, holdEnd: { at: 1, how: 'limit' } as const, failures }
    expect(releaseHold(held, 50)).toMatchObject({ heldMs: 35, heldSince: null, holdEnd: null, failures: { since: 40 } })
    expect(releaseHold(held, 10)).toMatchObject({ heldMs: 5, failures: { since: 10 } })
    expect(releaseHold(NONE, 50)).toBe(NONE)
  })
})

test('a sleep of a minute is none', () => {
  const state = { ...NONE, beganAt: 5 }
  expect([60_000, 60_001].map(ms => discountSleep(state, ms).beganAt)).toEqual([5, 60_006])
})

describe('the failures after a round', () => {
  const before: Failures = { inARow: 2, since: 10, idleCrashes: 1, refusals: 1, silences: 1, forbidden: 1 }
  const then = (outcome: Partial<RoundOutcome>, { counts = false, hasWorked = false, from = before } = {}) =>
    failuresAfter(from, { outcome: { class: 'throttle', message: null, ...outcome }, counts }, hasWorked, {
      at: 50,
      offlineSince: 40,
    })
  const more = { ...before, inARow: 3, idleCrashes: 0, silences: 0, forbidden: 0 }
  test.each<[string, Partial<RoundOutcome>, Parameters<typeof then>[1], object]>([
    ['that was cut off', { class: 'interrupted' }, {}, before],
    ['that a person broke off', { class: 'interrupted' }, { counts: true }, NO_FAILURES],
    ['that worked', { class: 'worked' }, { counts: true }, NO_FAILURES],
    ['that was refused', { class: 'refused' }, { counts: true }, { ...NO_FAILURES, refusals: 2 }],
    ['whose context was full', { class: 'context-full' }, { counts: true }, NO_FAILURES],
    ['that fell silent', { class: 'silent' }, { counts: true }, { ...NO_FAILURES, silences: 2 }],
    ['that fell silent before it did anything', { class: 'silent' }, {}, { ...more, silences: 2 }],
    ['that crashed', { class: 'crashed' }, {}, { ...more, idleCrashes: 2 }],
    ['that crashed at work', { class: 'crashed' }, { hasWorked: true }, more],
    ['that was forbidden', { class: 'network', status: 403 }, {}, { ...more, forbidden: 2 }],
    ['that a busy server answered', { status: 503 }, {}, more],
  ])('%s', (_, outcome, how, failures) => {
    expect(then(outcome, how)).toEqual(failures)
  })

  test('are since the network went away, if that is what they are of', () => {
    const since = (end: RoundOutcome['class']) => then({ class: end }, { from: NO_FAILURES }).since
    expect([since('network'), since('throttle')]).toEqual([40, 50])
  })
})

function running(): NonNullable<SessionState['running']> {
  return {
    round: 1,
    part: null,
    replan: null,
    startedAt: 0,
    thread: null,
    turn: null,
    told: 0,
    steered: [],
    hasWorked: false,
    isInterrupted: false,
    commandMs: 0,
    lastWords: null,
    agentsEnded: [],
  }
}
