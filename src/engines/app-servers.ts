import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { type AppServer, GIVE_UP_MS, startAppServer } from '../codex/app-server.ts'
import type { SandboxChoice } from '../codex/sandbox.ts'
import { endMarked, endTree } from '../platform/end-processes.ts'
import { MARK_VARIABLE, makeMark } from '../platform/marks.ts'
import type { ProcessIdentity } from '../platform/processes.ts'

/** With what codex is run in a work directory. */
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
  /** Key of the records, and this process: what the marks of app-servers say. */
  key: string
  owner: ProcessIdentity
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** What codex gets to end by itself, and what it left running then, ms. */
  endMs: number
  log(message: string): void
}

export interface AppServersOptions
  extends Pick<
    CodexOptions,
    'binary' | 'overrides' | 'directory' | 'key' | 'owner' | 'platform' | 'clock' | 'endMs' | 'log'
  > {
  /** What they run with, but for the mark. */
  env: NodeJS.ProcessEnv
  /** What each is for, as it is logged: `round`. */
  work: string
}

/** How often, at most, what they left running is looked for without being asked for, ms. */
const SWEEP_MS = 5_000

/** Tells apart all that this process starts: the mark of one must never be found for another's. */
let started = 0

/** App-servers that carry a mark, by which is ended what they leave running. */
export class AppServers {
  readonly #options: AppServersOptions
  readonly #running = new Set<AppServer>()
  /** Marks of those that have ended and whose leftovers have not been looked for. */
  readonly #unswept = new Set<string>()
  readonly #closed = new AbortController()
  #sweeping: Promise<void> = Promise.resolve()
  #lastSweep = Number.NEGATIVE_INFINITY
  #sweepIsDue = false

  constructor(options: AppServersOptions) {
    this.#options = options
  }

  /** Starts one; its owner closes it. What it leaves running is ended soon after it. */
  start(): { server: AppServer; mark: string } {
    const { binary, overrides, env, directory, key, owner, platform, clock, endMs, log } = this.#options
    const mark = makeMark({ key, owner, n: started++ })
    const server = startAppServer({
      path: binary.path,
      args: overrides.flatMap(pair => ['-c', pair]),
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
        log(`codex (${server.pid}) has not ended ${GIVE_UP_MS / 1000} s after it was killed; it is left behind.`)
      this.#running.delete(server)
      this.#unswept.add(mark)
      this.#sweepSoon()
    })
    return { server, mark }
  }

  isRunning(server: AppServer): boolean {
    return this.#running.has(server)
  }

  /** Ends what those that have ended left running; what could not be looked for is looked for the next time. */
  sweep(): Promise<void> {
    this.#lastSweep = this.#options.clock.monotonic()
    this.#sweeping = this.#sweeping.then(async () => {
      const marks = new Set(this.#unswept)
      this.#unswept.clear()
      try {
        await this.#endLeftovers(marks)
      } catch (error) {
        for (const mark of marks) this.#unswept.add(mark)
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

  /** Detached commands outlive the process group of their app-server, and are found by its mark. */
  async #endLeftovers(marks: ReadonlySet<string>): Promise<void> {
    if (marks.size === 0) return
    const { clock, platform, owner, endMs, work, log } = this.#options
    const options = { clock, platform, self: owner.pid, graceMs: endMs }
    const { ended, left } = await endMarked(MARK_VARIABLE, value => marks.has(value), options)
    for (const { pid, command } of ended) log(`Ended what a ${work} left running: ${command} (${pid}).`)
    for (const { pid, command } of left) log(`Could not end ${command} (${pid}).`)
  }
}
