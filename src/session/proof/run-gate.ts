import { endWithFailures } from '../../base/failure-lines.ts'
import type { Gate, GateResult } from '../../core/events/outcome.ts'
import { networkRefused } from '../../core/rules/notices.ts'
import { testCountOf } from '../../core/rules/proof/test-counts.ts'
import type { LineEnd, RanGate, WorkTree } from '../options.ts'

/** Runs shell lines in the sandbox of the rounds. */
interface GateDoor {
  run(command: {
    run: string
    network: boolean
    timeoutMs: number
    signal: AbortSignal
    readOnly?: true | undefined
    unreadable?: readonly string[] | undefined
  }): Promise<LineEnd>
}

export interface GateOptions {
  door: GateDoor
  /** Work tree to watch; null: its changes are thrown away, so nobody checks them. */
  workTree: WorkTree | null
  /** Current fingerprint of the work tree; undefined: it is taken. */
  tree?: string
  signal: AbortSignal
  /** Replaces secrets in the gate's output. */
  redact(text: string): string
  /** Returns a note on the output of a gate that did not pass; null or undefined: none. */
  explain?(output: string): string | null
  /** Longest kept output, characters; 4,000 if left out. */
  mostCharacters?: number
  /** True to run a failed gate again, to find out if it is flaky; the default. */
  isAgainOnFailure?: boolean
  /** True if it has failed on these very files before; undefined: it has not. */
  hasFailedHere?: boolean
  /** Called for a flaky gate: resolves with true if the work may be the cause. Undefined: it is not. */
  isFlakyByWork?: () => Promise<boolean>
  /** Returns the number of tests in reports written since a moment (Unix time, ms); null or undefined: unknown. */
  testsInReports?: (run: string, since: number) => Promise<number | null>
  /** True: it may write nothing; undefined: as the rounds. */
  readOnly?: true | undefined
  /** Absolute paths that it may neither read nor create; undefined: none. */
  unreadable?: readonly string[] | undefined
}

/**
 * Runs a gate, and again if it fails and left the files unchanged. A gate that then passes, or that failed on the same files
 * before, is flaky. If the work may be the cause, it must pass three times in a row. Reports its changes of checked files.
 * Each end is a value.
 */
export async function runGate(gate: Gate, options: GateOptions): Promise<RanGate> {
  const {
    workTree,
    redact,
    isAgainOnFailure = true,
    hasFailedHere = false,
    mostCharacters = OUTPUT_CHARACTERS,
  } = options
  const take = async () => (await workTree?.take()) ?? ''
  const before = options.tree ?? (await take())
  const since = Date.now()
  const first = await play(gate, options)
  const tests = testCountOf(first.output) ?? (await options.testsInReports?.(gate.run, since)) ?? null
  let after = await take()
  const runs = [first]
  const runAgain = async () => {
    runs.push(await play(gate, options))
    after = await take()
  }
  if (isAgainOnFailure && after === before) {
    if (statusOf(first) === 'failed') await runAgain()
    const isFlaky = isPassed(runs.at(-1)) && (runs.length > 1 || hasFailedHere)
    const mustRepeat = isFlaky && ((await options.isFlakyByWork?.()) ?? false)
    for (let left = MORE_PASSES; mustRepeat && left > 0 && isPassed(runs.at(-1)); left--) await runAgain()
  }
  const shown = runs.find(run => !isPassed(run)) ?? first
  const { paths, count } = (await workTree?.changed(before, after)) ?? { paths: [], count: 0 }
  return {
    gate: gate.name,
    status: statusOfAll(shown, runs.at(-1) ?? first),
    exitCode: shown.kind === 'exited' ? shown.exitCode : null,
    durationMs: runs.reduce((sum, { durationMs }) => sum + durationMs, 0),
    output: endWithFailures(redact(shown.output), mostCharacters),
    problem: problemOf(shown, gate, options),
    tree: before,
    treeAfter: after,
    changed: paths.slice(0, CHANGED_PATHS),
    changedCount: count,
    ...(tests === null ? {} : { tests }),
  }
}

/** Longest output of a gate or command in its event, characters. */
export const OUTPUT_CHARACTERS = 4_000
const CHANGED_PATHS = 50

function play(
  { run, network, timeoutMs }: Gate,
  { door, signal, readOnly, unreadable }: GateOptions,
): Promise<LineEnd> {
  return door.run({ run, network, timeoutMs, signal, readOnly, unreadable })
}

function problemOf(run: LineEnd, { network }: Gate, { redact, explain }: GateOptions): string | null {
  if (run.kind === 'not-started') return redact(run.problem)
  if (run.kind === 'broken-off' || statusOf(run) === 'passed') return null
  return explain?.(run.output) ?? (network ? null : networkRefused(run.output))
}

/** Further passes that a check, or a gate that is flaky by the work, needs after it failed and passed. */
export const MORE_PASSES = 2

function isPassed(run: LineEnd | undefined): boolean {
  return run !== undefined && statusOf(run) === 'passed'
}

/**
 * Returns the status of all runs. `shown`: the first failed run. Only a last run that passed or was interrupted changes its
 * status.
 */
function statusOfAll(shown: LineEnd, last: LineEnd): GateResult['status'] {
  if (statusOf(last) === 'broken-off') return 'broken-off'
  return statusOf(last) === 'passed' && !isPassed(shown) ? 'flaky' : statusOf(shown)
}

/** Returns the journaled status of an end. */
export function statusOf(run: LineEnd): Exclude<GateResult['status'], 'flaky'> {
  if (run.kind !== 'exited') return run.kind
  return run.exitCode === 0 ? 'passed' : 'failed'
}
