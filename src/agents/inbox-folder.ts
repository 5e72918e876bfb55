import { lutimes, opendir, realpath, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { renameIfThere } from '../platform/rename-if-there.ts'
import { findObstacle, writeFileInside } from '../workspace/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory-home.ts'
import { fileState, readTextFile } from '../workspace/read-text-file.ts'
import { inboxFolder } from './inbox.ts'

/**
 * The folder of the inbox and its files, by name: any agent may have put anything there, a link in place of the folder
 * too. Never follows a link, waits for a pipe, or deletes more than one entry.
 */
export class InboxFolder {
  readonly #root: string
  readonly path: string

  /** @param root the work directory's real path */
  constructor(root: string) {
    this.#root = root
    this.path = join(root, inboxFolder)
  }

  /** Makes sure of the folder; answers what is in the way, a sentence, null if nothing is. */
  async make(): Promise<string | null> {
    // Of a narrow sandbox nothing above it may be written.
    if (await this.isReal()) return null
    const obstacle = await makeMemoryFolder(this.#root, inboxFolder)
    if (obstacle === null) return null
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return `${join(this.#root, obstacle.path)} ${what}, so no agent can be asked through it; move it away.`
  }

  /** The names of what is there, the first 10,000 of them, sorted; none where the folder is not a real one. */
  async names(): Promise<string[]> {
    if (!(await this.isReal())) return []
    const names: string[] = []
    // What is made and removed meanwhile makes it fail on some systems; the next look sees the rest.
    const folder = await opendir(this.path).catch(() => null)
    if (folder === null) return []
    for await (const { name } of folder) if (names.push(name) >= MOST_NAMES) break
    return names.sort()
  }

  /** Writes a whole file in place of whatever has its name. */
  async write(name: string, text: string): Promise<void> {
    await writeFileInside(this.#root, `${inboxFolder}/${name}`, text)
  }

  /** The text of a file; null if there is none, or why it cannot be read, a sentence. */
  async read(name: string, limit: number): Promise<{ text: string } | { problem: string } | null> {
    const read = await readTextFile(join(this.path, name), limit)
    if (read.kind === 'gone') return null
    return read.kind === 'text' ? { text: read.text } : { problem: `The file cannot be read: ${read.problem}` }
  }

  /** What tells one state of a file from another; null if there is no regular file. */
  async stateOf(name: string): Promise<{ key: string; changedAt: number } | null> {
    return await fileState(join(this.path, name))
  }

  /** Renames an entry, whatever it is, in place of a file that has the new name; false if there was none. */
  async rename(from: string, to: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    return await renameIfThere(join(this.path, from), join(this.path, to))
  }

  /** Shows that whoever waits for a file, or works on it, still lives. A file that has gone is left alone. */
  async touch(name: string, now: Date): Promise<void> {
    await ignoring(lutimes(join(this.path, name), now, now))
  }

  /** Removes an entry; a folder only if it is empty. False if it was not there, or could not be removed. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    const path = join(this.path, name)
    return (await ignoring(unlink(path))) || (await ignoring(rmdir(path)))
  }

  /** Whether it is there, and no part of its path is a link. */
  async isReal(): Promise<boolean> {
    return (await findObstacle(this.#root, inboxFolder)) === null
  }

  /** Whether a path that was just opened lies in the folder itself, and not behind a link on the way. */
  async holds(name: string): Promise<boolean> {
    const path = join(this.path, name)
    return (await realpath(path).catch(() => null)) === path
  }
}

const MOST_NAMES = 10_000

async function ignoring(action: Promise<void>): Promise<boolean> {
  try {
    await action
    return true
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return false
  }
}
