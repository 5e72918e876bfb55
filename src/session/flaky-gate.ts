import type { EventOf } from './events.ts'
import type { Gate, GateResult } from './gate.ts'

/** That a gate has failed on a tree: of a flaky one, the run that failed. */
export interface GateFailure {
  gate: string
  run: string
  tree: string
  exitCode: number | null
}

const MOST_FAILURES = 100

/** The result of a gate, as flaky if it passed on a tree on which the same command has failed before. Pure. */
export function asKnown(result: GateResult, { name, run }: Gate, failures: readonly GateFailure[]): GateResult {
  if (result.status !== 'passed') return result
  const failed = failures.find(each => each.gate === name && each.run === run && each.tree === result.tree)
  // What it printed when it failed was told then; what it prints when it passes shows nothing of that.
  return failed === undefined ? result : { ...result, status: 'flaky', exitCode: failed.exitCode, output: '' }
}

/** The failures after a gate has run, the last 100. One that ran out of time, or could not be run, is none of these. */
export function failuresOfGates(
  failures: readonly GateFailure[],
  { gate, status, exitCode, tree }: EventOf<'gate-ended'>,
  gates: readonly Gate[],
): readonly GateFailure[] {
  const run = gates.find(({ name }) => name === gate)?.run
  if (run === undefined || (status !== 'failed' && status !== 'flaky')) return failures
  const others = failures.filter(each => each.gate !== gate || each.run !== run || each.tree !== tree)
  return [...others, { gate, run, tree, exitCode }].slice(-MOST_FAILURES)
}
