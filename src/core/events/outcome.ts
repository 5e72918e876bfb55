import type * as v from 'valibot'
import type {
  endedBy,
  gate,
  gateResultSchema,
  gateStatus,
  gateTime,
  outcomeHint,
  roundClass,
  roundOutcome,
  sessionLimits,
  sessionOutcome,
  stallReason,
  usageWindow,
  waitReason,
  windDownLimit,
} from './shapes.ts'

/** Class of a round's end, from docs/inside/design.md, "What ends a round". */
export type RoundClass = v.InferOutput<typeof roundClass>

/** True for each class of rounds that counts against the person's limit. */
const USES_UP_A_ROUND = {
  worked: true,
  interrupted: true,
  'context-full': true,
  refused: true,
  window: false,
  throttle: false,
  network: false,
  quota: false,
  auth: false,
  config: false,
  silent: true,
  crashed: false,
} satisfies Record<RoundClass, boolean>

/** Returns true if a round of this class counts against the person's limit; a silent one only after some work. */
export function countsAsRound(end: RoundClass, hasWorked: boolean): boolean {
  return end === 'silent' ? hasWorked : USES_UP_A_ROUND[end]
}

/** Outcome of a round. `message`: codex's own words, if it gave any. */
export type RoundOutcome = v.InferOutput<typeof roundOutcome>

/**
 * Why a session waits. `round-failed`: a round or review failed for a reason that may pass. `usage-limit`: a usage window
 * was full before a round. `max-usage`: the part of it that the person allows was used up. `provider-away`: the next round's
 * provider does not answer; the wait ends when it does.
 */
export type WaitReason = v.InferOutput<typeof waitReason>

/** Sign that a session makes no progress. */
export type StallReason = v.InferOutput<typeof stallReason>

/** Ways of a person to end a session: by a signal, `codemachine stop`, or `codemachine skip`. */
export type EndedBy = v.InferOutput<typeof endedBy>

/**
 * Advice for a person; after it, the session can be resumed. Data, which each door words itself: `wordsForHint` for a shell.
 * docs/reference/events.md explains each. Times are ISO 8601 in UTC.
 */
export type OutcomeHint = v.InferOutput<typeof outcomeHint>

/** Outcome of a session. */
export type SessionOutcome = v.InferOutput<typeof sessionOutcome>

/** Returns the exit code of an outcome (docs/inside/design.md, "Outcomes and exit codes"). */
export function exitCodeOf(outcome: SessionOutcome): number {
  switch (outcome.kind) {
    case 'done':
    case 'answered':
    case 'replayed':
    case 'planned':
      return 0
    case 'limit':
      return 3
    case 'needs-person':
      return 4
    case 'stalled':
      return 5
    case 'interrupted':
      return outcome.by === 'SIGTERM' ? 143 : 130
  }
}

/** Returns true if a session with this outcome is finished, with nothing to resume. */
export function isFinished({ kind }: SessionOutcome): boolean {
  return kind === 'done' || kind === 'answered' || kind === 'replayed'
}

/** Limits of a session; null: no limit. */
export type SessionLimits = v.InferOutput<typeof sessionLimits>

/** One window of the account's usage limits. */
export type UsageWindow = v.InferOutput<typeof usageWindow>

/** A limit that can be reached during a round; `usage`: the allowed part of the usage window. */
export type WindDownLimit = v.InferOutput<typeof windDownLimit>

/** Used part of a session's limits. */
export interface Used {
  rounds: number
  /** Work time, ms. */
  timeMs: number
  tokens: number
  /** In the currency of the prices; left out: nothing, or no prices. */
  cost?: number
}

/** Limits of a run for all of its sessions together, and what its earlier sessions used. */
export interface RunAllowance {
  limits: SessionLimits
  used: Used
  /** True if each session keeps the default number of rounds although another limit is set. */
  keepsUsual?: boolean
}

/** Returns the first reached limit; null: none. Pure. */
export function limitReached(limits: SessionLimits, used: Used): 'rounds' | 'time' | 'tokens' | 'cost' | null {
  const reached = (limit: number | null, value: number) => limit !== null && value >= limit
  if (reached(limits.rounds, used.rounds)) return 'rounds'
  if (reached(limits.timeMs, used.timeMs)) return 'time'
  if (reached(limits.tokens, used.tokens)) return 'tokens'
  return reached(limits.cost ?? null, used.cost ?? 0) ? 'cost' : null
}

/**
 * Returns the last reset time (Unix, ms) of windows used to at least `usedPercent` (0 to 100). Null: none, or codex gave no
 * time. Windows that were reset before `now` are ignored. Pure.
 */
export function renewalOf(windows: readonly (UsageWindow | null)[], usedPercent: number, now: number): number | null {
  const times = windows.flatMap(window =>
    window !== null && window.usedPercent >= usedPercent && window.resetsAt !== null && window.resetsAt > now
      ? [window.resetsAt]
      : [],
  )
  return times.length === 0 ? null : Math.max(...times)
}

/** A command that codemachine runs before it accepts *done*, from the settings or the session's start. */
export type Gate = v.InferOutput<typeof gate>

/** Limit of gates given at a session's start, or for a scope. */
export const MOST_GATES = 50

/** Time of a gate run: before round 1, after a round, when tasks are marked done, or when all is claimed done. */
export type GateTime = v.InferOutput<typeof gateTime>

/**
 * Result of a gate. `flaky`: it failed, then passed on the same files. `not-started`: nothing could be run. `broken-off`: a
 * person or the session's end stopped it, which proves nothing.
 */
export type GateStatus = v.InferOutput<typeof gateStatus>

/** Result of one gate run. */
export type GateResult = v.InferOutput<typeof gateResultSchema>

/** Returns true if a gate passed, at once or on the second run. */
export function hasPassed(status: GateStatus): boolean {
  return status === 'passed' || status === 'flaky'
}

/** Returns true if this gate result prevents done. */
export function blocksDone(gate: Pick<Gate, 'required'>, { status }: Pick<GateResult, 'status'>): boolean {
  return gate.required && !hasPassed(status)
}
