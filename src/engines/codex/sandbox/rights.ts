import type { SandboxChoice } from '../../../core/shapes/sandbox.ts'
import { type AppServer, AppServers, type AppServersOptions, type CodexOptions } from '../app-server.ts'
import { type CommandConfig, type ShieldedEnvironment, shieldEnvironment } from '../sandbox.ts'

interface RightsOptions
  extends Omit<CodexOptions, 'requestMs' | 'codemachineVersion'>,
    Pick<AppServersOptions, 'work'> {
  /** Directory in which agents work, if it is not `directory`. */
  agentsDirectory?: string
}

/**
 * Codex's rights in a directory: those of the run and, in the sandbox `workspace-write`, the writable folders of the
 * person's codex configuration. These are known once an app-server has reported them; until then there are none.
 */
export class Rights {
  /** All app-servers with these rights. */
  readonly servers: AppServers
  readonly #options: RightsOptions
  #sandbox: SandboxChoice
  #shielded: ShieldedEnvironment

  constructor(options: RightsOptions) {
    this.#options = options
    this.servers = new AppServers(options)
    this.#sandbox = options.sandbox
    this.#shielded = this.#shield()
  }

  get sandbox(): SandboxChoice {
    return this.#sandbox
  }

  /** Environment of an app-server, and the different variables of its commands. */
  get shielded(): ShieldedEnvironment {
    return this.#shielded
  }

  /** As `AppServers.start`, with these rights. */
  start(command?: readonly string[], more?: readonly string[]): { server: AppServer; mark: string } {
    return this.servers.start(this.#shielded.env, command, more)
  }

  /** Adopts codex's report. Returns true if an earlier app-server has other rights, so that a new one is needed. */
  learn({ roots }: Pick<CommandConfig, 'roots'>): boolean {
    const { sandbox } = this.#options
    if (sandbox.mode !== 'workspace-write' || String(roots) === String(this.#sandbox.roots ?? [])) return false
    this.#sandbox = { ...sandbox, roots }
    this.#shielded = this.#shield()
    return true
  }

  #shield(): ShieldedEnvironment {
    const { env, directory, agentsDirectory = directory, firstOnPath } = this.#options
    return shieldEnvironment(env, agentsDirectory, this.#sandbox, firstOnPath)
  }
}
