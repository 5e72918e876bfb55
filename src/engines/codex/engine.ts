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
/** How often an app-server is started to find out with what rights it has to be. */
const MOST_TRIES = 3
/** The longest that its sandbox is waited for, ms; usually it takes 100. */
const TRY_MS = 15_000

/** Runs rounds on the real codex: one app-server a round, started ahead where that is asked for. */
export class CodexEngine implements Engine {
  readonly name = 'codex'
  readonly version: string
  readonly #options: CodexEngineOptions
  readonly #rights: Rights
  /** Those whose round has ended. */
  readonly #idle = new Set<AppServer>()
  /** Started before its thread is known. */
  #warm: Connection | null = null
  readonly #rounds = new Set<CodexRound>()
  /** Whether the next app-server is asked for the login: the first, and one after a login that failed. */
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
    // The account is that of codex's own provider.
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
      // Whatever is wrong with codex, its round says.
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

  /** On the app-server that waits for the next round; that gets the rights which the person has configured. */
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
        // From now on a person who ends the session ends its round.
        signal.removeEventListener('abort', leave)
      }
      if (this.#warm === warm) this.cool()
    }
    return null
  }

  /** A codex that does not answer is not waited for twice: its round says so. */
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

  /** That one, unless it has ended. */
  #takeWarm(): Connection | null {
    const warm = this.#warm
    this.#warm = null
    return warm !== null && this.#rights.servers.isRunning(warm.server) ? warm : null
  }
}

/** A model that works on another round of ours has sent something within so many ms. */
const SERVED_MS = 60_000
