import type { RunAllowance, SessionLimits, Used } from '../events/outcome.ts'
import { elapsedMs, type SessionState, sessionTokens } from '../state/state.ts'

/** Name of a limit in `SessionLimits`. */
export type LimitName = keyof SessionLimits & keyof Used

/** A session's own limits; left out: no limit. */
type OwnLimits = { readonly [Name in LimitName]?: number | undefined }

/** All limits, in the order of checks. */
const LIMIT_NAMES = ['rounds', 'timeMs', 'tokens', 'cost'] as const satisfies readonly LimitName[]

/** No use of any limit. */
export const NOTHING_USED: Used = { rounds: 0, timeMs: 0, tokens: 0 }

/** Adds a session's use to the allowance. Pure. */
export function withUsed({ used, ...run }: RunAllowance, more: Used): RunAllowance {
  return {
    ...run,
    used: {
      rounds: used.rounds + more.rounds,
      timeMs: used.timeMs + more.timeMs,
      tokens: used.tokens + more.tokens,
      ...withCost((used.cost ?? 0) + (more.cost ?? 0)),
    },
  }
}

/**
 * Returns the limits of a run's next session: its own, but never more than the run has left. Pure.
 * @param usualRounds its number of rounds if nothing limits it
 */
export function limitsInRun(run: RunAllowance, own: OwnLimits, usualRounds: number): SessionLimits {
  const { limits, used, keepsUsual = false } = run
  const least = (name: LimitName) => {
    const most = limits[name] ?? null
    if (most === null) return own[name] ?? null
    return Math.min(own[name] ?? most, Math.max(0, most - (used[name] ?? 0)))
  }
  const isFree = LIMIT_NAMES.every(name => least(name) === null || (keepsUsual && name !== 'rounds'))
  return {
    rounds: isFree ? usualRounds : least('rounds'),
    timeMs: least('timeMs'),
    tokens: least('tokens'),
    ...(least('cost') === null ? {} : { cost: least('cost') ?? 0 }),
  }
}

/** Returns the first used-up limit; null: some of each is left. Pure. */
export function usedUp({ limits, used }: RunAllowance): LimitName | null {
  return LIMIT_NAMES.find(name => (used[name] ?? 0) >= (limits[name] ?? Number.POSITIVE_INFINITY)) ?? null
}

/** Returns the first limit whose wanted value exceeds the run's total; null: none. Pure. */
export function beyondRun({ limits }: Pick<RunAllowance, 'limits'>, wanted: OwnLimits): LimitName | null {
  const isBeyond = (name: LimitName) => (wanted[name] ?? 0) > (limits[name] ?? Number.POSITIVE_INFINITY)
  return LIMIT_NAMES.find(isBeyond) ?? null
}

/**
 * Returns the allowance of a run that resumes a session. New limits apply to that whole session and the queue after it. So
 * earlier use of these limits no longer counts. Pure.
 * @param said new limits; left out: unchanged
 */
export function allowanceAtResume(run: RunAllowance, said: Partial<SessionLimits>): RunAllowance {
  const { limits, used } = run
  return {
    ...run,
    limits: { ...limits, ...said },
    used: {
      rounds: said.rounds === undefined ? used.rounds : 0,
      timeMs: said.timeMs === undefined ? used.timeMs : 0,
      tokens: said.tokens === undefined ? used.tokens : 0,
      ...withCost(said.cost === undefined ? (used.cost ?? 0) : 0),
    },
  }
}

/**
 * Returns a session's limits after its run's limits changed. It never gets more than its own, smaller limits from its prompt
 * or a person. Pure.
 * @param usualRounds its number of rounds if nothing limits it
 */
export function limitsOnceChanged(
  state: Pick<SessionState, 'limits' | 'run' | 'queued'>,
  run: RunAllowance,
  usualRounds: number,
): SessionLimits {
  const { limits } = state
  const before = limitsInRun(state.run ?? { limits, used: NOTHING_USED }, {}, limits.rounds ?? 0)
  const own = (name: LimitName) => {
    const most = limits[name] ?? null
    const isOwn = most !== (before[name] ?? null) || (name === 'rounds' && isFree(state) && state.queued !== null)
    return most !== null && isOwn ? { [name]: most } : {}
  }
  return limitsInRun(run, Object.assign({}, ...LIMIT_NAMES.map(own)), usualRounds)
}

/** Returns true if nothing limits the run, so the session has the default number of rounds. */
function isFree({ run }: Pick<SessionState, 'run'>): boolean {
  return run !== null && LIMIT_NAMES.every(name => (run.limits[name] ?? null) === null)
}

/** Omits a zero cost: most people set no prices. */
function withCost(cost: number): { cost?: number } {
  return cost === 0 ? {} : { cost }
}

/** Returns the use of its limits by a session that is not running. Pure. */
export function usedBy(state: SessionState): Used {
  const { roundsUsed: rounds, cost } = state
  const used = { rounds, timeMs: elapsedMs(state, 'cut-off', 0), tokens: sessionTokens(state) }
  return state.prices.length === 0 ? used : { ...used, cost: cost.amount }
}
