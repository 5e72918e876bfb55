/** Why a round ended; the classes of docs/design.md, "What ends a round". */
export type RoundClass =
  | 'worked'
  | 'interrupted'
  | 'context-full'
  | 'refused'
  | 'window'
  | 'throttle'
  | 'network'
  | 'quota'
  | 'auth'
  | 'config'
  | 'silent'
  | 'crashed'

/** Each class of a round, and whether one that ended so uses up one of the person's limit. */
export const USES_UP_A_ROUND = {
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
export interface RoundOutcome {
  class: RoundClass
  message: string | null
  /** When codex said that it may be tried again: Unix time, ms; left out if it did not. */
  retryAt?: number
}

/**
 * Why a session waits. `round-failed`: a round or a review failed in a way that time may mend. `usage-limit`: a window of
 * the account's usage limits was seen to be used up before a round. `max-usage`: it was seen to be used as far as the person allows.
 */
export type WaitReason = 'round-failed' | 'usage-limit' | 'max-usage'

/** What shows that a session does not get on. */
export type StallReason = 'nothing-changed' | 'same-refusal'

/** How a person ends a session: by a signal, `codemachine stop`, or `codemachine skip`. */
export type EndedBy = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'stop' | 'skip'

/** How a session ended. */
export type SessionOutcome =
  | { kind: 'done'; verified: boolean }
  | { kind: 'limit'; limit: 'rounds' | 'time' | 'tokens' }
  /** `goalOnly`: what has to be mended is the goal, and other sessions can go on. */
  | { kind: 'needs-person'; reason: string; hint: OutcomeHint | null; goalOnly?: true }
  | { kind: 'stalled'; rounds: number; why: StallReason }
  | { kind: 'interrupted'; by: EndedBy }

/**
 * What a person can do about a session that needs one; after each of these it can be resumed. Data, which every door puts
 * into words of its own: `wordsForHint` has those for a shell. Moments are ISO 8601 in UTC.
 */
export type OutcomeHint =
  /** Three rounds in a row were refused: say the goal in other words, or mend what it refers to. */
  | { do: 'reword-goal' }
  /** Codex crashed three times in a row before it did anything. */
  | { do: 'check-codex' }
  | { do: 'add-credit' }
  | { do: 'log-in' }
  | { do: 'mend-codex-configuration' }
  /** Rounds have failed since then, which is as long as `--max-wait` allows. */
  | { do: 'mend-cause'; since: string }
  /** It would have to wait until then, longer than `--max-wait` allows. */
  | { do: 'resume'; session: string; at: string }
  /** The reviewer does not agree, or gives no answer; `gatesPass`: every required gate passes, and there is one. */
  | { do: 'read-reviews'; gatesPass: boolean }
  /** The team builder wrote no plan that can be carried out. `files`: at most five; `more`: others are wrong, too. */
  | { do: 'mend-plan'; files: readonly string[]; more: boolean }
  /** No task is left in the plan, which is this file. */
  | { do: 'add-tasks'; file: string }
  /** Parked tasks are all that is left in the plan, which is this file. */
  | { do: 'mend-parked-tasks'; file: string }
  | { do: 'free-disk-space' }
  /** A sentence for the person, as earlier versions wrote every hint. */
  | { do: 'say'; text: string }

/** The exit code of an outcome (docs/design.md, "Outcomes and exit codes"). */
export function exitCodeOf(outcome: SessionOutcome): number {
  switch (outcome.kind) {
    case 'done':
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

/** A command that codemachine runs itself before it believes *done*; as the settings say, and as the session began with it. */
export interface Gate {
  /** By which it is told apart; the command itself if nobody gave it a name. */
  name: string
  /** A line for a shell, run in the work directory. */
  run: string
  /** How long it may take, ms. */
  timeoutMs: number
  /** Whether done waits for it; one that is not required is only reported. */
  required: boolean
  /** Whether it may use the network; never more than the rounds may. */
  network: boolean
  /** Globs, relative to the work directory, of the files that make up the gate: its tests, its configuration. */
  protect: readonly string[]
  /** Whether it runs after every round that worked, and not only when done is claimed. */
  everyRound: boolean
}

/** When a gate runs: before round 1, after a round, because tasks of a plan are said to be done, or because all is claimed to be. */
export type GateTime = 'before' | 'after-round' | 'tasks' | 'claim'

/**
 * How a gate came out. `flaky`: it failed, and passed when it was run again on the same files. `not-started`: there is
 * nothing that could be run. `broken-off`: a person or the end of the session cut it short, which says nothing of it.
 */
export type GateStatus = 'passed' | 'flaky' | 'failed' | 'timed-out' | 'not-started' | 'broken-off'

/** What came of running a gate. */
export interface GateResult {
  gate: string
  status: GateStatus
  /** Null if it did not end by itself. Of a flaky one, that of the run that failed. */
  exitCode: number | null
  durationMs: number
  /** The last lines of what it printed, both streams, at most 4,000 characters. */
  output: string
  /** What stood in its way, a sentence; null if nothing did. */
  problem: string | null
  /** Fingerprint of the work tree on which it ran. */
  tree: string
  /** What it changed in that tree itself, at most 50 paths. */
  changed: readonly string[]
  changedCount: number
}

/** Whether a gate that came out so has passed, if only the second time. */
export function hasPassed(status: GateStatus): boolean {
  return status === 'passed' || status === 'flaky'
}

/** Whether a gate that came out so stands in the way of done. */
export function blocksDone(gate: Pick<Gate, 'required'>, { status }: Pick<GateResult, 'status'>): boolean {
  return gate.required && !hasPassed(status)
}
