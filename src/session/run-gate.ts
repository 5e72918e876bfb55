import { lastLines } from '../base/clip.ts'
import type { Gate, GateResult } from './gate.ts'
import type { WorkTree } from './judge-claim.ts'
import { wantOfNetwork } from './want-of-network.ts'

/** What runs a line in the sandbox of the rounds. */
interface GateDoor {
  run(command: { run: string; network: boolean; timeoutMs: number; signal: AbortSignal }): Promise<GateRun>
}

/** How one run of a gate ended. */
type GateRun = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & {
  /** The last lines of what it printed. */
  output: string
  durationMs: number
}

export interface GateOptions {
  door: GateDoor
  workTree: WorkTree
  /** Fingerprint of the work tree now, where it is known; taken otherwise. */
  tree?: string
  signal: AbortSignal
  /** Takes secrets out of what the gate printed. */
  redact(text: string): string
  /** Whether one that fails is run once more, to find out if it is flaky. Left out: it is. */
  isAgainOnFailure?: boolean
}

/**
 * Runs a gate, and once more if it fails and has left the files as they were: one that passes then is flaky. Looks what
 * it has changed of the files that it checks. However it comes out is a value.
 */
export async function runGate(gate: Gate, options: GateOptions): Promise<GateResult> {
  const { workTree, redact, isAgainOnFailure = true } = options
  const before = options.tree ?? (await workTree.take())
  const first = await play(gate, options)
  let after = await workTree.take()
  let second: GateRun | null = null
  if (isAgainOnFailure && statusOf(first) === 'failed' && after === before) {
    second = await play(gate, options)
    after = await workTree.take()
  }
  const { paths, count } = await workTree.changed(before, after)
  return {
    gate: gate.name,
    status: statusOfBoth(first, second),
    exitCode: first.kind === 'exited' ? first.exitCode : null,
    durationMs: first.durationMs + (second?.durationMs ?? 0),
    output: lastLines(redact(first.output), OUTPUT_CHARACTERS),
    problem: problemOf(first, gate, options),
    tree: before,
    changed: paths.slice(0, CHANGED_PATHS),
    changedCount: count,
  }
}

const OUTPUT_CHARACTERS = 4_000
const CHANGED_PATHS = 50

function play({ run, network, timeoutMs }: Gate, { door, signal }: GateOptions): Promise<GateRun> {
  return door.run({ run, network, timeoutMs, signal })
}

function problemOf(run: GateRun, { network }: Gate, { redact }: GateOptions): string | null {
  if (run.kind === 'not-started') return redact(run.problem)
  if (network || run.kind === 'broken-off' || statusOf(run) === 'passed') return null
  return wantOfNetwork(run.output)
}

/** A second run that neither passed nor was cut short by us changes nothing of a gate that has failed. */
function statusOfBoth(first: GateRun, second: GateRun | null): GateResult['status'] {
  const status = second === null ? null : statusOf(second)
  if (status === 'passed') return 'flaky'
  return status === 'broken-off' ? status : statusOf(first)
}

function statusOf(run: GateRun): GateResult['status'] {
  if (run.kind !== 'exited') return run.kind
  return run.exitCode === 0 ? 'passed' : 'failed'
}
