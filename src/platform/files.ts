import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  type FSWatcher,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
  watch,
} from 'node:fs'
import { chmod, type FileHandle, link, lstat, mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, type PlatformPath, posix, relative, resolve, sep, win32 } from 'node:path'
import { platform as hostPlatform } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { isNoRoom, messageOf, systemErrorCode, UserError } from '../base/errors.ts'

/**
 * Writes a whole file of the records atomically, with mode 0600 unless another is given. The old file stays until the new one is on the disk, and stays
 * if there is no room. A nearly full disk cuts a write short without an error: then the rest is written again, or fails. Not
 * for folders where an agent can write: a part of the path may be a link.
 */
export async function writeWholeFile(path: string, content: string | Buffer, mode = 0o600): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, content, mode)
    await replaceFile(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw error
  }
}

/** Ways to rename a file and to wait; `wait` resolves after so many ms. */
interface ReplaceOptions {
  platform: NodeJS.Platform
  rename(from: string, to: string): Promise<void>
  wait(ms: number): Promise<unknown>
}

/**
 * Replaces a file by a completely written one. Windows refuses that while somebody reads the old one, so it is retried there
 * for about a second. Never run on a real Windows yet.
 */
export async function replaceFile(
  from: string,
  to: string,
  { platform, rename: give, wait }: ReplaceOptions = { platform: hostPlatform, rename, wait: delay },
): Promise<void> {
  for (const pause of platform === 'win32' ? PAUSES_MS : []) {
    try {
      return await give(from, to)
    } catch (error) {
      if (!REFUSED_WHILE_READ.has(systemErrorCode(error) ?? '')) throw error
      await wait(pause)
    }
  }
  await give(from, to)
}

const PAUSES_MS = [5, 10, 20, 40, 80, 160, 320, 400]
const REFUSED_WHILE_READ: ReadonlySet<string> = new Set(['EPERM', 'EACCES', 'EBUSY'])

async function writeNew(path: string, content: string | Buffer, mode: number): Promise<void> {
  await using file = await open(path, 'wx', mode)
  await file.writeFile(content)
  await file.sync()
}

/** A watched folder that others may delete and create again. */
export interface HeldFolder extends AsyncDisposable {
  /** Resolves with true if it is gone, even if a new folder has its path. */
  isGone(): Promise<boolean>
}

/** Watches a folder. On Windows, which opens no folders, only a missing path counts as gone. */
export async function holdFolder(path: string): Promise<HeldFolder> {
  const handle = await open(path, 'r').catch(() => null)
  return {
    isGone: async () => (handle !== null && (await handle.stat()).nlink === 0) || !(await pathExists(path)),
    [Symbol.asyncDispose]: async () => await handle?.close(),
  }
}

/** Resolves with true if a folder's disk has no room for a small file. */
export async function lacksRoom(folder: string): Promise<boolean> {
  const probe = join(folder, `.${randomUUID()}.tmp`)
  try {
    await using file = await open(probe, 'wx', 0o600)
    await file.writeFile(Buffer.alloc(PROBE_BYTES))
    return false
  } catch (error) {
    return isNoRoom(error)
  } finally {
    await rm(probe, { force: true }).catch(() => undefined)
  }
}

const PROBE_BYTES = 128 * 1024

/** A complete and synced file without its final name. */
interface StagedFile extends AsyncDisposable {
  /** Gives it the name, atomically and durably; false: the name exists. */
  linkAs(name: string): Promise<boolean>
}

/** Writes `content` into a hidden temporary file of the directory, mode 0600; disposal removes a nameless file. */
export async function stageFile(directory: string, content: string): Promise<StagedFile> {
  const temporary = join(directory, `.${randomUUID()}.tmp`)
  const discard = () => rm(temporary, { force: true })
  try {
    await writeNew(temporary, content, 0o600)
  } catch (error) {
    await discard()
    throw error
  }
  return {
    linkAs: async name => {
      try {
        await link(temporary, join(directory, name))
      } catch (error) {
        if (systemErrorCode(error) === 'EEXIST') return false
        throw error
      }
      await syncDirectory(directory)
      return true
    },
    [Symbol.asyncDispose]: discard,
  }
}

