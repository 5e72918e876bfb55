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
  /** The longest that failures in a row may take, ms. */
  maxWaitMs: number
}

const MOST_IDLE_CRASHES = 3
const MOST_REFUSALS = 3
/** A proxy's or a site guard's 403 is over by then; one that stays is about who asks. */
const MOST_FORBIDDEN = 3
const FIRST_BACKOFF_MS = 2_000
const LONGEST_BACKOFF_MS = 5 * 60_000
/** Where codex did not say when a usage window is renewed. */
const FIRST_WINDOW_WAIT_MS = 5 * 60_000
const LONGEST_WINDOW_WAIT_MS = 60 * 60_000
const JUST_PASSED_MS = 60 * 60_000
/** How long after a renewal the next round starts: at least, and spread over. */
const RENEWAL_GRACE_MS = 5_000
const RENEWAL_SPREAD_MS = 30_000

/**
 * The action for each class of docs/inside/design.md, "What ends a round". Pure.
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
      // One may be a command that hung; one after the other is a server that does not answer.
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

/** When to go on after a usage window is renewed: a little later, with some spread. Unix time, ms. */
export function afterRenewal(renewedAt: number, random: number): number {
  return renewedAt + RENEWAL_GRACE_MS + Math.round(random * RENEWAL_SPREAD_MS)
}

/** A wait; or the end, if it, or the failures in a row that it follows, take longer than the person allows. */
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
  // What codex reports is rounded: 99.6 % may be full.
  const renewedAt = renewalOf(windows, 100, now) ?? outcome.retryAt ?? renewalOf(windows, 95, now) ?? 0
  if (renewedAt > now) return afterRenewal(renewedAt, random)
  // A clock that is ahead of the server's has seen the reset already.
  const hasJustBeen = renewalOf(windows, 95, now - JUST_PASSED_MS) !== null
  if (hasJustBeen && state.failures.inARow <= 1) return afterRenewal(now, random)
  const ms = Math.min(FIRST_WINDOW_WAIT_MS * 2 ** (state.failures.inARow - 1), LONGEST_WINDOW_WAIT_MS)
  return now + Math.round(ms * (1 + random / 4))
}

/** The moment that codex named, but not before the back-off: a server that says "in one second" for hours is not asked every second. */
function asTold({ retryAt }: RoundOutcome, backOff: number, { random }: AfterRoundOptions): number {
  if (retryAt === undefined) return backOff
  return Math.max(backOff, retryAt + Math.round(random * 1000))
}

/** 2 s, 4 s, 8 s, … to five minutes, of which the second half is left to chance. */
function backOff(failuresInARow: number, { now, random }: AfterRoundOptions): number {
  const ms = Math.min(FIRST_BACKOFF_MS * 2 ** (failuresInARow - 1), LONGEST_BACKOFF_MS)
  return now + Math.round(ms * (0.5 + random / 2))
}

function needsPerson(outcome: RoundOutcome, hint: OutcomeHint, more: { goalOnly?: true } = {}): AfterRound {
  const reason = outcome.message ?? `The round ended: ${outcome.class}.`
  return { kind: 'end', outcome: { kind: 'needs-person', reason, hint, ...more } }
}
