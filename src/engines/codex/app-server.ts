import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { StrayFinder } from '../../core/engine.ts'
import type { SandboxChoice } from '../../core/shapes/sandbox.ts'
import { endMarked, endTree, MARK_VARIABLE, makeMark } from '../../platform/end-processes.ts'
import type { ProcessIdentity } from '../../platform/processes.ts'

/** Number of last bytes of stderr that are kept. */
const STDERR_BYTES = 32 * 1024
/** Time that pipes may stay open after the end of the process, ms: leftover processes can hold them. */
const PIPE_GRACE_MS = 250
/** Delay between SIGTERM and SIGKILL, ms. */
const KILL_GRACE_MS = 1_000
/** Delay after SIGKILL until the process is given up, ms: the kernel may hold it while a disk does not answer. */
const GIVE_UP_MS = 5_000

/** Longest time of a timer, ms. */
export const LONGEST_WAIT_MS = 2 ** 31 - 1

/** The end of an app-server. */
export type AppServerExit =
  | { reason: 'not-started'; error: Error; stderr: string }
  | { reason: 'exited'; code: number; stderr: string }
  | { reason: 'killed'; signal: string; stderr: string }
  /** The process survived SIGKILL or hangs in the kernel; it is left behind. */
  | { reason: 'not-ended'; stderr: string }

/**
 * One `codex app-server` process. One owner, who closes it.
 *
 *     running ──close()──▶ stdin closed ──endMs──▶ SIGTERM ──1 s──▶ SIGKILL ──5 s──▶ left behind
 *        │                      │                     │                │
 *        └──────────────────────┴──────── dies ───────┴────────────────┴──▶ ended
 *
 * `exit` resolves in every case, when it has ended or is left behind, and never rejects.
 */
export interface AppServer {
  readonly pid: number | undefined
  readonly stdin: Writable
  readonly stdout: Readable
  readonly exit: Promise<AppServerExit>
  /** Ends the process and its group; resolves like `exit`. Can be called repeatedly. */
  close(): Promise<AppServerExit>
  /** Returns the last 32 KiB of stderr. */
  stderr(): string
}

export interface AppServerOptions {
  /** The native binary. */
  path: string
  /** Arguments before `command`. */
  args: readonly string[]
  /** Subcommand of codex with its arguments. Default: `app-server`. */
  command?: readonly string[]
  env: NodeJS.ProcessEnv
  directory: string
  clock: Clock
  /** Delay between the close of stdin and SIGTERM, ms. */
  endMs: number
  /** Sends a signal to the process and its group (platform/processes). */
  signalTree: (pid: number, signal: 'SIGTERM' | 'SIGKILL') => void | Promise<void>
}

/** Starts an app-server in a process group of its own, so that Ctrl+C in the terminal does not reach it. Never throws. */
export function startAppServer(options: AppServerOptions): AppServer {
  const spawned = spawnChild(options)
  if (spawned instanceof Promise) return neverStarted(spawned)
  const child = spawned
  const tail = new Tail(STDERR_BYTES)
  child.stderr.on('data', (chunk: Buffer) => tail.push(chunk))
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})

  const { promise: exit, resolve: resolveExit } = Promise.withResolvers<AppServerExit>()
  child.once('error', error => {
    if (child.pid === undefined) resolveExit({ reason: 'not-started', error, stderr: '' })
  })
  child.once('exit', (code, signal) => {
    const pipes = new AbortController()
    child.once('close', () => pipes.abort())
    void options.clock.wait(PIPE_GRACE_MS, pipes.signal).then(() => {
      closePipes()
      const stderr = tail.text()
      resolveExit(
        code === null ? { reason: 'killed', signal: signal ?? 'unknown', stderr } : { reason: 'exited', code, stderr },
      )
    })
  })

  let closing: Promise<AppServerExit> | null = null
  return {
    pid: child.pid,
    stdin: child.stdin,
    stdout: child.stdout,
    exit,
    close: () => {
      closing ??= end()
      return closing
    },
    stderr: () => tail.text(),
  }

  async function end(): Promise<AppServerExit> {
    child.stdin.end()
    child.stdout.resume()
    const { pid } = child
    if (pid === undefined) return await exit
    for (const [graceMs, signal] of [
      [options.endMs, 'SIGTERM'],
      [KILL_GRACE_MS, 'SIGKILL'],
    ] as const) {
      if (await endsWithin(graceMs)) break
      await options.signalTree(pid, signal)
    }
    if (!(await endsWithin(GIVE_UP_MS))) leaveBehind()
    return await exit
  }

  /** Stops all waits for the end, also this process's own. */
  function leaveBehind(): void {
    closePipes()
    child.unref()
    resolveExit({ reason: 'not-ended', stderr: tail.text() })
  }

  function closePipes(): void {
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }

  async function endsWithin(ms: number): Promise<boolean> {
    const ended = new AbortController()
    const done = exit.then(() => {
      ended.abort()
      return true
    })
    return await Promise.race([done, options.clock.wait(ms, ended.signal).then(() => ended.signal.aborted)])
  }
}

