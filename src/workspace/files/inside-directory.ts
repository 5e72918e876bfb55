import { randomUUID } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { constants, type FileHandle, lstat, mkdir, open, realpath, rename, unlink } from 'node:fs/promises'
import { dirname, join, parse, sep } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { utf8Text } from '../../base/text.ts'
import { isItself, pathInside, replaceFile } from '../../platform/files.ts'

/*
 * Safe reading and writing in a work directory, where an agent may have put a link in place of any folder or file.
 * `root` is the work directory's real path; all other paths are relative to it.
 */

/** The first part of a path that is not a real directory. */
export interface Obstacle {
  path: string
  kind: 'missing' | 'link' | 'not-a-directory'
}

/** Returns the first part of the path to a folder below `root` that is not a real directory; `null`: each is one. */
export async function findObstacle(root: string, folder: string): Promise<Obstacle | null> {
  for (const path of partsOf(folder)) {
    const kind = await kindOf(join(root, path))
    if (kind !== 'directory') return { path, kind: kind === 'file' ? 'not-a-directory' : kind }
  }
  return null
}

/** Returns the obstacle of a folder as a predicate: `is a link`. */
export function whatIsThere({ kind }: Obstacle): string {
  return kind === 'link' ? 'is a link' : 'is not a folder'
}

interface MakeFolderOptions {
  /** Mode of new folders, less the umask; 0700 if left out. */
  mode?: number
  /** Called with the path of each new folder. */
  onMade?(path: string): void
}

/** Creates a folder below `root` with its parents, never through a link. Returns the obstacle; `null` on success. */
export async function makeFolderInside(
  root: string,
  folder: string,
  { mode = 0o700, onMade }: MakeFolderOptions = {},
): Promise<Obstacle | null> {
  for (const path of partsOf(folder)) {
    try {
      await mkdir(join(root, path), { mode })
      onMade?.(path)
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error
    }
    const obstacle = await findObstacle(root, path)
    if (obstacle !== null) return obstacle
  }
  return null
}

/**
 * Writes a whole file below `root` atomically. A link in the file's place is replaced, never followed. Throws a
 * `UserError` if a folder on the way is not a real directory.
 * @param mode 0600 if left out, as the file may hold a prompt
 */
export async function writeFileInside(
  root: string,
  file: string,
  content: string | Uint8Array,
  mode = 0o600,
): Promise<void> {
  const folder = dirname(file)
  const obstacle = await findObstacle(root, folder)
  if (obstacle !== null) throw notAFolder(join(root, obstacle.path))
  const temporary = join(root, folder, `.${randomUUID()}.tmp`)
  try {
    await writeNew(temporary, content, mode)
    if (!isItself(temporary, await realpath(temporary))) throw notAFolder(join(root, folder))
    await replaceFile(temporary, join(root, file))
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw error
  }
}

/**
 * Renames the entry at a path below `root` (a link itself, not its target) to the next free `<name>.broken-<n>`. Returns the
 * new path, relative to `root`.
 */
export async function renameAsBroken(root: string, path: string): Promise<string> {
  const { dir, name, ext } = parse(path)
  for (let number = 1; ; number += 1) {
    const aside = join(dir, `${name}.broken-${number}${ext}`)
    if ((await kindOf(join(root, aside))) !== 'missing') continue
    await rename(join(root, path), join(root, aside))
    return aside
  }
}

/** Returns `path` relative to `directory`. Throws if it is outside. */
export function relativeInside(directory: string, path: string): string {
  const inside = pathInside(directory, path)
  if (inside === null) throw new Error(`${path} is not inside ${directory}`)
  return join(inside)
}

function notAFolder(path: string): UserError {
  return new UserError(
    'CM0210',
    `${path} is not a real folder (perhaps a link), so codemachine writes nothing there; replace it with a folder.`,
  )
}

/** Splits `a/b/c` into `a`, `a/b`, `a/b/c`. */
function partsOf(folder: string): string[] {
  const names = folder.split(sep).filter(name => name !== '' && name !== '.')
  return names.map((_, index) => names.slice(0, index + 1).join(sep))
}

async function kindOf(path: string): Promise<'missing' | 'link' | 'directory' | 'file'> {
  try {
    const stat = await lstat(path)
    if (stat.isSymbolicLink()) return 'link'
    return stat.isDirectory() ? 'directory' : 'file'
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return 'missing'
    throw error
  }
}

async function writeNew(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow
  await using file = await open(path, flags, 0o600)
  await file.writeFile(content)
  // The umask changed the mode of `open`.
  await file.chmod(mode & 0o777)
  await file.sync()
}

// Windows has neither flag.
const noFollow = constants.O_NOFOLLOW ?? 0
const nonBlock = constants.O_NONBLOCK ?? 0

/** The state of a file without its content. Two states are the same if their keys are. */
export interface FileState {
  /** Device, inode, size, mtime and ctime. */
  key: string
  /** Time of the last change, Unix time in ms. */
  changedAt: number
  mode: number
}

/** `text`: the file's content. `gone`: no such file. `broken`: unreadable; `problem` is a sentence about "it". */
type TextFile =
  | { kind: 'text'; text: string; state: FileState }
  | { kind: 'gone' }
  | { kind: 'broken'; problem: string }

/**
 * `bytes`: the file's content. `gone`: no such file. `too-large`: `size` in bytes. `broken`: unreadable, as `TextFile`.
 */
type RegularFile =
  | { kind: 'bytes'; bytes: Buffer; state: FileState }
  | { kind: 'gone' }
  | { kind: 'too-large'; size: number }
  | { kind: 'broken'; problem: string }

