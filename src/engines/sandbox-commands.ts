import { CommandOutput } from '../codex/command-output.ts'
import { type RanCommand, runCommand } from '../codex/run-command.ts'
import { commandPolicy } from '../codex/sandbox.ts'
import { type ShieldedEnvironment, shieldEnvironment } from '../codex/shielded-environment.ts'
import { MARK_VARIABLE } from '../platform/marks.ts'
import { shellLine } from '../platform/shell-line.ts'
import { AppServers, type CodexOptions } from './app-servers.ts'

interface SandboxCommand {
  /** A line for a shell, run in the work directory. */
  run: string
  /** Whether it may use the network; never more than the rounds may. */
  network: boolean
  timeoutMs: number
  /** Ends it, and all that it has started. */
  signal: AbortSignal
}

/**
 * How it ended, and the last lines of what it printed, both streams, at most 16,000 characters of plain text: more than
 * is kept, so that secrets can be taken out before it is cut. `not-started`: nothing could be run, or codex died under
 * it; a program that is not there is an exit code, 127.
 */
export type CommandEnd = RanCommand & { output: string }

/** Runs lines that are codemachine's own in the sandbox of the rounds, one at a time. Disposing of it breaks them off. */
export interface SandboxCommands extends AsyncDisposable {
  /** Resolves when nothing is left of it that can be found. Never rejects for what the command or codex does. */
  run(command: SandboxCommand): Promise<CommandEnd>
}

export interface SandboxCommandsOptions extends CodexOptions {
  /** Where agents work, if it is not `directory`: no program there is codex's own to use. */
  agentsDirectory?: string
}

/** Opens them; nothing is started before the first command, and nothing is left after each. */
export function openSandboxCommands(options: SandboxCommandsOptions): SandboxCommands {
  return new OneAtATime(options)
}

const OUTPUT_CHARACTERS = 16_000

class OneAtATime implements SandboxCommands {
  readonly #options: SandboxCommandsOptions
  readonly #shielded: ShieldedEnvironment
  readonly #servers: AppServers
  readonly #closed = new AbortController()
  /** Two at once in one directory fail in the sandbox now and then. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: SandboxCommandsOptions) {
    this.#options = options
    this.#shielded = shieldEnvironment(options.env, options.agentsDirectory ?? options.directory, options.sandbox)
    this.#servers = new AppServers({
      ...options,
      env: this.#shielded.env,
      work: 'command',
    })
  }

  run(command: SandboxCommand): Promise<CommandEnd> {
    const end = this.#last.then(() => this.#run(command))
    this.#last = end.catch(() => {})
    return end
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort()
    await this.#last
    await this.#servers.close()
  }

  async #run({ run, network, timeoutMs, ...command }: SandboxCommand): Promise<CommandEnd> {
    const signal = AbortSignal.any([command.signal, this.#closed.signal])
    if (signal.aborted) return { kind: 'broken-off', durationMs: 0, output: '' }
    const { directory, sandbox, platform, clock, codemachineVersion, requestMs, log } = this.#options
    const output = new CommandOutput()
    const { server, mark } = this.#servers.start()
    const end = await runCommand(server, {
      command: shellLine(run, platform),
      directory,
      sandboxPolicy: commandPolicy(sandbox, network),
      env: { [MARK_VARIABLE]: mark },
      forCommands: this.#shielded.forCommands,
      clientVersion: codemachineVersion,
      clock,
      requestMs,
      timeoutMs,
      signal,
      onOutput: bytes => output.push(bytes),
      log,
    })
    await this.#servers.sweep()
    return { ...end, output: output.text(OUTPUT_CHARACTERS) }
  }
}
