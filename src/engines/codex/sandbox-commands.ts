import type { CommandExecParams } from '../../../protocol/codex.ts'
import { messageOf } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import { MARK_VARIABLE } from '../../platform/end-processes.ts'
import { StartMark, shellLine } from '../../platform/run-process.ts'
import { type AppServer, type CodexOptions, describeExit, LONGEST_WAIT_MS } from './app-server.ts'
import { Rights } from './sandbox/rights.ts'
import { describeProblem } from './sandbox/try-sandbox.ts'
import {
  type CommandConfig,
  commandPolicy,
  commandVariables,
  hidingProfile,
  NO_CONFIG,
  type ShieldedEnvironment,
} from './sandbox.ts'
import { type AskCodex, readCommandConfig, shakeHands } from './thread-start.ts'
import { CommandOutput } from './translate-item.ts'
import { memberOf, openRpc, RequestFailure, type Rpc } from './wire.ts'

/** `directory`: where it runs, and where the app-server was started, for that is what a sandbox leaves writable. */
interface CommandOptions
  extends Pick<CodexOptions, 'directory' | 'codemachineVersion' | 'clock' | 'requestMs' | 'log'>,
    Pick<SandboxCommand, 'timeoutMs' | 'signal'> {
  /** The native codex. */
  binary: string
  /** Program and arguments. */
  command: readonly string[]
  /** Its rights: a policy, or the name of a permission profile. */
  rights: Pick<CommandExecParams, 'sandboxPolicy' | 'permissionProfile'>
  /** Variables that it has whatever the person's policy says. */
  env: Readonly<Record<string, string>>
  /** Variables that it has otherwise than the app-server. */
  forCommands: ShieldedEnvironment['forCommands']
  /** Told what the person has configured; true if the app-server has other rights, so that nothing is run. */
  onConfig(config: CommandConfig): boolean
  onOutput(bytes: Buffer, isStdout: boolean): void
}

/** How a command ended. `not-started`: codex could not run it, or died while it ran. */
type RanCommand = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & { durationMs: number }

/**
 * Runs one command in codex's own sandbox, on an app-server that has just been started, and closes that: closing it ends
 * what the command has started, but for what has left its session and is found by the mark. However it ends is a value;
 * `AGAIN`: nothing was run, as the app-server has other rights.
 */
async function runCommand(server: AppServer, options: CommandOptions): Promise<RanCommand | typeof AGAIN> {
  const { clock, signal, timeoutMs } = options
  const rpc = openRpc(server.stdout, server.stdin, clock, {
    onNotification: (method, params) => {
      if (method === OUTPUT) takeOutput(params, options.onOutput)
    },
    onRequest: () => ({}),
    onLine() {},
    onRubbish: line => options.log(`codex wrote a line that is not a message: ${line.slice(0, 200)}`),
  })
  void server.exit.then(() => rpc.dispose())
  const close = () => void server.close()
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()

  let startedAt: number | null = null
  const spent = () => ({ durationMs: startedAt === null ? 0 : Math.round(clock.monotonic() - startedAt) })
  try {
    const params = await prepare(rpc, options)
    if (params === AGAIN) return params
    startedAt = clock.monotonic()
    // A time-out of codex's own could not be told from a command that ends with its exit code, 124.
    const exitCode = exitCodeIn(await rpc.request('command/exec', params, Math.min(timeoutMs, LONGEST_WAIT_MS)))
    if (signal.aborted) return { kind: 'broken-off', ...spent() }
    return { kind: 'exited', exitCode, ...spent() }
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    if (signal.aborted) return { kind: 'broken-off', ...spent() }
    if (error.cause === 'deadline' && startedAt !== null) return { kind: 'timed-out', ...spent() }
    return { kind: 'not-started', problem: await problemOf(error, server), ...spent() }
  } finally {
    signal.removeEventListener('abort', close)
    await server.close()
  }
}

const AGAIN = Symbol('again')

/** The notification of what a command prints. */
export const OUTPUT = 'command/exec/outputDelta'
/** The most of codex's own words that is repeated, in characters. */
const WORDS = 500

async function prepare(rpc: Rpc, options: CommandOptions): Promise<CommandExecParams | typeof AGAIN> {
  const { command, directory, rights, env, forCommands, requestMs } = options
  await shakeHands(rpc, options)
  const ask: AskCodex = (method, params) => rpc.request(method, params, requestMs)
  const isOpen = Object.keys(forCommands).length === 0
  const config = isOpen ? NO_CONFIG : await readCommandConfig(ask, directory)
  if (options.onConfig(config)) return AGAIN
  return {
    command: [...command],
    cwd: directory,
    ...rights,
    env: { ...commandVariables(forCommands, config.policy, options.binary), ...env },
    processId: 'command',
    streamStdoutStderr: true,
    // What is over codex's bound is thrown away, and it is the end that tells how it went.
    disableOutputCap: true,
    disableTimeout: true,
  }
}

async function problemOf(error: RequestFailure, server: AppServer): Promise<string> {
  switch (error.cause) {
    case 'answered':
    case 'deadline':
      return refusalOf(error)
    case 'closed':
      return clipEnd(describeExit(await server.close()), WORDS)
  }
}

