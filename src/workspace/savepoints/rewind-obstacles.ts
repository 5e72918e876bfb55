import { createHash } from 'node:crypto'
import { createReadStream, type Stats } from 'node:fs'
import { access, constants, lstat, readdir, readlink } from 'node:fs/promises'
import { systemErrorCode } from '../../base/errors.ts'
import { succeeds } from '../../platform/files.ts'
import { MAX_FILE_SIZE } from '../fingerprint/unread-files.ts'
import { fromLatin1, pathBytes } from '../git/git.ts'

/** A path that a rewind cannot or must not change, because no savepoint has its content. */
interface RewindObstacle {
  /** Latin1, relative to the work directory; empty for the work directory itself. */
  path: string
  /** Problem as the predicate of a sentence about the path. */
  why: string
  /** Required action of the person, as an imperative: `move it elsewhere`. */
  mend: string
}

/** The paths that a rewind will change: latin1, relative to the work directory. */
interface PlannedFiles {
  /** `id`: hash of the new content. `isKnown`: true if a savepoint has the current content. */
  write: readonly { path: string; id: string; isKnown: boolean }[]
  remove: readonly string[]
}

/** Finds the obstacles of a rewind, and changes nothing. `format`: the repository's hash for object ids. */
export async function findRewindObstacles(
  directory: string,
  { write, remove }: PlannedFiles,
  format: 'sha1' | 'sha256',
): Promise<RewindObstacle[]> {
  const folders = new FolderChecks(directory)
  const leaving = new Set(remove)
  const planned = [...write, ...remove.map(path => ({ path, id: null, isKnown: true }))]
  const found = new Map<string, RewindObstacle>()
  for (const each of planned) {
    const above = await folders.obstacleAbove(each.path)
    const here = above === null ? await checkPath(directory, each, format) : [above]
    for (const one of here) if (one.why !== notKept.why || !leaving.has(one.path)) found.set(one.path, one)
  }
  return [...found.values()]
}

interface Planned {
  path: string
  id: string | null
  isKnown: boolean
}

async function checkPath(directory: string, { path, id, isKnown }: Planned, format: string): Promise<RewindObstacle[]> {
  const bytes = pathBytes(directory, path)
  try {
    const stat = await statOf(bytes)
    if (stat === null) return []
    if (stat.isDirectory()) return (await filesIn(directory, path)).map(file => ({ path: file, ...notKept }))
    if (!(stat.isFile() || stat.isSymbolicLink())) return [{ path, ...notKept }]
    if (stat.isFile() && !(await succeeds(access(bytes, constants.R_OK)))) return [{ path, ...unreadable }]
    if (isKnown) return []
    const isSame = stat.size <= MAX_FILE_SIZE && (await blobId(bytes, stat, format)) === id
    return isSame ? [] : [{ path, ...notKept }]
  } catch (error) {
    if (!isDenied(error)) throw error
    return [{ path, ...unreadable }]
  }
}

/** Returns git's object id of a file's content or a link's target. */
async function blobId(path: Buffer, stat: Stats, format: string): Promise<string> {
  const hash = createHash(format).update(`blob ${stat.size}\0`)
  if (stat.isSymbolicLink()) return hash.update(await readlink(path, 'buffer')).digest('hex')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** Returns a latin1 path for print: decoded, without control characters, at most 200 characters. */
export function printablePath(path: string): string {
  const name = fromLatin1(path || '.').slice(0, 200)
  return name.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?')
}

/** Checks the folders above files, each only once. */
class FolderChecks {
  readonly #directory: string
  readonly #found = new Map<string, Promise<RewindObstacle | 'missing' | null>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Returns the parent that prevents a change: a file, a link, or a read-only folder; `null`: none. */
  async obstacleAbove(path: string): Promise<RewindObstacle | null> {
    let nearest = ''
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const above = path.slice(0, end)
      const found = await this.#once(above, () => this.#look(above))
      if (found === 'missing') break
      if (found !== null) return found
      nearest = above
    }
    const closed = await this.#once(`${nearest}/`, () => this.#isClosed(nearest))
    return closed === 'missing' ? null : closed
  }

  #once(
    key: string,
    look: () => Promise<RewindObstacle | 'missing' | null>,
  ): Promise<RewindObstacle | 'missing' | null> {
    const found = this.#found.get(key) ?? look()
    this.#found.set(key, found)
    return found
  }

  async #look(path: string): Promise<RewindObstacle | 'missing' | null> {
    try {
      const stat = await statOf(pathBytes(this.#directory, path))
      if (stat === null) return 'missing'
      return stat.isDirectory() ? null : { path, ...notKept }
    } catch (error) {
      if (!isDenied(error)) throw error
      return { path, ...unreadable }
    }
  }

  async #isClosed(path: string): Promise<RewindObstacle | null> {
    const folder = pathBytes(this.#directory, path)
    return (await succeeds(access(folder, constants.W_OK | constants.X_OK))) ? null : { path, ...readOnly }
  }
}

async function filesIn(directory: string, folder: string): Promise<string[]> {
  const files: string[] = []
  for (const entry of await readdir(pathBytes(directory, folder), { withFileTypes: true, encoding: 'buffer' })) {
    const path = `${folder}/${entry.name.toString('latin1')}`
    if (entry.isDirectory()) files.push(...(await filesIn(directory, path)))
    else files.push(path)
  }
  return files
}

async function statOf(path: Buffer): Promise<Stats | null> {
  try {
    return await lstat(path)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}

function isDenied(error: unknown): boolean {
  const code = systemErrorCode(error)
  return code === 'EACCES' || code === 'EPERM'
}

const mend = 'move it elsewhere'
const notKept = {
  why: 'is in the way, and no savepoint has it (it is ignored, larger than max_file_size, or no plain file)',
  mend,
}
const unreadable = { why: 'is in the way, and it cannot be read, so it could not be kept', mend }
const readOnly = { why: 'is a folder that you cannot write to', mend: 'give yourself the right to (chmod u+wx)' }
