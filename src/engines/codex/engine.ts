import type { ThreadSpec } from '../../core/engine.ts'
import {
  type Engine,
  type EngineSetup,
  type PreparedRound,
  type SandboxProblem,
  unusableRound,
} from '../../core/engine.ts'
import { CODEX_PROVIDER, type ProvidersByName } from '../../core/shapes/provider.ts'
import type { AppServer } from './app-server.ts'
import { CodexRound } from './round.ts'
import { Rights } from './sandbox/rights.ts'
import { trySandbox } from './sandbox/try-sandbox.ts'
import { hidesFiles, threadTerms } from './sandbox.ts'
import { type AskCodex, type Connection, connect, readCommandConfig } from './thread-start.ts'
import { RequestFailure, type Rpc } from './wire.ts'

type CodexEngineOptions = EngineSetup

const NO_PROVIDERS: ProvidersByName = new Map()
/** Most starts of an app-server to find its rights. */
const MOST_TRIES = 3
/** Longest wait for its sandbox, ms; usually 100. */
const TRY_MS = 15_000

/** Runs rounds on the real codex: one app-server per round, started ahead on request. */
export class CodexEngine implements Engine {
  readonly name = 'codex'
  readonly version: string
  readonly #options: CodexEngineOptions
  readonly #rights: Rights
  /** App-servers whose round has ended. */
  readonly #idle = new Set<AppServer>()
  /** Connection that was started before its thread is known. */
  #warm: Connection | null = null
  readonly #rounds = new Set<CodexRound>()
  /** True if the next app-server must check the login: the first, and one after a failed login. */
  #checkLogin = true

  constructor(options: CodexEngineOptions) {
    this.#options = options
    this.#rights = new Rights({ ...options, work: 'round' })
    this.version = options.binary.version
  }

  prepare(thread: ThreadSpec): PreparedRound {
    const { providers = NO_PROVIDERS, directory } = this.#options
    const { servers, sandbox, shielded } = this.#rights
    const { provider: name = CODEX_PROVIDER } = thread
    const provider = name === CODEX_PROVIDER ? null : providers.get(name)
    if (provider === undefined) {
      const known = [CODEX_PROVIDER, ...providers.keys()].join(', ')
      return unusableRound(thread, { class: 'config', message: `There is no provider "${name}"; use ${known}.` })
    }
    // The account belongs to codex's own provider.
    const checkLogin = this.#checkLogin && provider === null
    if (checkLogin) this.#checkLogin = false
    const connection = this.#takeWarm() ?? this.#start()
    const { server } = connection
    const round: CodexRound = new CodexRound({
      ...this.#options,
      connection,
      thread,
      provider,
      sandbox: threadTerms(thread, directory, sandbox),
      forCommands: shielded.forCommands,
      trySandbox: rpc => this.#tryOn(rpc, thread),
      checkLogin,
      isServedElsewhere: () =>
        [...this.#rounds].some(other => other !== round && other.thread.provider === name && other.isServed(SERVED_MS)),
      onRun: () => servers.works(server),
      onIdle: outcome => {
        this.#rounds.delete(round)
        this.#checkLogin ||= provider === null && outcome.class === 'auth'
        if (servers.isRunning(server)) this.#idle.add(server)
        void server.close()
      },
    })
    this.#rounds.add(round)
    return round
  }

  warm(): void {
    this.#warm ??= this.#start()
  }

  cool(): void {
    void this.#warm?.server.close()
    this.#warm = null
  }

  async trySandbox(signal: AbortSignal): Promise<SandboxProblem | null> {
    const wasWarm = this.#warm !== null
    try {
      return await this.#tryWarm(signal)
    } catch (error) {
      // The round reports any problem of codex.
      if (!(error instanceof RequestFailure)) throw error
      return null
    } finally {
      if (!wasWarm) this.cool()
    }
  }

  get hidesFiles(): boolean {
    return hidesFiles(this.#options.sandbox)
  }

  async settle(): Promise<void> {
    await Promise.all([...this.#idle].map(server => server.close()))
    await this.#rights.servers.sweep()
  }

  async close(): Promise<void> {
    await this.#rights.servers.close()
  }

  /** Tries the sandbox on the waiting app-server, which gets the rights that the person has configured. */
  async #tryWarm(signal: AbortSignal): Promise<SandboxProblem | null> {
    const { directory } = this.#options
    const requestMs = this.#tryMs
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      this.warm()
      const warm = this.#warm
      if (warm === null || signal.aborted) return null
      const leave = () => void warm.server.close()
      signal.addEventListener('abort', leave, { once: true })
      try {
        await warm.hands
        const ask: AskCodex = (method, params) => warm.rpc.request(method, params, requestMs)
        if (!this.#rights.learn(await readCommandConfig(ask, directory))) return await this.#tryOn(warm.rpc, {})
      } finally {
        // From now on, the end of the session ends the round.
        signal.removeEventListener('abort', leave)
      }
      if (this.#warm === warm) this.cool()
    }
    return null
  }

  /** Timeout of the trial, ms: do not wait twice for a silent codex, because its round reports it. */
  get #tryMs(): number {
    return Math.min(this.#options.requestMs, TRY_MS)
  }

  async #tryOn(rpc: Rpc, { noShell, readOnly = noShell }: Partial<ThreadSpec>): Promise<SandboxProblem | null> {
    const { directory, platform } = this.#options
    const { sandbox } = this.#rights
    if (sandbox.mode === 'danger-full-access') return null
    const rights = readOnly ? { ...sandbox, mode: 'read-only' as const } : sandbox
    return await trySandbox(params => rpc.request('command/exec', params, this.#tryMs), {
      directory,
      platform,
      sandbox: rights,
    })
  }

  #start(): Connection {
    const { server } = this.#rights.start()
    void server.exit.then(() => this.#idle.delete(server))
    return connect(server, this.#options)
  }

  /** Returns the connection that was started ahead, unless it has ended. */
  #takeWarm(): Connection | null {
    const warm = this.#warm
    this.#warm = null
    return warm !== null && this.#rights.servers.isRunning(warm.server) ? warm : null
  }
}

/** Time since the last message within which a model counts as busy with another round, ms. */
const SERVED_MS = 60_000
