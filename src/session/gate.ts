/** A command that codemachine runs itself before it believes *done*, as the session began with it. */
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
export function stops(gate: Pick<Gate, 'required'>, { status }: Pick<GateResult, 'status'>): boolean {
  return gate.required && !hasPassed(status)
}