/** Makes a new name survive a power cut. Not every platform can sync a directory; the file itself is synced. */
async function syncDirectory(directory: string): Promise<void> {
  try {
    await using folder = await open(directory, 'r')
    await folder.sync()
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
}

/** Error for a path that is not a regular file. `what`: `a pipe`, for example. */
export class NotAFile extends Error {
  override readonly name = 'NotAFile'
  readonly what: string

  constructor(path: string, what: string) {
    super(`${path} is ${what}, not a file.`)
    this.what = what
  }
}

/** Opens a regular file for reading. Throws `NotAFile` for a pipe, device or folder, without blocking. */
export async function openRegularFile(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK (absent on Windows), opening a named pipe would wait for its other end.
  const file = await open(path, constants.O_RDONLY | NON_BLOCK)
  const stat = await file.stat()
  if (stat.isFile()) return file
  await file.close()
  throw new NotAFile(path, stat.isDirectory() ? 'a directory' : stat.isFIFO() ? 'a pipe' : 'a device')
}

const NON_BLOCK = constants.O_NONBLOCK ?? 0

/** The text of a file, or why there is none: `problem` follows the file's name (`is a directory`). */
type BoundedText = { text: string } | { problem: string } | 'missing'

/**
 * Reads a UTF-8 file of at most `maxBytes` (a BOM is dropped). All else is a problem in words, without blocking: a pipe,
 * device, directory, too long, not UTF-8, or not readable.
 */
export async function readBoundedText(path: string, maxBytes: number): Promise<BoundedText> {
  try {
    await using file = await openRegularFile(path)
    const stat = await file.stat()
    if (stat.size > maxBytes) return { problem: `is longer than ${maxBytes} bytes` }
    // If the file grows meanwhile, only the size at opening counts.
    const bytes = await readFirst(file, stat.size)
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    if (error instanceof NotAFile)
      return { problem: error.what === 'a directory' ? 'is a directory; a file is expected' : 'is not a regular file' }
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return 'missing'
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problem: 'is not UTF-8 text; save it as UTF-8' }
    if (code !== null) return { problem: `cannot be read (${code})` }
    throw error
  }
}

/** Reads the first `size` bytes of a file, or all if it is shorter. One read may return less than requested. */
async function readFirst(file: Pick<FileHandle, 'read'>, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await file.read(bytes, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

/** Returns inode, size and times of a file, which change with it. Null: missing or unreadable. */
export function stampOf(path: string): string | null {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ')
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/**
 * Returns the bytes of a file of at most `maxBytes`; null: missing, longer, not a file, or unreadable. Synchronous, for
 * facts that must be known before anything else runs.
 */
export function readBoundedNow(path: string, maxBytes: number): Buffer | null {
  let fd: number | null = null
  try {
    // See `openRegularFile`.
    fd = openSync(path, constants.O_RDONLY | NON_BLOCK)
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.size > maxBytes) return null
    const bytes = Buffer.alloc(stat.size)
    return bytes.subarray(0, readSync(fd, bytes, 0, stat.size, 0))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  } finally {
    if (fd !== null) closeSync(fd)
  }
}

/** Resolves with true if an action succeeds; ignores the reason of a failure. */
export function succeeds(action: Promise<unknown>): Promise<boolean> {
  return action.then(
    () => true,
    () => false,
  )
}

/** Resolves with true if the path exists, even as a dangling link. Throws if that cannot be known. */
export async function pathExists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw error
  }
}

/** Returns the path functions of a platform. */
export function pathsOf(platform: NodeJS.Platform): PlatformPath {
  return platform === 'win32' ? win32 : posix
}

/**
 * Returns true if a path is the folder or inside it, by name. Both must be absolute and normalized. On macOS and Windows,
 * case and normal form are ignored, as most file systems there do.
 */
export function isWithin(folder: string, path: string, platform: NodeJS.Platform = hostPlatform): boolean {
  const { sep } = pathsOf(platform)
  const [above, below] = [folded(folder, platform), folded(path, platform)]
  return below === above || below.startsWith(above.endsWith(sep) ? above : above + sep)
}

/** Returns true if a real path is this path: links lead nowhere else. Case and normal form count as in `isWithin`. */
export function isItself(path: string, realPath: string | null, platform: NodeJS.Platform = hostPlatform): boolean {
  return realPath !== null && folded(realPath, platform) === folded(path, platform)
}

function folded(path: string, platform: NodeJS.Platform): string {
  return comparable(platform === 'win32' ? path.replaceAll('/', '\\') : path, platform)
}

/** Returns a name or path as file systems of this platform compare it: on macOS and Windows, case and normal form do not count. */
export function comparable(name: string, platform: NodeJS.Platform = hostPlatform): string {
  if (platform !== 'darwin' && platform !== 'win32') return name
  // Compose only after lower-casing: some capitals only match then.
  return name.normalize('NFD').toLowerCase().normalize('NFC')
}

/** Returns the variable that names the home directory. */
export function homeVariable(platform: NodeJS.Platform): 'HOME' | 'USERPROFILE' {
  return platform === 'win32' ? 'USERPROFILE' : 'HOME'
}

/** Returns a path with `~` for the home directory. Both must be absolute and normalized. */
export function inHome(path: string, home: string): string {
  return isWithin(home, path) ? `~${path.slice(home.endsWith(sep) ? home.length - 1 : home.length)}` : path
}

/**
 * Returns a path relative to the folder, with `/`. Null: the folder itself, or outside of it by name. The path may be
 * absolute, or relative to the folder.
 */
export function pathInside(folder: string, given: string): string | null {
  const path = relative(folder, resolve(folder, given))
  const isInside = path !== '' && path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path)
  return isInside ? path.replaceAll(sep, '/') : null
}

