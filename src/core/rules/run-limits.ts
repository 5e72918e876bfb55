import type { SessionLimits, Used } from '../events/outcome.ts'

/** What a run may take, all of its sessions together, and what of that its earlier sessions have used. */
export interface RunAllowance {
  limits: SessionLimits
  used: Used
}

/** A limit by its name in `SessionLimits`. */
export type LimitName = keyof SessionLimits & keyof Used

/** The limits of a session's own; what is left out is not limited. */
type OwnLimits = { readonly [Name in LimitName]?: number | undefined }

/** Every limit, in the order in which they are looked at. */
export const LIMIT_NAMES = ['rounds', 'timeMs', 'tokens'] as const satisfies readonly LimitName[]

/** Nothing of any limit. */
export const NOTHING_USED: Used = { rounds: 0, timeMs: 0, tokens: 0 }

/** The allowance once a session has used so much more of it. Pure. */
export function withUsed({ limits, used }: RunAllowance, more: Used): RunAllowance {
  return { limits, used: eachLimit(name => used[name] + more[name]) }
}

/**
 * What the next session of a run may take: its own limits, and of each never more than the run has left. Pure.
 * @param usualRounds how many rounds it has where nothing limits it
 */
export function limitsInRun({ limits, used }: RunAllowance, own: OwnLimits, usualRounds: number): SessionLimits {
  const all = eachLimit(name => {
    const most = limits[name]
    if (most === null) return own[name] ?? null
    return Math.min(own[name] ?? most, Math.max(0, most - used[name]))
  })
  return LIMIT_NAMES.every(name => all[name] === null) ? { ...all, rounds: usualRounds } : all
}

/** The first limit of which nothing is left for another session; null if there is something left of each. Pure. */
export function usedUp({ limits, used }: RunAllowance): LimitName | null {
  return LIMIT_NAMES.find(name => used[name] >= (limits[name] ?? Number.POSITIVE_INFINITY)) ?? null
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
export function allowanceAtResume({ limits, used }: RunAllowance, said: Partial<SessionLimits>): RunAllowance {
  return {
    limits: { ...limits, ...said },
    used: eachLimit(name => (said[name] === undefined ? used[name] : 0)),
  }
}

function eachLimit<T>(of: (name: LimitName) => T): Record<LimitName, T> {
  return Object.fromEntries(LIMIT_NAMES.map(name => [name, of(name)])) as Record<LimitName, T>
}
