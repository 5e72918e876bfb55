import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode } from '../../../base/errors.ts'
import { isAlive } from '../../../platform/processes.ts'

/** Location and owner of a shell's temporary folders. */
interface TemporaryFoldersOptions {
  /** Absolute path that no agent can read or write. Created on first use. */
  root: string
  /** Id of the process that runs the shell. */
  pid: number
  platform: NodeJS.Platform
  log(message: string): void
}

/** The temporary folder of one command. */
interface TemporaryFolder {
  path: string
  /** Folder of its shell, which contains it. */
  within: string
  /** Removes it with all its content; returns at once, and nobody can read it meanwhile. */
  leave(): void
}

/**
 * Creates a temporary folder for each command with secrets: the next agent could read files in `/tmp`. Removes the folders
 * of killed processes.
 */
export class TemporaryFolders implements AsyncDisposable {
  readonly #options: TemporaryFoldersOptions
  readonly #removing = new Set<Promise<void>>()
  #own: Promise<string> | null = null

  constructor(options: TemporaryFoldersOptions) {
    this.#options = options
  }

  /** Creates a folder. Rejects with the system's error if that fails. */
  async make(): Promise<TemporaryFolder> {
    this.#own ??= this.#begin()
    // Retry next time: there may be room again.
    this.#own.catch(() => (this.#own = null))
    const within = await this.#own
    try {
      const path = await mkdtemp(join(within, 't-'))
      return { path, within, leave: () => this.#remove(path) }
    } catch (error) {
      // Somebody has removed it, so create a new one next time.
      if (systemErrorCode(error) === 'ENOENT') this.#own = null
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const own = await this.#own?.catch(() => null)
    await Promise.all(this.#removing)
    if (own) this.#remove(own)
    await Promise.all(this.#removing)
  }

  async #begin(): Promise<string> {
    const { root, pid, platform } = this.#options
    await mkdir(root, { recursive: true, mode: 0o700 })
    for (const name of await readdir(root)) {
      const owner = Number(/^(\d+)-/.exec(name)?.[1])
      if (owner !== pid && !(await isAlive(owner, platform))) this.#remove(join(root, name))
    }
    return await mkdtemp(join(root, `${pid}-`))
  }

  #remove(path: string): void {
    const removed = rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 })
      .catch((error: unknown) => {
        if (systemErrorCode(error) === null) throw error
        this.#options.log(`The temporary folder ${path} could not be removed: ${messageOf(error)}`)
      })
      .finally(() => this.#removing.delete(removed))
    this.#removing.add(removed)
  }
}
