import { Interrupted } from '../../base/errors.ts'
import type { Redactor } from '../../base/redactor.ts'
import type { SandboxChoice } from '../../codex/sandbox.ts'
import { openSandboxCommands, type SandboxCommandsOptions } from '../../engines/sandbox-commands.ts'
import type { CertifiedGate } from '../../session/certificate.ts'
import type { WorkTree } from '../../session/judge-claim.ts'
import { runGate } from '../../session/run-gate.ts'
import type { GateRun } from './verification.ts'

export interface GatesAgainOptions {
  /** All that gates run with, but for where and in what sandbox. */
  commands: Omit<SandboxCommandsOptions, 'directory' | 'sandbox'>
  /** Of the session that is verified. */
  sandbox: SandboxChoice
  directory: string
  workTree: WorkTree
  redactor: Redactor
  signal: AbortSignal
}

/** Runs gates of a certificate again. An `Interrupted` if the program has to end. */
export class GatesAgain {
  readonly #options: GatesAgainOptions

  constructor(options: GatesAgainOptions) {
    this.#options = options
  }

  /** In the work directory; one that fails once more on the same files. */
  async inWorkDirectory(gate: CertifiedGate): Promise<GateRun> {
    const { directory, sandbox, workTree } = this.#options
    return await this.#run(gate, directory, sandbox, workTree)
  }

  /** On files that were laid out elsewhere, once; of the person's repository nothing can be written there. */
  async inScratch(gate: CertifiedGate, directory: string): Promise<GateRun> {
    return await this.#run(gate, directory, { ...this.#options.sandbox, writable: [] }, null)
  }

  async #run(
    gate: CertifiedGate,
    directory: string,
    sandbox: SandboxChoice,
    workTree: WorkTree | null,
  ): Promise<GateRun> {
    const { commands, redactor, signal } = this.#options
    if (signal.aborted) throw new Interrupted(signal.reason)
    await using door = openSandboxCommands({ ...commands, directory, sandbox })
    const { status, exitCode, durationMs, output, problem, changedCount } = await runGate(
      { ...gate, protect: [], everyRound: false },
      {
        door,
        workTree: workTree ?? UNSEEN,
        signal,
        redact: text => redactor.text(text),
        isAgainOnFailure: workTree !== null,
      },
    )
    if (status === 'broken-off') throw new Interrupted(signal.reason)
    return { gate, status, exitCode, durationMs, output, problem, changedCount }
  }
}

/** What a gate does to files that are thrown away does not matter. */
const UNSEEN: WorkTree = {
  take: async () => '',
  changed: async () => ({ paths: [], count: 0 }),
}
