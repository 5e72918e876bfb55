import { describe, expect, test } from 'vitest'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import { type AfterRoundOptions, afterRound } from '../../../src/core/rules/after-round.ts'
import { emptyState, type Failures, NO_FAILURES, type SessionState } from '../../../src/core/state/state.ts'

const NOW = 1_795_000_000_000
const MINUTE = 60_000

interface Case {
  failures?: Partial<Failures>
  state?: Partial<SessionState>
  retryAt?: number
  options?: Partial<AfterRoundOptions>
}

function stepAfter(end: RoundOutcome['class'], { failures = {}, state = {}, retryAt, options = {} }: Case = {}) {
  const outcome: RoundOutcome = { class: end, message: null, ...(retryAt === undefined ? {} : { retryAt }) }
  const session = { ...emptyState('s'), failures: { ...NO_FAILURES, inARow: 1, ...failures }, ...state }
  return afterRound(outcome, session, { now: NOW, random: 0, maxWaitMs: 60 * MINUTE, ...options })
}

/** How long it is waited, ms; what else comes, as it is. */
function waitAfter(...of: Parameters<typeof stepAfter>) {
  const next = stepAfter(...of)
  return next.kind === 'wait' ? next.until - NOW : next
}

describe('what a person alone can mend needs one, who is told what to do', () => {
  test.each<[RoundOutcome['class'], Partial<Failures>, string]>([
    ['refused', { refusals: 3 }, 'reword-goal'],
    ['network', { forbidden: 3 }, 'mend-access'],
    ['crashed', { idleCrashes: 3 }, 'check-codex'],
    ['quota', {}, 'add-credit'],
    ['auth', {}, 'log-in'],
    ['config', {}, 'mend-codex-configuration'],
  ])('%s', (end, failures, what) => {
    const outcome = { kind: 'needs-person', reason: `The round ended: ${end}.`, hint: { do: what } }
    const ofGoal = end === 'refused' ? { goalOnly: true } : {}
    expect(stepAfter(end, { failures })).toEqual({ kind: 'end', outcome: { ...outcome, ...ofGoal } })
  })

  test('but not before it has come three times', () => {
    expect(stepAfter('refused', { failures: { refusals: 2 } }).kind).toBe('ask-template')
    expect(stepAfter('network', { failures: { forbidden: 2 } }).kind).toBe('wait')
    expect(stepAfter('crashed', { failures: { idleCrashes: 2 } }).kind).toBe('wait')
  })

  test('and not for another end that comes after such ones', () => {
    const ends = ['worked', 'interrupted', 'context-full'] as const
    expect(ends.map(end => stepAfter(end, { failures: { refusals: 3 } }).kind)).toEqual(ends.map(() => 'ask-template'))
  })
})

test('one silence is passed over, one after another failure is waited on', () => {
  expect(stepAfter('silent', { failures: { silences: 1, inARow: 0 } }).kind).toBe('ask-template')
  expect(stepAfter('silent', { failures: { silences: 1, inARow: 1 } }).kind).toBe('wait')
})

test('the longest wait may take all the time that a person allows', () => {
  const random = 1
  expect(waitAfter('network', { options: { random, maxWaitMs: 2000 } })).toBe(2000)
  const hint = { do: 'resume', session: 's', at: new Date(NOW + 2000).toISOString() }
  expect(stepAfter('network', { options: { random, maxWaitMs: 1999 } })).toMatchObject({ outcome: { hint } })
})

test('a server that says when is asked then, spread over a second, and never before the back-off', () => {
  expect([0, 1].map(random => waitAfter('throttle', { options: { random } }))).toEqual([1000, 2000])
  const inAMinute = { retryAt: NOW + MINUTE }
  expect([0, 1].map(random => waitAfter('throttle', { ...inAMinute, options: { random } }))).toEqual([60_000, 61_000])
  expect(waitAfter('throttle', { retryAt: NOW + 500 })).toBe(1000)
  expect(waitAfter('throttle', { retryAt: NOW - MINUTE })).toBe(1000)
})

test('a full window is waited for as its own end says, else as the failure says, else by longer and longer waits', () => {
  const primaryWindow = { usedPercent: 100, windowMinutes: 300, resetsAt: NOW + 10 * MINUTE }
  const retryAt = NOW + MINUTE
  expect(waitAfter('window', { retryAt, state: { primaryWindow } })).toBe(10 * MINUTE + 5000)
  expect(waitAfter('window', { retryAt })).toBe(MINUTE + 5000)
  expect(waitAfter('window', { state: { primaryWindow: { ...primaryWindow, usedPercent: 95 } } })).toBe(
    10 * MINUTE + 5000,
  )
  expect([NOW, NOW - 1].map(past => waitAfter('window', { retryAt: past }))).toEqual([5 * MINUTE, 5 * MINUTE])
  expect(waitAfter('window', { failures: { inARow: 2 } })).toBe(10 * MINUTE)
})