/** Why codex ran nothing, where it lives on. */
export function refusalOf(error: RequestFailure): string {
  if (error.cause === 'deadline') return error.message
  return clipEnd(`codex did not run it in its sandbox: ${messageOf(error)}`, WORDS)
}

/** Hands over what a notification of output holds. */
export function takeOutput(params: unknown, take: CommandOptions['onOutput']): void {
  const text = memberOf(params, 'deltaBase64')
  take(Buffer.from(typeof text === 'string' ? text : '', 'base64'), memberOf(params, 'stream') === 'stdout')
}

/** The exit code in an answer to `command/exec`; -1 where it says none, for then it did not end well. */
export function exitCodeIn(answer: unknown): number {
  const code = memberOf(answer, 'exitCode')
  return typeof code === 'number' ? code : -1
}

interface SandboxCommand {
  /** A line for a shell, run in the work directory. */
  run: string
  /** Whether it may use the network; never more than the rounds may. */
  network: boolean
  /** Whether it may write nothing at all, whatever the rounds may, and has no network; left out: what they may. */
  readOnly?: true | undefined
  /** Absolute paths that it may neither read nor make, where the sandbox can deny that; left out: none. */
  unreadable?: readonly string[] | undefined
  /** Variables that it has beside those of an agent's commands; left out: none. */
  env?: Readonly<Record<string, string>>
  timeoutMs: number
  /** Ends it, and all that it has started. */
  signal: AbortSignal
  /** Told all that it prints to its stdout, as it comes; left out: nobody is. */
  onStdout?(bytes: Buffer): void
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
  binary: { path: string; version: string }
}

/** Opens them; nothing is started before the first command, and nothing is left after each. */
export function openSandboxCommands(options: SandboxCommandsOptions): SandboxCommands {
  return new OneAtATime(options)
}

const OUTPUT_CHARACTERS = 16_000
/** How often a command is asked for of which nothing has run: once for other rights, once for a sandbox that could not be made. */
const MOST_TRIES = 3

class OneAtATime implements SandboxCommands {
  readonly #options: SandboxCommandsOptions
  readonly #rights: Rights
  readonly #closed = new AbortController()
  /** Two at once in one directory fail in the sandbox now and then. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: SandboxCommandsOptions) {
    this.#options = options
    this.#rights = new Rights({ ...options, work: 'command' })
  }

  run(command: SandboxCommand): Promise<CommandEnd> {
    const end = this.#last.then(() => this.#run(command))
    this.#last = end.catch(() => {})
    return end
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort()
    await this.#last
    await this.#rights.servers.close()
  }

  async #run(command: SandboxCommand): Promise<CommandEnd> {
    const signal = AbortSignal.any([command.signal, this.#closed.signal])
    for (let tries = 1; ; tries++) {
      if (signal.aborted) return { kind: 'broken-off', durationMs: 0, output: '' }
      const end = await this.#tryRun({ ...command, signal }, tries < MOST_TRIES)
      await this.#rights.servers.sweep()
      if (end !== AGAIN) return end
    }
  }

  /** @param mayTryAgain whether nothing was run (`AGAIN`) may be its end */
  async #tryRun(command: SandboxCommand, mayTryAgain: boolean): Promise<CommandEnd | typeof AGAIN> {
    const { run, network, readOnly, unreadable = [], timeoutMs, signal, onStdout } = command
    const { platform, directory, binary } = this.#options
    const { sandbox, shielded, servers } = this.#rights
    const choice = { ...sandbox, network: sandbox.network && network && !readOnly }
    const profile = hidingProfile(unreadable, directory, choice, { readOnly })
    const output = new CommandOutput()
    const started = new StartMark(platform)
    const { server, mark } = this.#rights.start(undefined, profile?.overrides)
    servers.works(server)
    const line = shellLine(run, platform, onStdout === undefined ? 'as-one' : 'apart', this.#options.env)
    const end = await runCommand(server, {
      ...this.#options,
      binary: binary.path,
      command: line.command,
      rights:
        profile === null
          ? { sandboxPolicy: commandPolicy(readOnly ? { ...sandbox, mode: 'read-only' } : sandbox, network) }
          : { permissionProfile: profile.name },
      env: { ...command.env, [MARK_VARIABLE]: mark, ...line.env },
      forCommands: shielded.forCommands,
      timeoutMs,
      signal,
      onConfig: config => mayTryAgain && this.#rights.learn(config),
      onOutput(bytes, isStdout) {
        const printed = isStdout ? started.take(bytes) : bytes
        output.push(printed)
        if (isStdout) onStdout?.(printed)
      },
    })
    const text = output.text(OUTPUT_CHARACTERS)
    if (end !== AGAIN && (end.kind !== 'exited' || started.isStarted)) return { ...end, output: text }
    // Another sandbox that was made in the same moment may be why.
    if (end === AGAIN || mayTryAgain) return AGAIN
    const { problem, mend } = await describeProblem(text, { directory, sandbox, platform })
    return { kind: 'not-started', problem: `${problem} ${mend}`, durationMs: end.durationMs, output: '' }
  }
}
