import { isFinished, type SessionOutcome, type UsageWindow } from '../events/outcome.ts'

/** Use of one usage window by a session's rounds, for the part of the window that they saw whole. */
interface WindowTrend {
  /** Reset time of the window; Unix time, ms. */
  resetsAt: number
  /** Used per cent at the start of the first of `rounds`, and now. */
  from: number
  now: number
  /** Rounds since; -1: the window began during the running round. */
  rounds: number
}

/** The trend of each window; null: not known. */
export interface UsageTrends {
  primary: WindowTrend | null
  secondary: WindowTrend | null
}

export const NO_TRENDS: UsageTrends = { primary: null, secondary: null }

/** Reported ends of the same window may differ by this much, ms. */
const SAME_WINDOW_MS = 10 * 60_000

/** Returns the trends after a report of codex. `inRound`: true if a round runs. Pure. */
export function trendsAfterLimits(
  trends: UsageTrends,
  { primary, secondary }: { primary: UsageWindow | null; secondary: UsageWindow | null },
  inRound: boolean,
): UsageTrends {
  return {
    primary: trendAfter(trends.primary, primary, inRound),
    secondary: trendAfter(trends.secondary, secondary, inRound),
  }
}

function trendAfter(trend: WindowTrend | null, window: UsageWindow | null, inRound: boolean): WindowTrend | null {
  if (window === null || window.resetsAt === null) return null
  const { usedPercent: now, resetsAt } = window
  const isSame = trend !== null && now >= trend.now && Math.abs(resetsAt - trend.resetsAt) <= SAME_WINDOW_MS
  // The running round's use before the first report is not known.
  return isSame ? { ...trend, now, resetsAt } : { resetsAt, from: now, now, rounds: inRound ? -1 : 0 }
}

/** Returns the trends after a counted round. Pure. */
export function trendsAfterRound({ primary, secondary }: UsageTrends): UsageTrends {
  return { primary: afterRound(primary), secondary: afterRound(secondary) }
}

function afterRound(trend: WindowTrend | null): WindowTrend | null {
  if (trend === null) return null
  const rounds = trend.rounds + 1
  return { ...trend, rounds, from: rounds === 0 ? trend.now : trend.from }
}

/** Estimate of the rounds that still fit into a usage window, and its reset. */
export interface Forecast {
  /** 0: the next round waits. */
  rounds: number
  /** Reset time; Unix time, ms. */
  until: number
}

/** Fewer rounds give no estimate. */
const LEAST_ROUNDS = 2

/**
 * Estimates the rounds before a session must wait for a usage window, and the reset time. Null: less than two whole rounds
 * in the window, no increase, or the window resets by `now`. Of two windows, returns the one that fills first. Pure.
 * @param mostPercent usable part of a window, 0 to 100
 */
export function forecastOf({ primary, secondary }: UsageTrends, mostPercent: number, now: number): Forecast | null {
  const forecasts = [primary, secondary].flatMap(trend => {
    if (trend === null || trend.rounds < LEAST_ROUNDS || trend.resetsAt <= now) return []
    const perRound = (trend.now - trend.from) / trend.rounds
    if (perRound <= 0) return []
    return [{ rounds: Math.max(0, Math.floor((mostPercent - trend.now) / perRound + 1e-9)), until: trend.resetsAt }]
  })
  return forecasts.toSorted((a, b) => a.rounds - b.rounds || b.until - a.until)[0] ?? null
}

/** The parts of a session about its usage windows. */
interface UsedWindows {
  ended: { outcome: SessionOutcome } | null
  waiting: unknown
  usageTrends: UsageTrends
  maxUsage: number | null
  hasCredits: boolean
}

/**
 * Returns the rounds until a wait for the usage window, as of `now` (Unix time, ms). Null: not known, already waiting,
 * finished, or the account continues with credits. Pure.
 */
export function forecastFor(
  { ended, waiting, usageTrends, maxUsage, hasCredits }: UsedWindows,
  now: number,
): Forecast | null {
  if (waiting !== null || (ended !== null && isFinished(ended.outcome)) || (maxUsage === null && hasCredits))
    return null
  return forecastOf(usageTrends, maxUsage ?? 100, now)
}