/**
 * Returns the child, or why there is none. The system refuses in three ways. It throws (ENOTDIR), or emits an error from a
 * child without pipes (EMFILE) or with pipes (ENOENT). The caller handles the last.
 */
function spawnChild({
  path,
  args,
  command = ['app-server'],
  directory,
  env,
}: AppServerOptions): ChildProcessWithoutNullStreams | Promise<Error> {
  try {
    const child = spawn(path, [...args, ...command], {
      cwd: directory,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      windowsHide: true,
    })
    const { stderr }: { stderr: Readable | undefined } = child
    if (stderr !== undefined) return child
    return new Promise(resolve => child.once('error', resolve))
  } catch (error) {
    return Promise.resolve(error instanceof Error ? error : new Error(String(error)))
  }
}

function neverStarted(refusal: Promise<Error>): AppServer {
  const exit = refusal.then<AppServerExit>(error => ({ reason: 'not-started', error, stderr: '' }))
  return {
    pid: undefined,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    exit,
    close: () => exit,
    stderr: () => '',
  }
}

/** Collects the last `limit` bytes of a stream of any length. */
export class Tail {
  #chunks: Buffer[] = []
  #length = 0
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  push(chunk: Buffer): void {
    const part = chunk.length > this.#limit ? chunk.subarray(-this.#limit) : chunk
    this.#chunks.push(part)
    this.#length += part.length
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= this.#limit) {
      this.#length -= this.#chunks.shift()?.length ?? 0
    }
  }

  text(): string {
    return this.bytes().toString('utf8')
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks).subarray(-this.#limit)
  }
}

/** Options to run codex in a work directory. */
export interface CodexOptions {
  /** The native codex binary. */
  binary: { path: string }
  /** The person's `key=value` pairs for codex's `-c`. */
  overrides: readonly string[]
  /** The person's environment with `CODEX_HOME`, which agents' commands get. */
  env: NodeJS.ProcessEnv
  directory: string
  /** Sandbox of the rounds. */
  sandbox: SandboxChoice
  /** A folder that only app-servers search first for programs, not commands; undefined or null: none. */
  firstOnPath?: string | null
  /** Key of the records, and this process, for the marks of app-servers. */
  key: string
  owner: ProcessIdentity
  /** Finds leftover processes without the mark; undefined or null: they are not found. */
  controlGroup?: StrayFinder | null
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** Time for codex to end by itself, and then for its leftover processes, ms. */
  endMs: number
  log(message: string): void
  /** Called with a sentence for a person; undefined: it is logged. */
  onWarning?: ((sentence: string) => void) | undefined
  /** Called with ended commands, as in `EngineSetup`. */
  onEnded?: ((commands: readonly string[]) => void) | undefined
}

