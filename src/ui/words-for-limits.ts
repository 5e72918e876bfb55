import type { SessionLimits } from '../session/limits.ts'
import { formatCount } from './format-count.ts'
import { formatSpan } from './format-span.ts'
import { formatTokens, shortNumber } from './format-tokens.ts'

/** The most that a session may take: `at most 20 rounds, 8 h, 5M tokens`. */
export function wordsForLimits({ rounds, timeMs, tokens }: SessionLimits): string {
  const limits = [
    ...(rounds === null ? [] : [formatCount(rounds, 'round')]),
    ...(timeMs === null ? [] : [formatSpan(timeMs)]),
    ...(tokens === null ? [] : [formatTokens(tokens)]),
  ]
  return limits.length === 0 ? 'without a limit' : `at most ${limits.join(', ')}`
}

/** How much of its time is used: `1 h 2 min of 8 h`. */
export function wordsForTimeUsed(ms: number, { timeMs }: SessionLimits): string {
  return timeMs === null ? formatSpan(ms) : `${formatSpan(ms)} of ${formatSpan(timeMs)}`
}

/** How many of its tokens are used: `1.2M of 5M tokens`. */
export function wordsForTokensUsed(used: number, { tokens }: SessionLimits): string {
  return tokens === null ? formatTokens(used) : `${shortNumber(used)} of ${formatTokens(tokens)}`
}
