import { isFinished, type SessionOutcome, type UsageWindow } from '../events/outcome.ts'

/** How much of one usage window the rounds of a session have used: the part of the window that they have seen whole. */
interface WindowTrend {
  /** When the window is renewed; Unix time, ms. */
  resetsAt: number
  /** Per cent that was used when the first of `rounds` began, and that is used now. */
  from: number
  now: number
  /** Rounds since; -1 while the round runs in which the window began. */
  rounds: number
}

/** The trend of each window; null: nothing is known of it. */
export interface UsageTrends {
  primary: WindowTrend | null
  secondary: WindowTrend | null
}

export const NO_TRENDS: UsageTrends = { primary: null, secondary: null }

/** What codex reports as the end of one window may differ by this much, ms. */
const SAME_WINDOW_MS = 10 * 60_000

/** The trends once codex has reported the windows. `inRound`: whether a round runs. Pure. */
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
  // What the running round had used of it before it was first reported is not known.
  return isSame ? { ...trend, now, resetsAt } : { resetsAt, from: now, now, rounds: inRound ? -1 : 0 }
}

/** The trends once a round has ended that counts. Pure. */
export function trendsAfterRound({ primary, secondary }: UsageTrends): UsageTrends {
  return { primary: afterRound(primary), secondary: afterRound(secondary) }
}

function afterRound(trend: WindowTrend | null): WindowTrend | null {
  if (trend === null) return null
  const rounds = trend.rounds + 1
  return { ...trend, rounds, from: rounds === 0 ? trend.now : trend.from }
}

/** How many more rounds fit into a usage window, about, and when it is renewed. */
export interface Forecast {
  /** 0: the next one waits. */
  rounds: number
  /** When it is renewed; Unix time, ms. */
  until: number
}

/** Fewer say nothing of how much a round uses. */
const LEAST_ROUNDS = 2

/**
 * When a session will have to wait for a usage window, if its rounds go on at the pace of that window; Unix time, ms. Null
 * with less than two whole rounds in the window, without a rise, or if the window is renewed by `now`.
 * Of two windows the
 * one that is full sooner. Pure.
 * @param mostPercent how much of a window may be used, 0 to 100
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

/** What of a session says how it uses the windows. */
interface UsedWindows {
  ended: { outcome: SessionOutcome } | null
  waiting: unknown
  usageTrends: UsageTrends
  maxUsage: number | null
  hasCredits: boolean
}

/**
 * How many more rounds fit into the usage window before one waits, at the time `now` (Unix time, ms); null if that cannot be
 * said, the session waits already, has come to its end, or the account goes on with credits. Pure.
 */
export function forecastFor(
  { ended, waiting, usageTrends, maxUsage, hasCredits }: UsedWindows,
  now: number,
): Forecast | null {
  if (waiting !== null || (ended !== null && isFinished(ended.outcome)) || (maxUsage === null && hasCredits))
    return null
  return forecastOf(usageTrends, maxUsage ?? 100, now)
}
