import { unreachable } from '../../base/errors.ts'
import { type OutcomeHint, type RoundOutcome, renewalOf, type SessionOutcome } from '../events/outcome.ts'
import type { SessionState } from '../state/state.ts'

/** The action after a round has ended, before the template is asked. `until`: Unix time, ms. */
export type AfterRound =
  | { kind: 'ask-template' }
  | { kind: 'wait'; until: number }
  | { kind: 'end'; outcome: SessionOutcome }

export interface AfterRoundOptions {
  /** Unix time, ms. */
  now: number
  /** From 0 to 1: spreads the retries of many sessions over time. */
  random: number
  /** Longest time of consecutive failures, ms. */
  maxWaitMs: number
}

const MOST_IDLE_CRASHES = 3
const MOST_REFUSALS = 3
/** A 403 of a proxy or site guard has passed by then; a lasting one concerns the account. */
const MOST_FORBIDDEN = 3
const FIRST_BACKOFF_MS = 2_000
const LONGEST_BACKOFF_MS = 5 * 60_000
/** Used if codex did not report the reset of a usage window. */
const FIRST_WINDOW_WAIT_MS = 5 * 60_000
const LONGEST_WINDOW_WAIT_MS = 60 * 60_000
const JUST_PASSED_MS = 60 * 60_000
/** Delay of the next round after a reset: minimum, and random spread. */
const RENEWAL_GRACE_MS = 5_000
const RENEWAL_SPREAD_MS = 30_000

/**
 * Returns the action for each class of docs/inside/design.md, "What ends a round". Pure.
 * @param state the session after the round
 */
export function afterRound(outcome: RoundOutcome, state: SessionState, options: AfterRoundOptions): AfterRound {
  const { failures } = state
  switch (outcome.class) {
    case 'worked':
    case 'interrupted':
    case 'context-full':
      return { kind: 'ask-template' }
    case 'refused':
      return failures.refusals < MOST_REFUSALS
        ? { kind: 'ask-template' }
        : needsPerson(outcome, { do: 'reword-goal' }, { goalOnly: true })
    case 'silent':
      // One silence may be a hung command; several in a row mean that the server does not answer.
      return failures.silences <= 1 && failures.inARow === 0
        ? { kind: 'ask-template' }
        : waitAtMost(outcome, state, backOff(Math.max(1, failures.silences - 1, failures.inARow), options), options)
    case 'window':
      return waitAtMost(outcome, state, renewal(outcome, state, options), options)
    case 'throttle':
      return waitAtMost(outcome, state, asTold(outcome, backOff(failures.inARow, options), options), options)
    case 'network':
      if (failures.forbidden >= MOST_FORBIDDEN) return needsPerson(outcome, { do: 'mend-access' })
      return waitAtMost(outcome, state, backOff(failures.inARow, options), options)
    case 'crashed':
      return failures.idleCrashes < MOST_IDLE_CRASHES
        ? waitAtMost(outcome, state, backOff(failures.inARow, options), options)
        : needsPerson(outcome, { do: 'check-codex' })
    case 'quota':
      return needsPerson(outcome, { do: 'add-credit' })
    case 'auth':
      return needsPerson(outcome, { do: 'log-in' })
    case 'config':
      return needsPerson(outcome, { do: 'mend-codex-configuration' })
    default:
      return unreachable(outcome.class)
  }
}

/** Returns the start time after the reset of a usage window: a little later, spread at random. Unix time, ms. */
export function afterRenewal(renewedAt: number, random: number): number {
  return renewedAt + RENEWAL_GRACE_MS + Math.round(random * RENEWAL_SPREAD_MS)
}

/** Returns a wait, or an end if the wait or the consecutive failures before it exceed the person's limit. */
export function waitAtMost(
  cause: RoundOutcome,
  { id, failures }: SessionState,
  until: number,
  { now, maxWaitMs }: AfterRoundOptions,
): AfterRound {
  const since = failures.since ?? now
  if (until - since <= maxWaitMs) return { kind: 'wait', until }
  return needsPerson(
    cause,
    failures.inARow > 1
      ? { do: 'mend-cause', since: new Date(since).toISOString() }
      : { do: 'resume', session: id, at: new Date(until).toISOString() },
  )
}

function renewal(outcome: RoundOutcome, state: SessionState, { now, random }: AfterRoundOptions): number {
  const windows = [state.primaryWindow, state.secondaryWindow]
  // Codex's percentages are rounded: 99.6 % may be full.
  const renewedAt = renewalOf(windows, 100, now) ?? outcome.retryAt ?? renewalOf(windows, 95, now) ?? 0
  if (renewedAt > now) return afterRenewal(renewedAt, random)
  // If our clock is ahead of the server's, the reset has already passed here.
  const hasJustBeen = renewalOf(windows, 95, now - JUST_PASSED_MS) !== null
  if (hasJustBeen && state.failures.inARow <= 1) return afterRenewal(now, random)
  const ms = Math.min(FIRST_WINDOW_WAIT_MS * 2 ** (state.failures.inARow - 1), LONGEST_WINDOW_WAIT_MS)
  return now + Math.round(ms * (1 + random / 4))
}

/** Returns codex's retry time, but not before the back-off: "in one second" must not mean every second for hours. */
function asTold({ retryAt }: RoundOutcome, backOff: number, { random }: AfterRoundOptions): number {
  if (retryAt === undefined) return backOff
  return Math.max(backOff, retryAt + Math.round(random * 1000))
}

/** Returns now plus 2 s, 4 s, 8 s, … up to five minutes; the second half of each is random. */
function backOff(failuresInARow: number, { now, random }: AfterRoundOptions): number {
  const ms = Math.min(FIRST_BACKOFF_MS * 2 ** (failuresInARow - 1), LONGEST_BACKOFF_MS)
  return now + Math.round(ms * (0.5 + random / 2))
}

function needsPerson(outcome: RoundOutcome, hint: OutcomeHint, more: { goalOnly?: true } = {}): AfterRound {
  const reason = outcome.message ?? `The round ended: ${outcome.class}.`
  return { kind: 'end', outcome: { kind: 'needs-person', reason, hint, ...more } }
}
