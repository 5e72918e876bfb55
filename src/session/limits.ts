/** The most that a session may take; null: no such limit. */
export interface SessionLimits {
  rounds: number | null
  /** Time that it is worked on, ms. */
  timeMs: number | null
  tokens: number | null
}

/** One window of the account's usage limits. */
export interface UsageWindow {
  usedPercent: number
  windowMinutes: number | null
  /** Unix time, ms. */
  resetsAt: number | null
}

/** A limit that is reached in the middle of a round; `usage`: the part of the account's window that may be used. */
export type WindDownLimit = 'time' | 'tokens' | 'usage'

/** What of its limits a session has used. */
export interface Used {
  rounds: number
  /** Time that it was worked on, ms. */
  timeMs: number
  tokens: number
}

/** The first limit that is reached; null if there is room for more. Pure. */
export function limitReached(limits: SessionLimits, used: Used): 'rounds' | 'time' | 'tokens' | null {
  const reached = (limit: number | null, value: number) => limit !== null && value >= limit
  if (reached(limits.rounds, used.rounds)) return 'rounds'
  if (reached(limits.timeMs, used.timeMs)) return 'time'
  return reached(limits.tokens, used.tokens) ? 'tokens' : null
}

/**
 * When the usage windows that are used to this part, 0 to 100, are all renewed: Unix time, ms; null if there is none
 * or codex did not say when. `now` tells which windows are over already. Pure.
 */
export function renewalOf(windows: readonly (UsageWindow | null)[], usedPercent: number, now: number): number | null {
  const times = windows.flatMap(window =>
    window !== null && window.usedPercent >= usedPercent && window.resetsAt !== null && window.resetsAt > now
      ? [window.resetsAt]
      : [],
  )
  return times.length === 0 ? null : Math.max(...times)
}
