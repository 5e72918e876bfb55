import type { SandboxChoice } from '../../../core/shapes/sandbox.ts'
import { type AppServer, AppServers, type AppServersOptions, type CodexOptions } from '../app-server.ts'
import { type CommandConfig, type ShieldedEnvironment, shieldEnvironment } from '../sandbox.ts'

interface RightsOptions
  extends Omit<CodexOptions, 'requestMs' | 'codemachineVersion'>,
    Pick<AppServersOptions, 'work'> {
  /** Where agents work, if it is not `directory`. */
  agentsDirectory?: string
}

/**
 * With what rights codex works in a directory: those of the run and, in the sandbox `workspace-write`, the folders that the
 * person's configuration of codex makes writable. That is known once an app-server has been asked; until then there are none.
 */
export class Rights {
  /** All that are started with these rights. */
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

  /** What an app-server has for an environment, and its commands otherwise. */
  get shielded(): ShieldedEnvironment {
    return this.#shielded
  }

  /** As `AppServers.start`, with these rights. */
  start(command?: readonly string[], more?: readonly string[]): { server: AppServer; mark: string } {
    return this.servers.start(this.#shielded.env, command, more)
  }

  /** Takes over what codex says; true if an app-server that was started before has other rights, so that another one is needed. */
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
