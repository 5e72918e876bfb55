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

/** `directory`: where the command runs and its app-server starts, because a sandbox leaves that writable. */
interface CommandOptions
  extends Pick<CodexOptions, 'directory' | 'codemachineVersion' | 'clock' | 'requestMs' | 'log'>,
    Pick<SandboxCommand, 'timeoutMs' | 'signal'> {
  /** Path of the native codex. */
  binary: string
  /** Program and arguments. */
  command: readonly string[]
  /** Its rights: a policy or a permission profile's name. */
  rights: Pick<CommandExecParams, 'sandboxPolicy' | 'permissionProfile'>
  /** Variables that it has regardless of the person's policy. */
  env: Readonly<Record<string, string>>
  /** Variables that differ from the app-server's. */
  forCommands: ShieldedEnvironment['forCommands']
  /** Called with the person's configuration. Returns true if the app-server has other rights, so that nothing may run. */
  onConfig(config: CommandConfig): boolean
  onOutput(bytes: Buffer, isStdout: boolean): void
}

/** The end of a command. `not-started`: codex could not run it, or died during it. */
type RanCommand = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & { durationMs: number }

/**
 * Runs one command in codex's own sandbox on a new app-server, and closes that. The close ends the command's processes; the
 * mark finds those that have left its session. Each end is a value; `AGAIN`: nothing ran, because the app-server has other
 * rights.
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
    // Codex's own time-out would look like a command's exit code 124.
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

/** Notification of a command's output. */
export const OUTPUT = 'command/exec/outputDelta'
/** Longest repeated text of codex, in characters. */
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
    // Codex drops output above its limit, but the end of the output shows the result.
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

/** Returns why codex ran nothing although it still lives. */
export function refusalOf(error: RequestFailure): string {
  if (error.cause === 'deadline') return error.message
  return clipEnd(`codex did not run it in its sandbox: ${messageOf(error)}`, WORDS)
}

/** Passes on the bytes of an output notification. */
export function takeOutput(params: unknown, take: CommandOptions['onOutput']): void {
  const text = memberOf(params, 'deltaBase64')
  take(Buffer.from(typeof text === 'string' ? text : '', 'base64'), memberOf(params, 'stream') === 'stdout')
}

/** Returns the exit code in an answer to `command/exec`; -1 if it is missing, because that was no good end. */
export function exitCodeIn(answer: unknown): number {
  const code = memberOf(answer, 'exitCode')
  return typeof code === 'number' ? code : -1
}

interface SandboxCommand {
  /** Shell line to run in the work directory. */
  run: string
  /** True: it may use the network if the rounds may. */
  network: boolean
  /** True: it may write nothing and use no network; undefined: as the rounds. */
  readOnly?: true | undefined
  /** Absolute paths that it may neither read nor create, if the sandbox can deny that; undefined: none. */
  unreadable?: readonly string[] | undefined
  /** Variables in addition to those of an agent's commands; undefined: none. */
  env?: Readonly<Record<string, string>>
  timeoutMs: number
  /** Ends it and all its processes. */
  signal: AbortSignal
  /** Called with each piece of its stdout; undefined: not called. */
  onStdout?(bytes: Buffer): void
}

/**
 * The end of a command and the last lines of both its streams, at most 16,000 characters of plain text. More than is kept,
 * so that secrets are removed before the cut. `not-started`: nothing could run, or codex died during it. A missing program
 * is exit code 127.
 */
export type CommandEnd = RanCommand & { output: string }

/** Runs codemachine's own lines in the sandbox of the rounds, one at a time. Disposal interrupts them. */
export interface SandboxCommands extends AsyncDisposable {
  /** Resolves when none of its known processes is left. Never rejects because of the command or codex. */
  run(command: SandboxCommand): Promise<CommandEnd>
}

export interface SandboxCommandsOptions extends CodexOptions {
  /** Directory in which agents work, if it is not `directory`: codex may use no program there. */
  agentsDirectory?: string
  binary: { path: string; version: string }
}

/** Opens them; nothing starts before the first command, and nothing is left after each. */
export function openSandboxCommands(options: SandboxCommandsOptions): SandboxCommands {
  return new OneAtATime(options)
}

const OUTPUT_CHARACTERS = 16_000
/** Most requests of a command that did not run: one more for other rights, one more for a failed sandbox. */
const MOST_TRIES = 3

class OneAtATime implements SandboxCommands {
  readonly #options: SandboxCommandsOptions
  readonly #rights: Rights
  readonly #closed = new AbortController()
  /** End of the last command: two at once in one directory sometimes fail in the sandbox. */
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
    // A sandbox that was made at the same time may be the cause.
    if (end === AGAIN || mayTryAgain) return AGAIN
    const { problem, mend } = await describeProblem(text, { directory, sandbox, platform })
    return { kind: 'not-started', problem: `${problem} ${mend}`, durationMs: end.durationMs, output: '' }
  }
}
