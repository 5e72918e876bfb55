import { createHash, randomUUID } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import { GitError, runGit } from './git.ts'
import type { PrivateGitLocation } from './private-git.ts'

/** The kinds of objects that are written. */
type ObjectKind = 'blob' | 'tree' | 'commit'

/** A file, or a folder, of a tree. */
export interface TreeItem {
  /** Latin1. */
  name: string
  mode: string
  id: string
}

/**
 * Writes single objects to a private git directory, as git itself would: for the few of a round that is less than what it
 * takes to start one git. What cannot be written is a `GitError`. The caller holds the run lock.
 */
export class LooseObjects {
  readonly #folder: string
  readonly #format: PrivateGitLocation['objectFormat']
  /** Those that are not known to be on the disk yet. */
  readonly #unsynced = new Set<string>()
  /** The last ones that were written here, so that their content is what their id says. */
  readonly #written = new Set<string>()
  #hasReused = false

  constructor({ gitDir, objectFormat }: Pick<PrivateGitLocation, 'gitDir' | 'objectFormat'>) {
    this.#folder = join(gitDir, 'objects')
    this.#format = objectFormat
  }

  /** Stores an object, if there is none such yet, and answers its id. It need not be on the disk before `sync`. */
  write(kind: ObjectKind, content: Buffer): string {
    const header = Buffer.from(`${kind} ${content.length}\0`)
    const id = createHash(this.#format).update(header).update(content).digest('hex')
    const path = this.#pathOf(id)
    const isThere = existsSync(path)
    // One that was written here may lie in a pack since, or somebody has pruned what no savepoint has.
    if (isThere && this.#written.has(id)) return id
    this.#unsynced.add(id)
    if (isThere) this.#hasReused = true
    else {
      this.#store(path, deflateSync(Buffer.concat([header, content]), { level: 1 }))
      if (this.#written.size > MOST_REMEMBERED) this.#written.clear()
      this.#written.add(id)
    }
    return id
  }

  /** Stores a tree of these items, in git's order of them, and answers its id. */
  writeTree(items: readonly TreeItem[]): string {
    const parts = items.flatMap(({ mode, name, id }) => [
      Buffer.from(`${mode.replace(/^0/, '')} ${name}\0`, 'latin1'),
      Buffer.from(id, 'hex'),
    ])
    return this.write('tree', Buffer.concat(parts))
  }

  /** Whether one was found to be there since the last call: nobody has looked whether its content is what its id says. */
  hasReused(): boolean {
    const hasReused = this.#hasReused
    this.#hasReused = false
    return hasReused
  }

  /** Whether an object lies in a file of its own. */
  isStored(id: string): boolean {
    return existsSync(this.#pathOf(id))
  }

  /** Whether an object is there; git is asked only of one that lies in no file of its own. */
  async has({ setting }: Pick<PrivateGitLocation, 'setting'>, id: string): Promise<boolean> {
    return this.isStored(id) || (await runGit(setting, ['cat-file', '-e', id])).ok
  }

  /** Forgets what has been written: the directory is made anew. */
  forget(): void {
    this.#written.clear()
    this.#unsynced.clear()
  }

  /** Resolves when all that was written before is on the disk; throws a `GitError` where it cannot be put there. */
  async sync(): Promise<void> {
    const ids = [...this.#unsynced]
    const files = ids.map(id => this.#pathOf(id))
    const paths = [...files, ...new Set(files.map(dirname)), this.#folder]
    try {
      // Each of them is open meanwhile.
      for (let at = 0; at < paths.length; at += OPEN_AT_ONCE)
        await Promise.all(paths.slice(at, at + OPEN_AT_ONCE).map(syncPath))
    } catch (error) {
      throw notWritten(error)
    }
    for (const id of ids) this.#unsynced.delete(id)
  }

  #pathOf(id: string): string {
    return join(this.#folder, id.slice(0, 2), id.slice(2))
  }

  #store(path: string, bytes: Buffer): void {
    // As git names what it has not finished, so that it is removed where this is killed.
    const temporary = join(dirname(path), `tmp_obj_${randomUUID()}`)
    try {
      mkdirSync(dirname(path), { recursive: true })
      const fd = openSync(temporary, 'wx', 0o444)
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
      } finally {
        closeSync(fd)
      }
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw notWritten(error)
    }
  }
}

function notWritten(error: unknown): GitError {
  return new GitError(['hash-object', '-w'], { ok: false, stdout: '', stderr: messageOf(error) })
}

const MOST_REMEMBERED = 5_000
const OPEN_AT_ONCE = 32

/** Resolves when a file, or the names in a folder, are on the disk. One that has gone meanwhile lies in a pack, where git has put it there. */
export async function syncPath(path: string): Promise<void> {
  try {
    await using file = await open(path, 'r')
    await file.datasync()
  } catch (error) {
    // Windows opens no folders, and needs none of this for them.
    if (!['ENOENT', 'EISDIR', 'EPERM', 'EACCES', 'EINVAL'].includes(systemErrorCode(error) ?? '')) throw error
  }
}
