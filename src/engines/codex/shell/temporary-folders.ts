import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode } from '../../../base/errors.ts'
import { isAlive } from '../../../platform/processes.ts'

/** Where the temporary folders of a shell lie, and whose they are. */
interface TemporaryFoldersOptions {
  /** Absolute; no agent can read or write it. Made when it is first needed. */
  root: string
  /** The process that runs the shell. */
  pid: number
  platform: NodeJS.Platform
  log(message: string): void
}

/** The temporary folder of one command. */
interface TemporaryFolder {
  path: string
  /** The folder of its shell, in which it lies. */
  within: string
  /** Removes it with all that is in it; resolves at once, and nobody can read it meanwhile. */
  leave(): void
}

/**
 * Temporary folders for commands with secrets, a new one for each: what such a command leaves in `/tmp` could be read by
 * the next agent. What a process that was killed has left is removed by the next one.
 */
export class TemporaryFolders implements AsyncDisposable {
  readonly #options: TemporaryFoldersOptions
  readonly #removing = new Set<Promise<void>>()
  #own: Promise<string> | null = null

  constructor(options: TemporaryFoldersOptions) {
    this.#options = options
  }

  /** Rejects with the system's error where none can be made. */
  async make(): Promise<TemporaryFolder> {
    this.#own ??= this.#begin()
    // Where there was no room there may be some the next time.
    this.#own.catch(() => (this.#own = null))
    const within = await this.#own
    try {
      const path = await mkdtemp(join(within, 't-'))
      return { path, within, leave: () => this.#remove(path) }
    } catch (error) {
      // Somebody has removed it; the next one gets another.
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
