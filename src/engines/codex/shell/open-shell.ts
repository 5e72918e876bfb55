import { stripVTControlCharacters } from 'node:util'
import type { CommandExecParams } from '../../../../protocol/codex.ts'
import { messageOf, systemErrorCode } from '../../../base/errors.ts'
import { clipEnd, wholeCharacters } from '../../../base/text.ts'
import type { SandboxChoice } from '../../../core/shapes/sandbox.ts'
import type { Shell, ShellCommand, ShellEnd } from '../../../core/shapes/shell.ts'
import { MARK_VARIABLE } from '../../../platform/end-processes.ts'
import { StartMark, shellLine } from '../../../platform/run-process.ts'
import { type AppServer, describeExit, LONGEST_WAIT_MS, Tail } from '../app-server.ts'
import { Rights } from '../sandbox/rights.ts'
import { describeProblem, type SandboxPlace } from '../sandbox/try-sandbox.ts'
import { commandPolicy, commandVariables, type HidingProfile, hidingProfile } from '../sandbox.ts'
import { exitCodeIn, OUTPUT, refusalOf, type SandboxCommandsOptions, takeOutput } from '../sandbox-commands.ts'
import { readCommandConfig, shakeHands } from '../thread-start.ts'
import { openRpc, RequestFailure, type Rpc, stringMember } from '../wire.ts'
import { TemporaryFolders } from './temporary-folders.ts'

interface ShellOptions extends SandboxCommandsOptions {
  binary: { path: string; version: string }
  /** Absolute root of the temporary folders of commands with secrets, out of agents' reach. */
  temporary: string
}

/**
 * Opens the shell of a session. Its first command starts one app-server for all commands. Another runs those with their own
 * variables, whose temporary files no agent can read.
 */
export function openShell(options: ShellOptions): Shell {
  return new CodexShell(options)
}

/** A command that did not run: codex had ended before the request, had other rights, or could not start it. */
type NotAsked = { problem: string; hasOtherRights?: true }

class CodexShell implements Shell {
  readonly #options: ShellOptions
  readonly #setup: DoorSetup
  readonly #running = new Set<Promise<unknown>>()
  readonly #closed = new AbortController()
  readonly #temporary: TemporaryFolders
  /** Doors by the temporary folder of their commands; null: the usual one. */
  readonly #doors = new Map<string | null, Door>()

  constructor(options: ShellOptions) {
    const rights = new Rights({ ...options, work: 'command' })
    this.#options = options
    const { owner, platform, log } = options
    this.#temporary = new TemporaryFolders({ root: options.temporary, pid: owner.pid, platform, log })
    const hasNamespaces = options.platform === 'linux' && options.sandbox.mode !== 'danger-full-access'
    this.#setup = { options, rights, endsAll: hasNamespaces }
  }

