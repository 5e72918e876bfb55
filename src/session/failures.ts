import type { EventOf } from './events.ts'

/** Rounds in a row that did not come to their end; a round that worked forgets them all. */
export interface Failures {
  /** Those that used up no round. */
  inARow: number
  /** When the first of these ended; Unix time, ms. */
  since: number | null
  /** Crashes in a row in which the agent had done nothing. */
  idleCrashes: number
  /** Refusals in a row. */
  refusals: number
  /** Rounds in a row that ended in silence, whether they used up a round or not. */
  silences: number
}

export const NO_FAILURES: Failures = { inARow: 0, since: null, idleCrashes: 0, refusals: 0, silences: 0 }

/** The failures after one more round, which ended at `at` (Unix time, ms). Pure. */
export function failuresAfter(
  before: Failures,
  { outcome, counts }: Pick<EventOf<'round-ended'>, 'outcome' | 'counts'>,
  hasWorked: boolean,
  at: number,
): Failures {
  // What a signal or a person cut off did not fail.
  if (!counts && outcome.class === 'interrupted') return before
  if (outcome.class === 'worked') return NO_FAILURES
  const silences = outcome.class === 'silent' ? before.silences + 1 : 0
  if (counts) return { ...NO_FAILURES, refusals: outcome.class === 'refused' ? before.refusals + 1 : 0, silences }
  return {
    inARow: before.inARow + 1,
    since: before.since ?? at,
    idleCrashes: outcome.class === 'crashed' && !hasWorked ? before.idleCrashes + 1 : 0,
    refusals: before.refusals,
    silences,
  }
}
