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
  /** Null: nobody looks what it does to the files, which are thrown away. */
  workTree: WorkTree | null
  /** Fingerprint of the work tree now, where it is known; taken otherwise. */
  tree?: string
  signal: AbortSignal
  /** Replaces secrets in what the gate printed. */
  redact(text: string): string
  /** What to say of one that did not pass, by its output: a sentence, null if nothing; left out: nothing. */
  explain?(output: string): string | null
  /** The most that is kept of what it printed, characters; 4,000 if left out. */
  mostCharacters?: number
  /** Whether a failed gate is run once more, to find out if it is flaky; true if left out. */
  isAgainOnFailure?: boolean
  /** Whether it has failed on these very files before; left out: it has not. */
  hasFailedHere?: boolean
  /** Whether a gate that fails and passes may do so because of the work; asked of such a one. Left out: it does not. */
  isFlakyByWork?: () => Promise<boolean>
  /** How many tests the gate has run by the reports that it has written since a moment (Unix time, ms); null or left out: not known. */
  testsInReports?: (run: string, since: number) => Promise<number | null>
  /** Whether it may write nothing at all; left out: what the rounds may. */
  readOnly?: true | undefined
  /** Absolute paths that it may neither read nor make; left out: none. */
  unreadable?: readonly string[] | undefined
}

/**
 * Runs a gate, and once more if it fails and has left the files as they were: one that passes then is flaky, and so is one that
 * has failed on the same files before. If that may be because of the work, it has to pass three times in a row. Looks what it has
 * changed of the files that it checks. However it comes out is a value.
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

/** The most of what a gate or a command printed that stands in its event. */
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

/** How often a gate that may be flaky by the work, or a check, has to pass once more after it has failed and passed. */
export const MORE_PASSES = 2

function isPassed(run: LineEnd | undefined): boolean {
  return run !== undefined && statusOf(run) === 'passed'
}

/** `shown`: the first run that did not pass. A last run that neither passed nor was cut short by us changes nothing of it. */
function statusOfAll(shown: LineEnd, last: LineEnd): GateResult['status'] {
  if (statusOf(last) === 'broken-off') return 'broken-off'
  return statusOf(last) === 'passed' && !isPassed(shown) ? 'flaky' : statusOf(shown)
}

/** The status by which such an end is journaled. */
export function statusOf(run: LineEnd): Exclude<GateResult['status'], 'flaky'> {
  if (run.kind !== 'exited') return run.kind
  return run.exitCode === 0 ? 'passed' : 'failed'
}
