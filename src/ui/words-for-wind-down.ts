import { unreachable } from '../base/errors.ts'
import type { SessionLimits, UsageWindow, WindDownLimit } from '../session/limits.ts'
import { formatSpan } from './format-span.ts'
import { formatTokens } from './format-tokens.ts'

/** What of a session a limit is measured by. */
interface Used {
  limits: SessionLimits
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
}

/** Which limit was reached in the middle of a round: `8 h of time are used up`. */
export function wordsForWindDown(limit: WindDownLimit, { limits, primaryWindow, secondaryWindow }: Used): string {
  switch (limit) {
    case 'time':
      return limits.timeMs === null ? 'the time is used up' : `${formatSpan(limits.timeMs)} of time are used up`
    case 'tokens':
      return limits.tokens === null ? 'the tokens are used up' : `${formatTokens(limits.tokens)} are used up`
    case 'usage': {
      const percent = Math.max(primaryWindow?.usedPercent ?? 0, secondaryWindow?.usedPercent ?? 0)
      return percent === 0
        ? 'the usage limit is used as far as it may be'
        : `${Math.round(percent)} % of the usage limit is used, as much as may be`
    }
    default:
      return unreachable(limit)
  }
}