export interface AppServersOptions
  extends Pick<
    CodexOptions,
    | 'binary'
    | 'overrides'
    | 'directory'
    | 'key'
    | 'owner'
    | 'controlGroup'
    | 'platform'
    | 'clock'
    | 'endMs'
    | 'log'
    | 'onWarning'
    | 'onEnded'
  > {
  /** Purpose of each, for the log: `round`. */
  work: string
}

/** Matches codex's own processes (codex, sandbox, shells of commands) and processes that have ended. */
const OF_CODEX = /^$|^\S*(?:codex|bwrap)\S*(?: |$)/
/** Most processes that a warning names. */
const MOST_NAMED = 5

/** Shortest interval between automatic searches for leftover processes, ms. */
const SWEEP_MS = 5_000

/** Counter that makes the mark of each start unique in this process. */
let started = 0

/** Starts app-servers with a mark in their environment, and ends their leftover processes by that mark. */
export class AppServers {
  readonly #options: AppServersOptions
  readonly #running = new Set<AppServer>()
  /** Marks of ended app-servers whose leftovers have not been searched, with the pid of the app-server if there was one. */
  readonly #unswept = new Map<string, number | undefined>()
  readonly #closed = new AbortController()
  #sweeping: Promise<void> = Promise.resolve()
  #lastSweep = Number.NEGATIVE_INFINITY
  #sweepIsDue = false

  constructor(options: AppServersOptions) {
    this.#options = options
  }

  /**
   * Starts an app-server, or another codex (`AppServerOptions.command`); its owner closes it. Its leftovers are ended soon
   * after it.
   * @param env what it runs with, but for the mark
   * @param more `key=value` pairs that count before the person's
   */
  start(
    env: NodeJS.ProcessEnv,
    command?: readonly string[],
    more: readonly string[] = [],
  ): { server: AppServer; mark: string } {
    const { binary, overrides } = this.#options
    const args = [...overrides, ...more].flatMap(pair => ['-c', pair])
    return this.#start({ path: binary.path, args, ...(command && { command }) }, env)
  }

  /** Starts another program instead of codex with the person's rights: only if the rounds have full access. */
  startOther([path = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): { server: AppServer; mark: string } {
    return this.#start({ path, args, command: [] }, env)
  }

  #start(
    program: Pick<AppServerOptions, 'path' | 'args' | 'command'>,
    env: NodeJS.ProcessEnv,
  ): { server: AppServer; mark: string } {
    const { directory, platform, clock, endMs, log } = this.#options
    const mark = this.mark()
    const server = startAppServer({
      ...program,
      env: { ...env, [MARK_VARIABLE]: mark },
      directory,
      clock,
      endMs,
      signalTree: (pid, signal) =>
        endTree(pid, signal, platform).then(
          () => {},
          (error: unknown) => log(`Could not send ${signal} to codex (${pid}): ${messageOf(error)}`),
        ),
    })
    this.#running.add(server)
    void server.exit.then(({ reason }) => {
      if (reason === 'not-ended')
        log(
          `codex (${server.pid}) has not ended ${GIVE_UP_MS / 1000} s after it was killed; codemachine gives up on it.`,
        )
      this.#running.delete(server)
      this.#unswept.set(mark, server.pid)
      this.#sweepSoon()
    })
    return { server, mark }
  }

  /** Returns a mark for one command of a shared app-server; call `hasEnded` at its end. */
  mark(): string {
    const { key, owner } = this.#options
    return makeMark({ key, owner, n: started++ })
  }

  /** Schedules a sweep that ends the processes with this mark. */
  hasEnded(mark: string): void {
    this.#unswept.set(mark, undefined)
    this.#sweepSoon()
  }

  /** Notes that an agent's commands run in it from now until its end. */
  works(server: AppServer): void {
    const over = this.#options.controlGroup?.works()
    if (over !== undefined) void server.exit.then(over)
  }

