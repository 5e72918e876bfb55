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

/** Why a round ended; the classes of docs/inside/design.md, "What ends a round". */
export type RoundClass = v.InferOutput<typeof roundClass>

/** Each class of a round, and whether one that ended so uses up one of the person's limit. */
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

/** Whether a round that ended so counts against the person's limit; a silent one does once it has worked. */
export function countsAsRound(end: RoundClass, hasWorked: boolean): boolean {
  return end === 'silent' ? hasWorked : USES_UP_A_ROUND[end]
}

/** How a round ended. `message` is codex's own words where it gave any. */
export type RoundOutcome = v.InferOutput<typeof roundOutcome>

/**
 * Why a session waits. `round-failed`: a round or a review failed in a way that may pass with time. `usage-limit`: a window of
 * the account's usage limits was seen to be used up before a round. `max-usage`: it was seen to be used as far as the person allows.
 * `provider-away`: the provider of the next round does not answer; the wait is over as soon as it does.
 */
export type WaitReason = v.InferOutput<typeof waitReason>

/** What shows that a session does not get on. */
export type StallReason = v.InferOutput<typeof stallReason>

/** How a person ends a session: by a signal, `codemachine stop`, or `codemachine skip`. */
export type EndedBy = v.InferOutput<typeof endedBy>

/**
 * What a person can do about a session that needs one; after each of these it can be resumed. Data, which every door puts
 * into words of its own: `wordsForHint` has those for a shell, and docs/reference/events.md says what each means. Moments are ISO
 * 8601 in UTC.
 */
export type OutcomeHint = v.InferOutput<typeof outcomeHint>

/** How a session ended. */
export type SessionOutcome = v.InferOutput<typeof sessionOutcome>

/** The exit code of an outcome (docs/inside/design.md, "Outcomes and exit codes"). */
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

/** Whether a session that ended so came to its end, so that there is nothing to resume. */
export function isFinished({ kind }: SessionOutcome): boolean {
  return kind === 'done' || kind === 'answered' || kind === 'replayed'
}

/** The most that a session may take; null: no such limit. */
export type SessionLimits = v.InferOutput<typeof sessionLimits>

/** One window of the account's usage limits. */
export type UsageWindow = v.InferOutput<typeof usageWindow>

/** A limit that is reached in the middle of a round; `usage`: the part of the account's window that may be used. */
export type WindDownLimit = v.InferOutput<typeof windDownLimit>

/** What of its limits a session has used. */
export interface Used {
  rounds: number
  /** Time that it was worked on, ms. */
  timeMs: number
  tokens: number
  /** In the currency of the prices; left out: nothing, or there are no prices. */
  cost?: number
}

/** What a run may take, all of its sessions together, and what of that its earlier sessions have used. */
export interface RunAllowance {
  limits: SessionLimits
  used: Used
  /** Whether each session has the usual number of rounds though another limit is set. */
  keepsUsual?: boolean
}

/** The first limit that is reached; null if there is room for more. Pure. */
export function limitReached(limits: SessionLimits, used: Used): 'rounds' | 'time' | 'tokens' | 'cost' | null {
  const reached = (limit: number | null, value: number) => limit !== null && value >= limit
  if (reached(limits.rounds, used.rounds)) return 'rounds'
  if (reached(limits.timeMs, used.timeMs)) return 'time'
  if (reached(limits.tokens, used.tokens)) return 'tokens'
  return reached(limits.cost ?? null, used.cost ?? 0) ? 'cost' : null
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

/** A command that codemachine runs itself before it believes *done*; as the settings say, and as the session began with it. */
export type Gate = v.InferOutput<typeof gate>

/** The most gates that a session is told of where it is begun, and a part of it is worked on with. */
export const MOST_GATES = 50

/** When a gate runs: before round 1, after a round, because tasks of a plan are said to be done, or because all is claimed to be. */
export type GateTime = v.InferOutput<typeof gateTime>

/**
 * How a gate came out. `flaky`: it failed, and passed when it was run again on the same files. `not-started`: there is
 * nothing that could be run. `broken-off`: a person or the end of the session cut it short, which says nothing of it.
 */
export type GateStatus = v.InferOutput<typeof gateStatus>

/** What came of running a gate. */
export type GateResult = v.InferOutput<typeof gateResultSchema>

/** Whether a gate that came out so has passed, if only the second time. */
export function hasPassed(status: GateStatus): boolean {
  return status === 'passed' || status === 'flaky'
}

/** Whether a gate that came out so stands in the way of done. */
export function blocksDone(gate: Pick<Gate, 'required'>, { status }: Pick<GateResult, 'status'>): boolean {
  return gate.required && !hasPassed(status)
}
