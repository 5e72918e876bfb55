import type { RoundClass } from './outcome.ts'
import { fields, missingOr, nullOr, number, oneOf, text } from './shape-checks.ts'

/** Of `TokenCounts`. */
export const counts = fields({ input: number, cachedInput: number, output: number, reasoning: number, total: number })

/** Of `RoundOutcome`. */
export const outcomeOfRound = fields({
  class: oneOf(
    ...Object.keys({
      worked: true,
      interrupted: true,
      'context-full': true,
      refused: true,
      window: true,
      throttle: true,
      network: true,
      quota: true,
      auth: true,
      config: true,
      silent: true,
      crashed: true,
    } satisfies Record<RoundClass, true>),
  ),
  message: nullOr(text),
  retryAt: missingOr(number),
})