  isRunning(server: AppServer): boolean {
    return this.#running.has(server)
  }

  /** Ends the leftovers of ended app-servers. A failed search is repeated next time. */
  sweep(): Promise<void> {
    this.#lastSweep = this.#options.clock.monotonic()
    this.#sweeping = this.#sweeping.then(async () => {
      const marks = new Map(this.#unswept)
      this.#unswept.clear()
      try {
        await this.#endLeftovers(marks)
      } catch (error) {
        for (const [mark, pid] of marks) this.#unswept.set(mark, pid)
        this.#options.log(`Could not look for what ${this.#options.work}s left running: ${messageOf(error)}`)
      }
    })
    return this.#sweeping
  }

  /** Ends all app-servers; resolves when no process is left. */
  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all([...this.#running].map(server => server.close()))
    await this.sweep()
  }

  /** Sweeps now, or after the interval since the last sweep. */
  #sweepSoon(): void {
    if (this.#sweepIsDue || this.#closed.signal.aborted) return
    this.#sweepIsDue = true
    const { clock } = this.#options
    const ms = Math.max(0, this.#lastSweep + SWEEP_MS - clock.monotonic())
    void clock.wait(ms, this.#closed.signal).then(() => {
      this.#sweepIsDue = false
      if (!this.#closed.signal.aborted) void this.sweep()
    })
  }

  /** Ends leftover processes: by the mark of their app-server, or without it by its session or control group. */
  async #endLeftovers(marks: ReadonlyMap<string, number | undefined>): Promise<void> {
    if (marks.size === 0) return
    const { clock, platform, owner, endMs, controlGroup } = this.#options
    const options = { clock, platform, self: owner.pid, graceMs: endMs }
    const leaders = new Set([...marks.values()].filter(pid => pid !== undefined))
    this.#tellOf(await endMarked(MARK_VARIABLE, value => marks.has(value), options, leaders))
    if (controlGroup) this.#tellOf(await controlGroup.endStrays())
  }

  #tellOf({ ended, left }: Awaited<ReturnType<StrayFinder['endStrays']>>): void {
    const { work, log, onWarning = log, onEnded } = this.#options
    const commands = ended.map(({ command }) => command).filter(command => !OF_CODEX.test(command))
    if (work === 'round' && commands.length > 0) onEnded?.([...new Set(commands)].slice(0, MOST_NAMED))
    for (const { pid, command } of ended) log(`Ended what a ${work} left running: ${command} (${pid}).`)
    const named = left.slice(0, MOST_NAMED).map(({ pid, command }) => `${command} (${pid})`)
    const more = left.length > named.length ? ` and ${left.length - named.length} more` : ''
    if (left.length > 0)
      onWarning(`A ${work} left processes running that codemachine cannot end: ${named.join(', ')}${more}.`)
  }
}

/** Matches lines of codex's log, which do not give the reason of an exit. */
const LOG_LINE = /^\s*\d{4}-\d\d-\d\dT\S+\s+(?:TRACE|DEBUG|INFO|WARN|ERROR)\s/

/** Describes the end of a process with its last line of stderr, for messages. */
export function describeExit(exit: AppServerExit): string {
  // With the person's RUST_BACKTRACE, the sentence comes first.
  const [said = ''] = stripVTControlCharacters(exit.stderr).split('\nStack backtrace:')
  const words = said
    .split('\n')
    .filter(line => line.trim() !== '' && !LOG_LINE.test(line))
    .slice(-3)
    .join(' ')
  switch (exit.reason) {
    case 'not-started':
      return `codex could not be started: ${exit.error.message}`
    case 'killed':
      return `codex was killed (${exit.signal}). ${words}`.trim()
    case 'not-ended':
      return `codex did not end although it was killed. ${words}`.trim()
    case 'exited':
      return `codex ended with exit code ${exit.code}. ${words}`.trim()
  }
}
