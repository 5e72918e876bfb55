import type { RoundOutcome } from '../session/outcome.ts'
import { formatCountdown } from './format-span.ts'
import { formatMoment } from './format-time.ts'
import { wordsForCause } from './words-for-cause.ts'

/**
 * A wait as it is seen at the time `now` (both Unix time, ms): `until 05:02, 3 h 10 min from now (usage limit: …)`.
 */
export function wordsForWait({ until, cause }: { until: number; cause: RoundOutcome }, now: number): string {
  const left = until > now ? `${formatCountdown(until - now)} from now` : 'which is over'
  return `until ${formatMoment(until, now)}, ${left} (${wordsForCause(cause)})`
}
