import { type Engine, type EngineSetup, type PreparedRound, unusableRound } from '../../core/contracts/engine.ts'
import { CODEX_PROVIDER, type ProvidersByName } from '../../core/contracts/provider.ts'
import type { ThreadSpec } from '../../core/contracts/template.ts'
import { type AppServer, AppServers } from './app-server.ts'
import { type CodexCapabilities, capabilitiesOf } from './find-codex.ts'
import { CodexRound } from './round.ts'
import { hidesFiles, type ShieldedEnvironment, shieldEnvironment, threadTerms } from './sandbox.ts'
import { type Connection, connect } from './thread-start.ts'

export type CodexEngineOptions = EngineSetup

const NO_PROVIDERS: ProvidersByName = new Map()

/** Runs rounds on the real codex: one app-server a round, started ahead where that is asked for. */
export class CodexEngine implements Engine {
  readonly name = 'codex'
  readonly version: string
  readonly #options: CodexEngineOptions
  readonly #capabilities: CodexCapabilities
  readonly #shielded: ShieldedEnvironment
  readonly #servers: AppServers
  /** Those whose round has ended. */
  readonly #idle = new Set<AppServer>()
  /** Started before its thread is known. */
  #warm: Connection | null = null
  readonly #rounds = new Set<CodexRound>()
  /** Whether the next app-server is asked for the login: the first, and one after a login that failed. */
  #checkLogin = true

  constructor(options: CodexEngineOptions) {
    this.#options = options
    this.#capabilities = capabilitiesOf(options.binary.version)
    this.#shielded = shieldEnvironment(options.env, options.directory, options.sandbox, options.firstOnPath)
    this.#servers = new AppServers({ ...options, env: this.#shielded.env, work: 'round' })
    this.version = options.binary.version
  }

  prepare(thread: ThreadSpec): PreparedRound {
    const { providers = NO_PROVIDERS, directory, sandbox } = this.#options
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
      sandbox: threadTerms(thread, directory, sandbox, this.#capabilities),
      forCommands: this.#shielded.forCommands,
      checkLogin,
      isServedElsewhere: () =>
        [...this.#rounds].some(other => other !== round && other.thread.provider === name && other.isServed(SERVED_MS)),
      onRun: () => this.#servers.works(server),
      onIdle: outcome => {
        this.#rounds.delete(round)
        this.#checkLogin ||= provider === null && outcome.class === 'auth'
        if (this.#servers.isRunning(server)) this.#idle.add(server)
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

  get hidesFiles(): boolean {
    return hidesFiles(this.#options.sandbox, this.#capabilities)
  }

  async settle(): Promise<void> {
    await Promise.all([...this.#idle].map(server => server.close()))
    await this.#servers.sweep()
  }

  async close(): Promise<void> {
    await this.#servers.close()
  }

  #start(): Connection {
    const { server } = this.#servers.start()
    void server.exit.then(() => this.#idle.delete(server))
    return connect(server, this.#options)
  }

  /** That one, unless it has ended. */
  #takeWarm(): Connection | null {
    const warm = this.#warm
    this.#warm = null
    return warm !== null && this.#servers.isRunning(warm.server) ? warm : null
  }
}

/** A model that works on another round of ours has sent something within so many ms. */
const SERVED_MS = 60_000
