import type { RunAllowance, SessionLimits, Used } from '../events/outcome.ts'
import { elapsedMs, type SessionState, sessionTokens } from '../state/state.ts'

/** A limit by its name in `SessionLimits`. */
export type LimitName = keyof SessionLimits & keyof Used

/** The limits of a session's own; what is left out is not limited. */
type OwnLimits = { readonly [Name in LimitName]?: number | undefined }

/** Every limit, in the order in which they are looked at. */
const LIMIT_NAMES = ['rounds', 'timeMs', 'tokens', 'cost'] as const satisfies readonly LimitName[]

/** Nothing of any limit. */
export const NOTHING_USED: Used = { rounds: 0, timeMs: 0, tokens: 0 }

/** The allowance once a session has used so much more of it. Pure. */
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
 * What the next session of a run may take: its own limits, and of each never more than the run has left. Pure.
 * @param usualRounds how many rounds it has where nothing limits it
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

/** The first limit of which nothing is left for another session; null if there is something left of each. Pure. */
export function usedUp({ limits, used }: RunAllowance): LimitName | null {
  return LIMIT_NAMES.find(name => (used[name] ?? 0) >= (limits[name] ?? Number.POSITIVE_INFINITY)) ?? null
}

/** The first limit of which somebody wants more than the run has in all; null if there is none. Pure. */
export function beyondRun({ limits }: Pick<RunAllowance, 'limits'>, wanted: OwnLimits): LimitName | null {
  const isBeyond = (name: LimitName) => (wanted[name] ?? 0) > (limits[name] ?? Number.POSITIVE_INFINITY)
  return LIMIT_NAMES.find(isBeyond) ?? null
}

/**
 * The allowance of a run that goes on with a session of it. What a person says now is for that session as a whole and what
 * waits behind it, so what earlier sessions have used of such a limit counts no more. Pure.
 * @param said the limits that are said now; what is left out stays
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
 * What a session may take once its run may take something else. Of what its prompt or a person wanted for it alone, which is
 * less than the run had left, it never gets more. Pure.
 * @param usualRounds how many rounds it has where nothing limits it
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

/** Whether nothing limits the run, so that the session has the usual number of rounds. */
function isFree({ run }: Pick<SessionState, 'run'>): boolean {
  return run !== null && LIMIT_NAMES.every(name => (run.limits[name] ?? null) === null)
}

/** Left out where there is none: most people name no prices. */
function withCost(cost: number): { cost?: number } {
  return cost === 0 ? {} : { cost }
}

/** What of its limits a session that nobody runs has used. Pure. */
export function usedBy(state: SessionState): Used {
  const { roundsUsed: rounds, cost } = state
  const used = { rounds, timeMs: elapsedMs(state, 'cut-off', 0), tokens: sessionTokens(state) }
  return state.prices.length === 0 ? used : { ...used, cost: cost.amount }
}
