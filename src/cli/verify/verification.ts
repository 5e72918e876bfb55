import type { CertifiedGate } from '../../session/certificate.ts'
import type { GateStatus } from '../../session/gate.ts'
import type { Commit } from '../../workspace/commits-between.ts'

/** How a gate came out when it was run again. */
export interface GateRun {
  gate: CertifiedGate
  status: GateStatus
  exitCode: number | null
  durationMs: number
  /** The last lines of what it printed. */
  output: string
  problem: string | null
  /** What it changed itself, when it ran in the work directory. */
  changedCount: number
}

/** Files that differ; at most 50 of them are named. */
export interface Difference {
  paths: readonly string[]
  count: number
}

/** Whether what was proved is true now. */
export type Verdict =
  | { kind: 'still-true' }
  /** `since`: the first commit that `gate` fails at; both null where there is no git to ask. */
  | { kind: 'broken'; since: Commit | null; gate: string | null }
  /** HEAD is good: it is what is not committed. */
  | { kind: 'broken-uncommitted'; head: string; differs: Difference }
  | { kind: 'cannot-tell'; reason: string }

/** What came of verifying a session. */
export interface Verification {
  session: string
  verdict: Verdict
  /** Those that are required, as they came out in the work directory, as far as they ran. */
  gates: readonly GateRun[]
  /** Since it was done; null if the files of then are not kept any more. */
  changed: Difference | null
}

/** Whether a gate that came out so is as it has to be. */
export function passes({ status }: Pick<GateRun, 'status'>): boolean {
  return status === 'passed' || status === 'flaky'
}

export function exitCodeOfVerdict({ kind }: Verdict): 0 | 4 {
  return kind === 'still-true' ? 0 : 4
}