  async run(command: ShellCommand): Promise<ShellEnd> {
    const signal = AbortSignal.any([command.signal, this.#closed.signal])
    const end = this.#run({ ...command, signal })
    this.#running.add(end)
    try {
      return await end
    } finally {
      this.#running.delete(end)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort()
    await Promise.allSettled(this.#running)
    await this.#setup.rights.servers.close()
    await this.#temporary[Symbol.asyncDispose]()
  }

  async #run(command: ShellCommand): Promise<ShellEnd> {
    const { platform, sandbox } = this.#options
    if (isEmpty(command.env)) return await this.#runIn(null, command)
    if (platform === 'win32') return notStarted('A command cannot be given a secret on Windows.')
    // In this mode, commands write nothing.
    if (sandbox.mode === 'read-only') return await this.#runIn(null, command)
    try {
      const { path, within, leave } = await this.#temporary.make()
      try {
        const env = { ...command.env, TMPDIR: path, TMP: path, TEMP: path }
        return await this.#runIn(within, { ...command, env })
      } finally {
        leave()
      }
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return notStarted(`There is no temporary folder for it: ${messageOf(error)}.`)
    }
  }

  async #runIn(temporary: string | null, command: ShellCommand): Promise<ShellEnd> {
    const nothing = { durationMs: 0, stdout: '', stderr: '' }
    let problem = ''
    for (let [tries, changes] = [0, 0]; tries < 2 && changes < 2; ) {
      if (command.signal.aborted) return { kind: 'broken-off', ...nothing }
      const end = await this.#doorFor(command.unreadable, temporary).run(command)
      if ('kind' in end) return end
      problem = end.problem
      if (end.hasOtherRights) changes++
      else tries++
    }
    return command.signal.aborted ? { kind: 'broken-off', ...nothing } : notStarted(problem)
  }

  /** Returns the door that denies these paths. Retires an unsuitable one, which ends after its commands. */
  #doorFor(unreadable: readonly string[], temporary: string | null): Door {
    const { sandbox } = this.#setup.rights
    const profile = hidingProfile(unreadable, this.#options.directory, sandbox, { temporary })
    const door = this.#doors.get(temporary)
    if (door !== undefined && !door.isGone && String(door.profile?.overrides) === String(profile?.overrides))
      return door
    door?.retire()
    const other = new Door(this.#setup, profile, temporary)
    this.#doors.set(temporary, other)
    return other
  }
}

function notStarted(problem: string): ShellEnd {
  return { kind: 'not-started', problem, durationMs: 0, stdout: '', stderr: '' }
}

interface DoorSetup {
  options: ShellOptions
  rights: Rights
  /** True if the sandbox ends all processes of a command: each command has its own namespace. */
  endsAll: boolean
}

interface Ready {
  /** Variables of all commands, in addition to each one's own; null: hidden. */
  variables: Record<string, string | null>
}

/** The app-server of commands with the same unreadable paths. */
class Door {
  /** Profile that denies reading; null: none. */
  readonly profile: HidingProfile | null
  readonly #temporary: string | null
  readonly #setup: DoorSetup
  /** Sandbox at the start of the app-server. */
  readonly #sandbox: SandboxChoice
  /** Variables of commands that differ from the app-server's. */
  readonly #forCommands: Readonly<Record<string, string | null>>
  readonly #server: AppServer
  readonly #rpc: Rpc
  readonly #ready: Promise<Ready | NotAsked>
  /** Receivers of the output of running commands. */
  readonly #sinks = new Map<string, (params: unknown) => void>()
  #began = 0
  #isGone = false
  #isRetired = false

  constructor(setup: DoorSetup, profile: HidingProfile | null, temporary: string | null) {
    const { clock, log } = setup.options
    const { servers, sandbox, shielded } = setup.rights
    // At the level `trace`, codex logs each request, and one contains a command's secret variables.
    const { RUST_LOG, ...quiet } = shielded.env
    this.profile = profile
    this.#temporary = temporary
    this.#setup = setup
    this.#sandbox = sandbox
    this.#forCommands = { ...shielded.forCommands, ...(RUST_LOG === undefined ? {} : { RUST_LOG }) }
    this.#server = servers.start(quiet, undefined, profile?.overrides).server
    this.#rpc = openRpc(this.#server.stdout, this.#server.stdin, clock, {
      onNotification: (method, params) => {
        if (method === OUTPUT) this.#sinks.get(stringMember(params, 'processId') ?? '')?.(params)
      },
      onRequest: () => ({}),
      onLine() {},
      // Do not log the line: it may contain output of a command.
      onRubbish: line => log(`codex wrote a line of ${line.length} characters that is not a message.`),
    })
    void this.#server.exit.then(() => {
      this.#isGone = true
      this.#rpc.dispose()
    })
    this.#ready = this.#start()
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Accepts no more commands, and ends after the last one. */
  retire(): void {
    this.#isRetired = true
    if (this.#sinks.size === 0) this.#close()
  }

  async run(command: ShellCommand): Promise<ShellEnd | NotAsked> {
    const { clock, controlGroup } = this.#setup.options
    const { servers } = this.#setup.rights
    const id = `command-${this.#began++}`
    const [stdout, stderr] = [new StreamEnd(command.mostCharacters), new StreamEnd(command.mostCharacters)]
    const started = new StartMark(this.#setup.options.platform)
    this.#sinks.set(id, params =>
      takeOutput(params, (bytes, isStdout) => (isStdout ? stdout.push(started.take(bytes)) : stderr.push(bytes))),
    )
    const over = controlGroup?.works()
    const mark = servers.mark()
    try {
      const ready = await unlessAborted(this.#ready, command.signal)
      if (ready === null) return { kind: 'broken-off', durationMs: 0, stdout: '', stderr: '' }
      if ('problem' in ready) return ready
      if (this.#isGone) return { problem: describeExit(await this.#server.exit) }
      const began = clock.monotonic()
      const params = this.#paramsOf(id, command, { ...ready.variables, [MARK_VARIABLE]: mark })
      const end = await this.#await(params, command, mark)
      const durationMs = Math.round(clock.monotonic() - began)
      if (end.kind === 'exited' && !started.isStarted) {
        const { problem, mend } = await describeProblem(stderr.text(), this.#place)
        return { problem: `${problem} ${mend}` }
      }
      return { ...end, durationMs, stdout: stdout.text(), stderr: stderr.text() }
    } finally {
      over?.()
      this.#sinks.delete(id)
      if (this.#isRetired && this.#sinks.size === 0) this.#close()
      servers.hasEnded(mark)
      // Skip the search if the sandbox ends everything: the search takes longer than a command.
      if (!this.#setup.endsAll || this.#isGone) await servers.sweep()
    }
  }

  get #place(): SandboxPlace {
    const { directory, platform } = this.#setup.options
    return { directory, platform, sandbox: this.#sandbox }
  }

  async #start(): Promise<Ready | NotAsked> {
    const { options, rights } = this.#setup
    const { directory, requestMs } = options
    try {
      await shakeHands(this.#rpc, options)
      if (Object.keys(this.#forCommands).length === 0) return { variables: {} }
      const ask = (method: string, params: object) => this.#rpc.request(method, params, requestMs)
      const config = await readCommandConfig(ask, directory)
      if (rights.learn(config)) {
        this.#close()
        return { problem: 'The configuration of codex has changed.', hasOtherRights: true }
      }
      return { variables: commandVariables(this.#forCommands, config.policy, options.binary.path) }
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      this.#close()
      return { problem: await this.#problemOf(error) }
    }
  }

  #paramsOf(
    processId: string,
    { run, env }: ShellCommand,
    variables: Record<string, string | null>,
  ): CommandExecParams {
    const { directory, platform, env: own } = this.#setup.options
    const line = shellLine(run, platform, 'apart', own)
    return {
      command: isEmpty(env) ? line.command : readingVariables(line.command),
      cwd: directory,
      ...(this.profile === null
        ? { sandboxPolicy: commandPolicy(this.#sandbox, true, this.#temporary) }
        : { permissionProfile: this.profile.name }),
      env: { ...variables, ...line.env },
      processId,
      ...(isEmpty(env) ? {} : { streamStdin: true }),
      streamStdoutStderr: true,
      disableOutputCap: true,
      disableTimeout: true,
    }
  }

  /** Resolves with the first of: its end, its timeout, the signal. */
  async #await(params: CommandExecParams, { env, timeoutMs, signal }: ShellCommand, mark: string): Promise<Ending> {
    const { clock } = this.#setup.options
    const settled = new AbortController()
    const answer = this.#rpc.request('command/exec', params, LONGEST_WAIT_MS).then(
      (said): Ending => ({ kind: 'exited', exitCode: exitCodeIn(said) }),
      async (error: unknown): Promise<Ending> => {
        if (!(error instanceof RequestFailure)) throw error
        return { kind: 'not-started', problem: await this.#problemOf(error) }
      },
    )
    const stop = AbortSignal.any([signal, settled.signal])
    void answer.then(() => settled.abort())
    const late = clock.wait(Math.min(timeoutMs, LONGEST_WAIT_MS), stop).then(() => null)
    try {
      if (!isEmpty(env)) {
        const problem = await Promise.race([this.#handVariables(params.processId, env, stop), late])
        if (problem !== null) {
          await this.#terminate(params.processId, answer, mark)
          return { kind: 'not-started', problem }
        }
      }
      const ended = await Promise.race([answer, late])
      if (ended !== null) return ended
      await this.#terminate(params.processId, answer, mark)
      return signal.aborted ? { kind: 'broken-off' } : { kind: 'timed-out' }
    } finally {
      settled.abort()
    }
  }

  /** Writes the variables into a command's input. Resolves with a problem; null: none, or the command has ended. */
  async #handVariables(processId: unknown, env: ShellCommand['env'], stop: AbortSignal): Promise<string | null> {
    const { clock, requestMs } = this.#setup.options
    const deltaBase64 = Buffer.from(linesOf(env)).toString('base64')
    let problem: string | null = null
    for (let tries = 0; tries < MOST_WRITES && !stop.aborted; tries++) {
      try {
        await this.#rpc.request('command/exec/write', { processId, deltaBase64, closeStdin: true }, requestMs)
        return null
      } catch (error) {
        if (!(error instanceof RequestFailure)) throw error
        if (error.cause === 'closed') return null
        // Codex has not started the command yet.
        problem = refusalOf(error)
        await clock.wait(WRITE_AGAIN_MS, stop)
      }
    }
    return stop.aborted ? null : problem
  }

  /** Has codex end one command. If that fails, ends the app-server with all its commands. */
  async #terminate(processId: unknown, answer: Promise<unknown>, mark: string): Promise<void> {
    const { options, rights } = this.#setup
    const { clock, endMs, requestMs } = options
    this.#rpc.request('command/exec/terminate', { processId }, requestMs).catch(() => {})
    const settled = new AbortController()
    void answer.then(() => settled.abort())
    await clock.wait(endMs, settled.signal)
    if (settled.signal.aborted) return
    // Codex waits for processes that left the command's session and still hold its output.
    rights.servers.hasEnded(mark)
    await rights.servers.sweep()
    await clock.wait(endMs, settled.signal)
    if (settled.signal.aborted) return
    this.#close()
    await this.#server.exit
  }

  #close(): void {
    this.#isGone = true
    void this.#server.close()
  }

  async #problemOf(error: RequestFailure): Promise<string> {
    if (error.cause !== 'closed') return refusalOf(error)
    return clipEnd(describeExit(await this.#server.close()), 500)
  }
}

const MOST_WRITES = 100
const WRITE_AGAIN_MS = 50

function isEmpty(env: ShellCommand['env']): boolean {
  return Object.keys(env).length === 0
}

/**
 * Wraps a line in a shell that first reads variables from its input and then closes it. Codex logs the `env` and arguments
 * of a command, but not its input. Uses shell built-ins only.
 */
function readingVariables([shell = '', flag = '', script = '', ...rest]: readonly string[]): string[] {
  const reads = 'while IFS= read -r __name && IFS= read -r __value; do'
  const sets = `__value=$(printf '%b_' "$__value"); export "$__name=\${__value%_}"; done; unset __name __value`
  return [shell, flag, `${reads} ${sets}; exec </dev/null; ${script}`, ...rest]
}

/** Encodes each name and value on a line, the value for `printf %b`. */
function linesOf(env: ShellCommand['env']): string {
  const escaped = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return Object.entries(env)
    .map(([name, value]) => `${name}\n${escaped(value)}\n`)
    .join('')
}

/** Returns the result of the promise; null if the signal comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise: aborted, resolve } = Promise.withResolvers<null>()
  const leave = () => resolve(null)
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', leave))
}

type Ending =
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }

/** Most bytes of a character in UTF-8. */
const BYTES_A_CHARACTER = 4
/** Room for terminal control sequences that are removed, in bytes. */
const MORE_BYTES = 64 * 1024

/** The last characters of a stream of any length, as plain text. */
class StreamEnd {
  readonly #most: number
  readonly #bytes: number
  readonly #tail: Tail
  #length = 0

  constructor(mostCharacters: number) {
    this.#most = mostCharacters
    this.#bytes = mostCharacters * BYTES_A_CHARACTER + MORE_BYTES
    this.#tail = new Tail(this.#bytes)
  }

  push(bytes: Buffer): void {
    this.#length += bytes.length
    this.#tail.push(bytes)
  }

  /**
   * Returns the text without colours and control characters, except tabs and line ends. A cut text has exactly the maximal
   * length or is empty. So a reader knows that a cut word can only be at its start.
   */
  text(): string {
    const isCut = this.#length > this.#bytes
    // A secret that is cut inside a character could not be found.
    const written = wholeCharacters(this.#tail.bytes()).toString('utf8')
    const text = stripVTControlCharacters(written).replace(CONTROL, '')
    if (isCut && text.length < this.#most) return ''
    return text.slice(-this.#most).toWellFormed()
  }
}

const CONTROL = /[^\t\n\r\P{Cc}]/gu
