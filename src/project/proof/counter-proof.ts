import { type Gate, hasPassed } from '../../core/events/outcome.ts'
import {
  type CounterProof,
  type CounterRun,
  counterProve,
  doubtsOfTests,
  notTried,
  withoutWork,
} from '../../core/rules/proof/counter-proof.ts'
import { openSandboxCommands, type SandboxCommandsOptions } from '../../engines/codex/sandbox-commands.ts'
import type { ToCounterProve } from '../../session/options.ts'
import { runGate } from '../../session/proof/run-gate.ts'
import { openCounterCheckout } from '../../workspace/counter-checkout.ts'
import type { Fingerprints } from '../../workspace/fingerprint/fingerprint.ts'
import type { CheckoutResult } from '../../workspace/fingerprint/scratch-checkout.ts'
import { workChanges } from '../../workspace/gate-paths.ts'
import { traceReads } from '../../workspace/read-trace.ts'

interface CounterProofMeans {
  fingerprints: Fingerprints
  /** Name by which a scratch folder is found again. */
  key: string
  /** Options of the gates of the rounds; each run sets its own directory. */
  commands: SandboxCommandsOptions
  redact(text: string): string
  /** Absolute paths that it may neither read nor create. */
  unreadable: readonly string[]
}

/**
 * Runs a gate that passes for a claim without the work, in its own checkout outside of the work directory, with the rights
 * of the rounds. Null: interrupted.
 */
export async function counterProofOf(
  gate: Gate,
  of: ToCounterProve,
  means: CounterProofMeans,
): Promise<CounterProof | null> {
  const { start, tree, tests, signal } = of
  const { fingerprints, key, commands } = means
  const from = performance.now()
  const proof = (found: Awaited<ReturnType<typeof counterProve>>): CounterProof => ({
    gate: gate.name,
    tree,
    ...found,
    doubts: [...found.doubts, ...doubtsOfTests(tests)],
    ...(tests.now === null && tests.most === null && tests.failed === undefined ? {} : { tests }),
    durationMs: Math.round(performance.now() - from),
  })
  if (start === null) return proof(notTried('the files from before the work were not saved', null))
  if (start === tree) return proof(withoutWork(of.failedBefore))
  const changes = await fingerprints.mending(git => workChanges(git, { start, tree, gate }), signal)
  if ('problem' in changes) return proof(notTried(changes.problem, null))
  if (commands.sandbox.mode === 'danger-full-access') return proof(notTried(NO_SANDBOX, changes))
  const opened = await fingerprints.mending(git => openCounterCheckout({ git, key, start, tree }), signal)
  if ('problem' in opened) return proof(notTried(opened.problem, opened.byWork ? null : changes))
  await using checkout = opened
  const found = await counterProve({
    ...of,
    changes,
    run: changes => {
      const entries = changes.map(({ entry }) => entry)
      return runOn(() => checkout.lay(start, fingerprints.git.prefix, entries), { gate, means, signal })
    },
  })
  return signal.aborted ? null : proof(found)
}

const NO_SANDBOX = 'without a sandbox, it could write to the work directory'

interface RunOptions {
  gate: Gate
  means: CounterProofMeans
  signal: AbortSignal
}

async function runOn(lay: () => Promise<CheckoutResult>, { gate, means, signal }: RunOptions): Promise<CounterRun> {
  if (signal.aborted) return unknown('it was interrupted')
  const laid = await lay()
  if ('problem' in laid) return unknown(laid.problem)
  const { commands, redact, unreadable } = means
  const { directory } = laid
  const trace = commands.sandbox.mode === 'workspace-write' ? await traceReads(directory) : null
  await using door = openSandboxCommands({
    ...commands,
    directory,
    agentsDirectory: commands.directory,
    // The person's repository is read-only there.
    sandbox: { ...commands.sandbox, writable: [] },
  })
  const { status, problem, durationMs } = await runGate(gate, {
    door,
    workTree: null,
    signal,
    redact,
    unreadable,
    isAgainOnFailure: false,
  })
  if (status === 'broken-off' || status === 'not-started') return unknown(problem ?? 'it was interrupted')
  return {
    status: hasPassed(status) ? 'passed' : 'failed',
    problem: null,
    durationMs,
    read: (await trace?.read()) ?? null,
  }
}

function unknown(problem: string): CounterRun {
  return { status: 'unknown', problem, durationMs: 0, read: null }
}