/** Returns true if the file systems of a platform keep a file under exactly this name. */
export function isFileName(name: string, platform: NodeJS.Platform = hostPlatform): boolean {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) return false
  return platform !== 'win32' || !(RESERVED_NAME.test(name) || /[<>:"\\|?*\p{Cc}]|[. ]$/u.test(name))
}

/** Devices of Windows, with any ending. */
const RESERVED_NAME = /^(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³]|conin\$|conout\$) *(?:\.|$)/i

/** Creates a folder and its parents; only this user gets into it, on Windows by the rights of the folder above. */
export async function makePrivateFolder(folder: string, platform: NodeJS.Platform): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await keepPrivate(folder, platform)
}

/** Takes the rights of others on a folder away, if there are any. */
export async function keepPrivate(folder: string, platform: NodeJS.Platform): Promise<void> {
  if (platform !== 'win32' && ((await stat(folder)).mode & 0o077) !== 0) await chmod(folder, 0o700)
}

/** Renames a file; false: missing, perhaps renamed by another process. */
export async function renameIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Folders that agents can write in any writing sandbox, by name and by real path. */
export interface WritableByAgents {
  workDirectory: readonly string[]
  /** Git directories of the repository around it. */
  gitDirectories: readonly string[]
  /** Work directories and possible landing places of other sessions. */
  elsewhere: readonly string[]
  temporary: readonly string[]
}

/** No folder. */
export const NOWHERE: WritableByAgents = { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] }

/** Returns the folders that agents in `directory` can write; `elsewhere`: folders that agents wrote before. */
export function writableByAgents(
  directory: string,
  env: Readonly<NodeJS.ProcessEnv>,
  gitDirectories: readonly string[],
  elsewhere: readonly string[] = [],
): WritableByAgents {
  return {
    workDirectory: bothNames([directory]),
    gitDirectories: bothNames(gitDirectories),
    elsewhere: bothNames(elsewhere),
    temporary: bothNames(['/tmp', ...[env.TMPDIR, env.TEMP, env.TMP].flatMap(each => each || [])]),
  }
}

/** Returns true if an absolute path is in one of these folders, by name or real path. It need not exist. */
export function isWritableByAgents(path: string, where: WritableByAgents, platform = hostPlatform): boolean {
  return liesIn(path, Object.values(where).flat(), platform)
}

/** Like `isWritableByAgents`, for given folders. */
export function liesIn(path: string, folders: readonly string[], platform = hostPlatform): boolean {
  return bothNames([path]).some(name => folders.some(folder => isWithin(folder, name, platform)))
}

/** Returns each of these absolute paths and its real path. */
export function bothNames(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap(path => [path, realPathOf(path)]))]
}

/** Also works for a missing path: the real path of its existing parent, plus the rest. */
function realPathOf(path: string): string {
  try {
    // Node's own version would keep the given case instead of the disk's.
    return realpathSync.native(path)
  } catch {
    return dirname(path) === path ? path : join(realPathOf(dirname(path)), basename(path))
  }
}

/** Reports possible changes in some folders. */
export class FolderChanges implements Disposable {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #watchers: (FSWatcher | null)[]
  #changed = new AbortController()
  readonly #awaken = () => this.#changed.abort()

  constructor(folders: readonly string[], { clock, signal }: { clock: Clock; signal: AbortSignal }) {
    this.#clock = clock
    this.#signal = signal
    this.#watchers = folders.map(folder => watchFolder(folder, this.#awaken))
    signal.addEventListener('abort', this.#awaken)
  }

  /** Ends the next wait at once, like a change. */
  wake(): void {
    this.#awaken()
  }

  /** Resolves at the next change, at once if one came since the last call, after `ms`, or with the signal. */
  async next(ms: number): Promise<void> {
    if (this.#signal.aborted) return
    await this.#clock.wait(ms, this.#changed.signal)
    this.#changed = new AbortController()
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#awaken)
    for (const watcher of this.#watchers) watcher?.close()
  }
}

/** Returns null if it cannot be watched (no inotify watches left, for example); then polling must do. */
function watchFolder(folder: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(folder, onChange).on('error', () => {})
  } catch {
    return null
  }
}

/** Resolves with the real path of a work directory. Throws a `UserError` if it is missing or not a directory. */
export async function realWorkDirectory(directory: string): Promise<string> {
  try {
    const real = await realpath(directory)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    throw new UserError('CM0209', `${directory} cannot be used as the work directory: ${whyNot(error)}.`, {
      cause: error,
    })
  }
  throw new UserError('CM0209', `${directory} is not a directory; codemachine needs one to work in.`)
}

const WHY_NOT: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such directory',
  ENOTDIR: 'a part of its path is a file',
  EACCES: 'you may not read a part of its path',
  ELOOP: 'its links lead in a circle',
}

function whyNot(error: unknown): string {
  return WHY_NOT[systemErrorCode(error) ?? ''] ?? messageOf(error)
}

/** Returns the SHA-256 of a content, hex. */
export function sha256Of(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Resolves with true if a folder exists. */
export async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isDirectory() ?? false
}
