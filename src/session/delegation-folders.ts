import { rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../base/errors.ts'
import { findObstacle, makeFolder } from '../workspace/inside-directory.ts'

/** As a person's own commands would make them: less what their umask takes. */
const MODE = 0o777

/**
 * The folders of the project that agents were given to write in and that were not there: made when the first of them
 * begins, and taken away when nobody is given them any more and nobody has put anything in. One object for a session.
 */
export class GivenFolders {
  /** The work directory's real path. */
  readonly #directory: string
  readonly #made = new Set<string>()
  readonly #given = new Set<readonly string[]>()
  #before: Promise<unknown> = Promise.resolve()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Makes those that are missing, relative to the work directory; what is in the way, a sentence, or null. */
  give(folders: readonly string[]): Promise<string | null> {
    this.#given.add(folders)
    return this.#inOrder(() => this.#make(folders))
  }

  /** Those of an agent that has ended: the same list as they were given with. */
  takeBack(folders: readonly string[]): Promise<void> {
    this.#given.delete(folders)
    return this.#inOrder(() => this.#removeEmpty())
  }

  async #make(folders: readonly string[]): Promise<string | null> {
    for (const folder of folders) {
      try {
        const onMade = (path: string) => void this.#made.add(path)
        const obstacle = await makeFolder(this.#directory, join(folder), { mode: MODE, onMade })
        if (obstacle !== null) return `${obstacle.path} is no real folder, so nothing can be written in ${folder}.`
      } catch (error) {
        return `The folder ${folder} cannot be made: ${messageOf(error)}.`
      }
    }
    return null
  }

  /** The innermost first, so that those around them are empty then. */
  async #removeEmpty(): Promise<void> {
    const inUse = new Set([...this.#given].flat().map(folder => join(folder)))
    for (const path of [...this.#made].sort((a, b) => b.length - a.length)) {
      if (inUse.has(path) || (await findObstacle(this.#directory, path)) !== null) continue
      await rmdir(join(this.#directory, path)).then(
        () => this.#made.delete(path),
        () => {},
      )
    }
  }

  /** One would else take away what another has just made the way to. */
  #inOrder<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#before.then(action)
    this.#before = done.catch(() => {})
    return done
  }
}
