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
  /** Where commands with secrets have their temporary folders: absolute, and out of reach of agents. */
  temporary: string
}

/**
 * Opens the shell of a session: one app-server, started with the first command, that runs all of them, and one for those with
 * variables of their own, which write their temporary files where no agent can read.
 */
export function openShell(options: ShellOptions): Shell {
  return new CodexShell(options)
}

/** A command that nothing came of: codex had gone before it could be asked to run it, had other rights, or could not start it. */
type NotAsked = { problem: string; hasOtherRights?: true }

class CodexShell implements Shell {
  readonly #options: ShellOptions
  readonly #setup: DoorSetup
  readonly #running = new Set<Promise<unknown>>()
  readonly #closed = new AbortController()
  readonly #temporary: TemporaryFolders
  /** By the temporary folder of their commands; null: the usual one. */
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
    // It writes nowhere.
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

  /** The one that denies these paths. Another ends when what runs in it has ended. */
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
  /** Whether the sandbox ends all that a command has started: each has a namespace of its own. */
  endsAll: boolean
}

interface Ready {
  /** Of all commands, beside those that each has of its own; null: not to be seen. */
  variables: Record<string, string | null>
}

/** The app-server of commands that may not read the same paths. */
class Door {
  /** What denies reading; null: nothing does. */
  readonly profile: HidingProfile | null
  readonly #temporary: string | null
  readonly #setup: DoorSetup
  /** As it was started with them. */
  readonly #sandbox: SandboxChoice
  /** Variables that commands have otherwise than the app-server. */
  readonly #forCommands: Readonly<Record<string, string | null>>
  readonly #server: AppServer
  readonly #rpc: Rpc
  readonly #ready: Promise<Ready | NotAsked>
  /** What takes the output of each that runs. */
  readonly #sinks = new Map<string, (params: unknown) => void>()
  #began = 0
  #isGone = false
  #isRetired = false

  constructor(setup: DoorSetup, profile: HidingProfile | null, temporary: string | null) {
    const { clock, log } = setup.options
    const { servers, sandbox, shielded } = setup.rights
    // At the level `trace` codex writes each request into its log, and what a command alone is to have is in one.
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
      // What a command prints may be in it.
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

  /** Takes no more commands, and ends when none runs in it. */
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
      // What a sandbox ends with its command need not be looked for before the next: that takes longer than a command.
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

  /** The first that comes: its end, its time, the signal. */
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

  /** Writes them into the input of a command; why that did not work, null if it did or the command has ended before it. */
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
        // Codex has not started it yet.
        problem = refusalOf(error)
        await clock.wait(WRITE_AGAIN_MS, stop)
      }
    }
    return stop.aborted ? null : problem
  }

  /** Has codex end one command; where it does not, the app-server is ended, with all that runs in it. */
  async #terminate(processId: unknown, answer: Promise<unknown>, mark: string): Promise<void> {
    const { options, rights } = this.#setup
    const { clock, endMs, requestMs } = options
    this.#rpc.request('command/exec/terminate', { processId }, requestMs).catch(() => {})
    const settled = new AbortController()
    void answer.then(() => settled.abort())
    await clock.wait(endMs, settled.signal)
    if (settled.signal.aborted) return
    // Codex waits for what has left the session of a command and holds its output.
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
 * The same line in a shell that first reads variables from its input, and then has none: codex writes the `env` of a
 * command into its log, and the arguments too, but not what is written to it. With nothing but what is built into a shell.
 */
function readingVariables([shell = '', flag = '', script = '', ...rest]: readonly string[]): string[] {
  const reads = 'while IFS= read -r __name && IFS= read -r __value; do'
  const sets = `__value=$(printf '%b_' "$__value"); export "$__name=\${__value%_}"; done; unset __name __value`
  return [shell, flag, `${reads} ${sets}; exec </dev/null; ${script}`, ...rest]
}

/** A name and its value on a line each, the value as `printf %b` reads it. */
function linesOf(env: ShellCommand['env']): string {
  const escaped = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return Object.entries(env)
    .map(([name, value]) => `${name}\n${escaped(value)}\n`)
    .join('')
}

/** What the promise resolves with; null if the signal comes first. */
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

/** Of a character that UTF-8 needs the most bytes for. */
const BYTES_A_CHARACTER = 4
/** Room for what steers a terminal and is left out of the text. */
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
   * Without colours and control characters, but for tabs and line ends. What is not the whole has exactly the most
   * characters, or is empty: so a reader who looks for a word in it knows that one which is cut stands at the beginning.
   */
  text(): string {
    const isCut = this.#length > this.#bytes
    // A secret that was cut within a character would not be found.
    const written = wholeCharacters(this.#tail.bytes()).toString('utf8')
    const text = stripVTControlCharacters(written).replace(CONTROL, '')
    if (isCut && text.length < this.#most) return ''
    return text.slice(-this.#most).toWellFormed()
  }
}

const CONTROL = /[^\t\n\r\P{Cc}]/gu
