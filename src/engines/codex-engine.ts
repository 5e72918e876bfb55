import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { type AppServer, startAppServer } from '../codex/app-server.ts'
import type { CodexCapabilities } from '../codex/codex-version.ts'
import { CodexRound } from '../codex/round.ts'
import { type SandboxChoice, sandboxTerms } from '../codex/sandbox.ts'
import { type ShieldedEnvironment, shieldEnvironment } from '../codex/shielded-environment.ts'
import { endMarked, endTree } from '../platform/end-processes.ts'
import { MARK_VARIABLE, makeMark } from '../platform/marks.ts'
import type { ProcessIdentity } from '../platform/processes.ts'
import type { Engine, PreparedRound } from '../session/engine.ts'
import type { ThreadSpec } from '../session/template.ts'

export interface CodexEngineOptions {
  /** The native codex binary, its version, and what that version can do. */
  binary: { path: string; version: string }
  capabilities: CodexCapabilities
  /** `key=value` pairs that the person hands to codex with `-c`. */
  overrides: readonly string[]
  /** The person's environment, `CODEX_HOME` included: what commands of agents have. */
  env: NodeJS.ProcessEnv
  directory: string
  sandbox: SandboxChoice
  /** Key of the records, and this process: what the marks of app-servers say. */
  key: string
  owner: ProcessIdentity
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** What codex gets to end by itself, ms. */
  endMs: number
  log(message: string): void
}

/** How often, at most, what rounds left running is looked for while the session goes on, ms. */
const SWEEP_MS = 5_000

/** Runs rounds on the real codex: one app-server a round, started ahead where that is asked for. */
export class CodexEngine implements Engine {
  readonly name = 'codex'
  readonly version: string
  readonly #options: CodexEngineOptions
  readonly #shielded: ShieldedEnvironment
  readonly #servers = new Set<AppServer>()
  /** Those of them whose round has ended. */
  readonly #idle = new Set<AppServer>()
  /** Marks of app-servers that have ended and whose leftovers have not been looked for. */
  readonly #unswept = new Set<string>()
  readonly #closed = new AbortController()
  #sweeping: Promise<void> = Promise.resolve()
  #lastSweep = Number.NEGATIVE_INFINITY
  #sweepIsDue = false
  #started = 0

  constructor(options: CodexEngineOptions) {
    this.#options = options
    this.#shielded = shieldEnvironment(options.env, options.directory, options.sandbox)
    this.version = options.binary.version
  }

  prepare(thread: ThreadSpec): PreparedRound {
    const { binary, capabilities, overrides, directory, sandbox, clock, platform, log } = this.#options
    const first = this.#started === 0
    const mark = makeMark({ key: this.#options.key, owner: this.#options.owner, n: this.#started++ })
    const server = startAppServer({
      path: binary.path,
      args: overrides.flatMap(pair => ['-c', pair]),
      env: { ...this.#shielded.env, [MARK_VARIABLE]: mark },
      directory,
      clock,
      endMs: this.#options.endMs,
      signalTree: (pid, signal) =>
        endTree(pid, signal, platform).then(
          () => {},
          (error: unknown) => log(`Could not send ${signal} to codex (${pid}): ${messageOf(error)}`),
        ),
    })
    this.#servers.add(server)
    void server.exit.then(() => {
      this.#servers.delete(server)
      this.#idle.delete(server)
      this.#unswept.add(mark)
      this.#sweepSoon()
    })
    return new CodexRound({
      server,
      thread,
      directory,
      sandbox: sandboxTerms(directory, sandbox, capabilities),
      forCommands: this.#shielded.forCommands,
      clientVersion: this.#options.codemachineVersion,
      clock,
      requestMs: this.#options.requestMs,
      endMs: this.#options.endMs,
      checkLogin: first,
      onIdle: () => {
        if (this.#servers.has(server)) this.#idle.add(server)
        void server.close()
      },
      log,
    })
  }

  async settle(): Promise<void> {
    await Promise.all([...this.#idle].map(server => server.close()))
    await this.#sweep()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all([...this.#servers].map(server => server.close()))
    await this.#sweep()
  }

  /** Sweeps now or, if that was done just now, once its time has come: what a round left is not to disturb the next. */
  #sweepSoon(): void {
    if (this.#sweepIsDue || this.#closed.signal.aborted) return
    this.#sweepIsDue = true
    const { clock } = this.#options
    const ms = Math.max(0, this.#lastSweep + SWEEP_MS - clock.monotonic())
    void clock.wait(ms, this.#closed.signal).then(() => {
      this.#sweepIsDue = false
      if (!this.#closed.signal.aborted) void this.#sweep()
    })
  }

  /** Ends what app-servers that have ended left running; what could not be looked for is looked for the next time. */
  #sweep(): Promise<void> {
    this.#lastSweep = this.#options.clock.monotonic()
    this.#sweeping = this.#sweeping.then(async () => {
      const marks = new Set(this.#unswept)
      this.#unswept.clear()
      try {
        await this.#endLeftovers(marks)
      } catch (error) {
        for (const mark of marks) this.#unswept.add(mark)
        this.#options.log(`Could not look for what rounds left running: ${messageOf(error)}`)
      }
    })
    return this.#sweeping
  }

  /** Detached commands outlive the process group of their app-server, and are found by its mark. */
  async #endLeftovers(marks: ReadonlySet<string>): Promise<void> {
    if (marks.size === 0) return
    const { clock, platform, owner, endMs, log } = this.#options
    const options = { clock, platform, self: owner.pid, graceMs: endMs }
    const { ended, left } = await endMarked(MARK_VARIABLE, value => marks.has(value), options)
    for (const { pid, command } of ended) log(`Ended what a round left running: ${command} (${pid}).`)
    for (const { pid, command } of left) log(`Could not end ${command} (${pid}).`)
  }
}