/** Returns the state of the regular file at a path; `null` for none or another kind. Does not follow links. */
export async function fileState(path: string): Promise<FileState | null> {
  try {
    const stat = await lstat(path, { bigint: true })
    return stat.isFile() ? stateOf(stat) : null
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/** Reads an untrusted UTF-8 text: never through a link, never from a pipe, at most `limit` bytes. */
export async function readTextFile(path: string, limit: number): Promise<TextFile> {
  const read = await readRegularFile(path, limit)
  if (read.kind === 'too-large') return broken(`it is larger than ${limit / 1024 / 1024} MiB; keep it short.`)
  if (read.kind !== 'bytes') return read
  const text = utf8Text(read.bytes, true)
  if (text === null) return broken('it is not valid UTF-8; write it as UTF-8 text.')
  const zero = text.indexOf('\0')
  if (zero === -1) return { kind: 'text', text, state: read.state }
  return broken(`line ${text.slice(0, zero).split('\n').length} has a NUL byte; write plain text.`)
}

/**
 * Lets a person edit a text below `root` that may not exist yet, never through a link. Resolves with a sentence on why that
 * failed; null: edited or unchanged.
 * @param edit the text as it is to be from now on; null: it stays as it was
 */
export async function editFileInside(
  root: string,
  file: string,
  edit: (text: string) => Promise<string | null>,
): Promise<string | null> {
  const path = relativeInside(root, join(root, file))
  const obstacle = await findObstacle(root, dirname(path))
  if (obstacle !== null)
    return `${path} cannot be edited: ${obstacle.path} ${obstacle.kind === 'missing' ? 'is not there' : whatIsThere(obstacle)}.`
  const read = await readTextFile(join(root, path), MOST_EDITED)
  if (read.kind === 'broken') return `${path} cannot be edited: ${read.problem}`
  const edited = await edit(read.kind === 'gone' ? '' : read.text)
  if (edited !== null) await writeFileInside(root, path, edited, read.kind === 'gone' ? undefined : read.state.mode)
  return null
}

const MOST_EDITED = 1024 * 1024

/** Reads an untrusted file as `readTextFile` does, with any content. */
export async function readRegularFile(path: string, limit: number): Promise<RegularFile> {
  return await lookIntoFile(path, file => readOpened(file, limit))
}

/** Reads the first `bytes` of an untrusted file up to `limit`; reads nothing of a larger one. */
export async function readBeginning(path: string, bytes: number, limit: number): Promise<RegularFile> {
  return await lookIntoFile(path, file => readOpened(file, limit, bytes))
}

/** Reads both ends of an untrusted file of any size; of a short file, each is the whole. Else as `readRegularFile`. */
export async function readEnds(
  path: string,
  { first, last }: { first: number; last: number },
): Promise<{ kind: 'ends'; first: Buffer; last: Buffer } | Exclude<RegularFile, { kind: 'bytes' | 'too-large' }>> {
  return await lookIntoFile(path, async file => {
    const stat = await file.stat()
    if (!stat.isFile()) return broken('it is not a regular file; write a file in its place.')
    const from = Math.max(0, stat.size - last)
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(last, stat.size)), 0, undefined, from)
    return {
      kind: 'ends',
      first: await readFirst(file, Math.min(first, stat.size)),
      last: buffer.subarray(0, bytesRead),
    }
  })
}

async function lookIntoFile<T>(
  path: string,
  look: (file: FileHandle) => Promise<T>,
): Promise<T | Exclude<RegularFile, { kind: 'bytes' | 'too-large' }>> {
  try {
    const stat = await lstat(path)
    if (stat.isSymbolicLink()) return broken('it is a link; write a file in its place.')
    if (!stat.isFile()) return broken('it is not a regular file; write a file in its place.')
    // It may have become a pipe since, at which a plain open would wait forever.
    await using file = await open(path, constants.O_RDONLY | nonBlock | noFollow)
    return await look(file)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'gone' }
    if (code === 'EACCES' || code === 'EPERM' || code === 'ELOOP' || code === 'ENXIO') {
      return broken(`it cannot be opened (${code}); write a readable file in its place.`)
    }
    throw error
  }
}

/** @param beginning how many bytes are wanted; left out: all */
async function readOpened(file: FileHandle, limit: number, beginning?: number): Promise<RegularFile> {
  const stat = await file.stat({ bigint: true })
  if (!stat.isFile()) return broken('it is not a regular file; write a file in its place.')
  const read = () => (beginning === undefined ? readUpTo(file, limit, Number(stat.size)) : readFirst(file, beginning))
  const bytes = stat.size > limit ? null : await read()
  return bytes === null
    ? { kind: 'too-large', size: Number(stat.size) }
    : { kind: 'bytes', bytes, state: stateOf(stat) }
}

async function readFirst(file: FileHandle, most: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(most), 0, most, 0)
  return buffer.subarray(0, bytesRead)
}

/** @param expected the size that it had; nothing of it is believed, but room is made for no more at first */
async function readUpTo(file: FileHandle, limit: number, expected: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  for (let size = 0; size <= limit; ) {
    const room = Math.min(64 * 1024, Math.max(expected - size, 4096))
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(room))
    if (bytesRead === 0) return Buffer.concat(chunks)
    chunks.push(buffer.subarray(0, bytesRead))
    size += bytesRead
  }
  return null
}

function stateOf({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs, mode }: BigIntStats): FileState {
  return { key: [dev, ino, size, mtimeNs, ctimeNs].join(' '), changedAt: Number(ctimeMs), mode: Number(mode) }
}

function broken(problem: string): { kind: 'broken'; problem: string } {
  return { kind: 'broken', problem }
}
