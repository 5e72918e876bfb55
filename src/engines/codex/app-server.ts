import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { StrayFinder } from '../../core/engine.ts'
import type { SandboxChoice } from '../../core/shapes/sandbox.ts'
import { endMarked, endTree, MARK_VARIABLE, makeMark } from '../../platform/end-processes.ts'
import type { ProcessIdentity } from '../../platform/processes.ts'

/** The last bytes of stderr that are kept. */
const STDERR_BYTES = 32 * 1024
/** How long pipes may stay open after the process has ended: what it left running can hold them. */
const PIPE_GRACE_MS = 250
/** From SIGTERM to SIGKILL. */
const KILL_GRACE_MS = 1_000
/** From SIGKILL to giving the process up: the kernel may hold one for as long as a disk does not answer. */
const GIVE_UP_MS = 5_000

/** The longest that a timer can be set to. */
export const LONGEST_WAIT_MS = 2 ** 31 - 1

/** How an app-server ended. */
export type AppServerExit =
  | { reason: 'not-started'; error: Error; stderr: string }
  | { reason: 'exited'; code: number; stderr: string }
  | { reason: 'killed'; signal: string; stderr: string }
  /** It was killed and lives on, or hangs in the kernel; it is left behind. */
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
  /** Ends the process and its group; resolves like `exit`. May be called again. */
  close(): Promise<AppServerExit>
  /** The last 32 KiB of stderr. */
  stderr(): string
}

export interface AppServerOptions {
  /** The native binary. */
  path: string
  /** Arguments before `command`. */
  args: readonly string[]
  /** What codex is to be, and the arguments of that. Default: `app-server`. */
  command?: readonly string[]
  env: NodeJS.ProcessEnv
  directory: string
  clock: Clock
  /** From closing stdin to SIGTERM, ms. */
  endMs: number
  /** Sends a signal to the process and what is in its group (platform/processes). */
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

  /** What waits for the end waits no longer, this process itself among it. */
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
 * The child, or why there is none. The system's refusal comes in three ways: thrown (ENOTDIR), as the event of a child
 * without pipes (EMFILE), or as that of one that has them (ENOENT); the last is left to the caller.
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

/** How codex is run in a work directory. */
export interface CodexOptions {
  /** The native codex binary. */
  binary: { path: string }
  /** `key=value` pairs that the person hands to codex with `-c`. */
  overrides: readonly string[]
  /** The person's environment, `CODEX_HOME` included: what commands of agents have. */
  env: NodeJS.ProcessEnv
  directory: string
  /** That of the rounds. */
  sandbox: SandboxChoice
  /** A folder that app-servers search first for programs, and commands do not; left out or null: none. */
  firstOnPath?: string | null
  /** Key of the records, and this process: what the marks of app-servers say. */
  key: string
  owner: ProcessIdentity
  /** Finds what they leave running without the mark; left out or null: it is not found. */
  controlGroup?: StrayFinder | null
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** What codex gets to end by itself, and what it left running then, ms. */
  endMs: number
  log(message: string): void
  /** Told a sentence that a person should know; left out: it is logged. */
  onWarning?: ((sentence: string) => void) | undefined
  /** As of `EngineSetup`. */
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
  /** What each is for, as it is logged: `round`. */
  work: string
}

/** What is codex's own: itself, its sandbox and the shells in which its commands run; and what has ended meanwhile. */
const OF_CODEX = /^$|^\S*(?:codex|bwrap)\S*(?: |$)/
/** How many processes a warning names. */
const MOST_NAMED = 5

/** How often, at most, what they left running is looked for without being asked for, ms. */
const SWEEP_MS = 5_000

/** Makes the mark of each start of this process unique. */
let started = 0

/** Starts app-servers with a mark in their environment, and ends by that mark what they leave running. */
export class AppServers {
  readonly #options: AppServersOptions
  readonly #running = new Set<AppServer>()
  /** Marks of those that have ended and whose leftovers have not been looked for, each with the pid of its app-server, if it was one's. */
  readonly #unswept = new Map<string, number | undefined>()
  readonly #closed = new AbortController()
  #sweeping: Promise<void> = Promise.resolve()
  #lastSweep = Number.NEGATIVE_INFINITY
  #sweepIsDue = false

  constructor(options: AppServersOptions) {
    this.#options = options
  }

  /**
   * Starts one, or another codex (`AppServerOptions.command`); its owner closes it. What it leaves running is ended soon
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

  /** Starts another program in the place of codex, with the person's rights: only where nothing is kept from the rounds. */
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

  /** A mark of its own for one command of an app-server that runs others; `hasEnded` is told when it has ended. */
  mark(): string {
    const { key, owner } = this.#options
    return makeMark({ key, owner, n: started++ })
  }

  /** What has this mark is ended by the next sweep, which comes soon. */
  hasEnded(mark: string): void {
    this.#unswept.set(mark, undefined)
    this.#sweepSoon()
  }

  /** Says that an agent's commands run in it from now on, until it has ended. */
  works(server: AppServer): void {
    const over = this.#options.controlGroup?.works()
    if (over !== undefined) void server.exit.then(over)
  }

  isRunning(server: AppServer): boolean {
    return this.#running.has(server)
  }

  /** Ends what those that have ended left running; what could not be looked for is looked for the next time. */
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

  /** Ends all of them; resolves when no process is left. */
  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all([...this.#running].map(server => server.close()))
    await this.sweep()
  }

  /** Sweeps now or, if that was done just now, once its time has come: what one left is not to disturb the next. */
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

  /**
   * Detached commands outlive the process group of their app-server, and are found by its mark; those that have thrown
   * it away, by its session, or by the control group.
   */
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

/** Lines of codex's log, which do not say why it ended. */
const LOG_LINE = /^\s*\d{4}-\d\d-\d\dT\S+\s+(?:TRACE|DEBUG|INFO|WARN|ERROR)\s/

/** How a process ended, with its last line of stderr, for messages. */
export function describeExit(exit: AppServerExit): string {
  // Where the person has RUST_BACKTRACE set, the sentence comes first.
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
