import type { UsageLimits } from '../session/engine.ts'
import type { UsageWindow } from '../session/limits.ts'

/** The limit that codex's own usage counts against; some models have one of their own beside it. */
const CODEX_LIMIT = 'codex'

/**
 * Codex's `RateLimitSnapshot`, of a notification, in our terms; null if it says nothing, or is about another limit than
 * codex's own.
 */
export function usageLimits(snapshot: unknown): UsageLimits | null {
  const limit = memberOf(snapshot, 'limitId')
  if (typeof limit === 'string' && limit !== CODEX_LIMIT) return null
  const primary = usageWindow(memberOf(snapshot, 'primary'))
  const secondary = usageWindow(memberOf(snapshot, 'secondary'))
  if (!primary && !secondary) return null
  const credits = memberOf(snapshot, 'credits')
  if (typeof credits !== 'object' || credits === null) return { primary, secondary }
  const hasCredits = memberOf(credits, 'hasCredits') === true || memberOf(credits, 'unlimited') === true
  return { primary, secondary, credits: hasCredits }
}

/** The same of the answer to `account/rateLimits/read`, which may hold several limits. */
export function usageLimitsOfAccount(answer: unknown): UsageLimits | null {
  const own = memberOf(memberOf(answer, 'rateLimitsByLimitId'), CODEX_LIMIT)
  return usageLimits(own ?? memberOf(answer, 'rateLimits'))
}

function usageWindow(window: unknown): UsageWindow | null {
  const usedPercent = numberOf(memberOf(window, 'usedPercent'))
  if (usedPercent === null) return null
  const resetsAt = numberOf(memberOf(window, 'resetsAt'))
  return {
    usedPercent,
    windowMinutes: numberOf(memberOf(window, 'windowDurationMins')),
    resetsAt: resetsAt === null ? null : resetsAt * 1000,
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : null
}
