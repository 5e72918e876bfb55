import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { constants, copyFile, link, lstat, open, realpath, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import * as v from 'valibot'
import { diskFull, isNoRoom, systemErrorCode, writing } from '../../base/errors.ts'
import {
  comparable,
  isFileName,
  isItself,
  isWithin,
  pathExists,
  readBoundedText,
  replaceFile,
  sha256Of,
  writeWholeFile,
} from '../../platform/files.ts'
import { findObstacle, makeFolderInside, readRegularFile, whatIsThere } from './inside-directory.ts'

/**
 * A text file to write; `path`: relative to the work directory, with `/`. `behind`: appends the text on a line of its own if
 * the file is still this one (null: none); undefined: the text is the whole file.
 */
export interface FileToWrite {
  path: string
  text: string
  behind?: Omit<WrittenFile, 'path'> | null
}

/** The current state of a file. `sha256`: of its bytes, hex. */
interface WrittenFile {
  path: string
  bytes: number
  sha256: string
}

interface WriteAllOptions {
  /** Identifies the write. A repetition with the same key after a crash removes the leftovers. */
  key: string
  /** A folder in which nothing may be written, wherever it is. */
  closed: string
  /** File of the records that names the set during the write, for `finishKilledWrite`; undefined: none. */
  note?: string | undefined
}

/** Most files, most bytes together (and as many again before appended text), and most characters of a path. */
const MOST_FILES = 500
const MOST_BYTES = 16 * 1024 * 1024
const MOST_PATH = 1_000
/** Size of as many paths with each character escaped. */
const MOST_NOTE_BYTES = 8 * 1024 * 1024

/**
 * Writes files below `root`, the real path of a work directory: all of them, or none and a sentence on why.
 * - Never through a link, never into `.git`, `.codemachine` or `.codex-flow/runtime`.
 * - An equal file stays untouched; a changed one keeps its mode.
 * - A file for appended text that has changed since is a problem.
 * - After a kill between two files, `finishKilledWrite` or a repetition completes or undoes the set.
 * Throws a `UserError` with the file if the disk is full.
 */
export async function writeAllInside(
  root: string,
  files: readonly FileToWrite[],
  options: WriteAllOptions,
): Promise<{ files: readonly WrittenFile[] } | { problem: string }> {
  const problem = problemOf(files) ?? files.map(({ path }) => closedProblem(root, path, options)).find(Boolean)
  if (problem) return { problem }
  const staged: StagedWrite[] = []
  const made: string[] = []
  const { key } = options
  const note = noteOf(root, options)
  try {
    for (const file of files) await undoKilled(root, await unlessRefused(wholeOf(root, file), file.path), key)
    const all: WholeFile[] = []
    for (const file of files) all.push(await wholeOf(root, file))
    await note.begin(all)
    for (const file of all) staged.push(await stage(root, file, key, made))
    await replaceAll(root, staged)
    await note.written()
    for (const { temporary, backup } of staged) await removeTraces(root, temporary, backup)
    await note.end()
    return { files: staged.map(({ path, bytes, sha256 }) => ({ path, bytes: bytes.length, sha256 })) }
  } catch (error) {
    for (const { temporary } of staged) await unlink(join(root, temporary)).catch(() => {})
    for (const folder of made.reverse()) await rmdir(join(root, folder)).catch(() => {})
    await note.end().catch(() => {})
    if (error instanceof Refusal) return { problem: error.message }
    if (isNoRoom(error)) throw diskFull(root, error)
    if (systemErrorCode(error) === null) throw error
    return { problem: `the files cannot be written (${systemErrorCode(error)}).` }
  }
}

/** The result for a killed process's set of files: all were written, or the written ones were undone. */
export interface KilledWrite {
  end: 'written' | 'taken back'
  paths: readonly string[]
}

/**
 * Finishes a killed `writeAllInside` by its note, before any other work in the work directory; null: nothing to do. Keeps
 * files that somebody has changed since.
 */
export async function finishKilledWrite(root: string, note: string): Promise<KilledWrite | null> {
  const written = await readNote(writtenNote(note))
  const begun = written ?? (await readNote(note))
  if (begun === null) return null
  const { key, files, folders } = begun
  const isWhole = written !== null || (await isAllWritten(root, files))
  for (const file of files) await (isWhole ? clearUp(root, file.path, key) : undoKilled(root, file, key))
  if (!isWhole) for (const folder of folders.toReversed()) await removeEmptyFolder(root, folder)
  await noteOf(root, { key, note, closed: '' }).end()
  return { end: isWhole ? 'written' : 'taken back', paths: files.map(({ path }) => path) }
}

/** The files of a set during its write, and its new folders, parents first. */
const noteSchema = v.object({
  key: v.string(),
  files: v.array(v.object({ path: v.pipe(v.string(), v.check(isPlainPath)), sha256: v.string() })),
  folders: v.array(v.pipe(v.string(), v.check(isPlainPath))),
})

/** Returns the note's name after all files have their names: only temporary files are left to remove. */
function writtenNote(note: string): string {
  return `${note}.written`
}

/** The note of a set in three states: being written, all files in place, finished. */
interface Note {
  begin(all: readonly WholeFile[]): Promise<void>
  written(): Promise<void>
  end(): Promise<void>
}

const NO_NOTE: Note = { begin: async () => {}, written: async () => {}, end: async () => {} }

function noteOf(root: string, { key, note }: WriteAllOptions): Note {
  if (note === undefined) return NO_NOTE
  return {
    async begin(all) {
      const files = all.map(({ path, bytes }) => ({ path, sha256: sha256Of(bytes) }))
      const text = JSON.stringify({ key, files, folders: await missingFolders(root, all) })
      await writing(note, () => writeWholeFile(note, text))
    },
    written: () => rename(note, writtenNote(note)),
    async end() {
      for (const each of [note, writtenNote(note)]) await rm(each, { force: true })
    },
  }
}

/** Returns the folders that these files need, parents first. */
async function missingFolders(root: string, all: readonly WholeFile[]): Promise<string[]> {
  const folders = new Set<string>()
  for (const { path } of all)
    for (let above = dirname(path); above !== '.' && !(await pathExists(join(root, above))); above = dirname(above))
      folders.add(above)
  return [...folders].sort()
}

/** Returns a note; null if it is missing or invalid. */
async function readNote(path: string): Promise<v.InferOutput<typeof noteSchema> | null> {
  const read = await readBoundedText(path, MOST_NOTE_BYTES)
  if (read === 'missing' || 'problem' in read) return null
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), noteSchema), read.text)
  return parsed.success ? parsed.output : null
}

async function isAllWritten(root: string, files: readonly NotedFile[]): Promise<boolean> {
  for (const { path, sha256 } of files) if ((await hashOf(join(root, normalize(path)))) !== sha256) return false
  return true
}

async function clearUp(root: string, path: string, key: string): Promise<void> {
  const { folder, temporary, backup } = placesOf(path, key)
  if ((await findObstacle(root, folder)) === null) await removeTraces(root, temporary, backup)
}

async function removeEmptyFolder(root: string, folder: string): Promise<void> {
  if ((await findObstacle(root, folder)) === null) await rmdir(join(root, folder)).catch(() => {})
}

/** Removes these files, or links in their place. */
async function removeTraces(root: string, ...paths: readonly string[]): Promise<void> {
  for (const each of paths) await unlink(join(root, each)).catch(() => {})
}

/** Thrown with a sentence on why files cannot be written. */
class Refusal extends Error {}

/** A file with its new content. */
interface WholeFile {
  path: string
  bytes: Buffer
}

/** A file with the hash of its new content; null: unknown. */
interface NotedFile {
  path: string
  sha256: string | null
}

interface StagedWrite {
  path: string
  bytes: Buffer
  sha256: string
  /** Temporary paths of the new and of the old content, in the folder of the file. */
  temporary: string
  backup: string
  kind: 'same' | 'new' | 'changed'
}

function problemOf(files: readonly FileToWrite[]): string | null {
  if (files.length > MOST_FILES) return `${files.length} files are more than ${MOST_FILES}; write fewer at once.`
  const bytes = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  if (bytes > MOST_BYTES) return `${bytes} bytes are more than ${MOST_BYTES}; write less at once.`
  const before = files.reduce((sum, { behind }) => sum + (behind?.bytes ?? 0), 0)
  if (before > MOST_BYTES) return `Nothing is added to files of ${before} bytes: that is more than ${MOST_BYTES}.`
  const seen = new Set<string>()
  for (const { path } of files) {
    const name = JSON.stringify(path.slice(0, 200))
    if (!isPlainPath(path)) return `${name} is no path of a file in the work directory, such as "docs/plan.md".`
    const parts = path.split('/')
    if (parts.some(isOwnFolder)) return `${name} lies in .git or .codemachine, where nothing is written.`
    if (isInRuntime(parts)) return `${name} lies in ${RUNTIME_FOLDER}, where nothing is written.`
    if (seen.has(comparable(path))) return `${name} is there twice.`
    seen.add(comparable(path))
  }
  return null
}

/** True for a relative path in its shortest form, without parts that have a special meaning on some system. */
export function isPlainPath(path: string, platform?: NodeJS.Platform): boolean {
  if (path === '' || path.length > MOST_PATH || /[\\\p{Cc}]|^[a-z]:/iu.test(path)) return false
  return path.split('/').every(part => isFileName(part, platform))
}

/** True if a part of a path names git's or codemachine's folder on some file system. */
export function isOwnFolder(part: string): boolean {
  return OWN_NAMES.has(nameOnDisk(part))
}

/**
 * Folder of workflow runs' files for people, relative to the work directory; like `.codemachine` never an agent's work,
 * ignored by git or not.
 */
export const RUNTIME_FOLDER = '.codex-flow/runtime'

/** True if the parts of a path lead to that folder or into it. */
export function isInRuntime(parts: readonly string[]): boolean {
  const [first = '', second = ''] = parts.map(nameOnDisk)
  return (first === '.codex-flow' || first === 'codex-~1') && second === 'runtime'
}

const OWN_NAMES: ReadonlySet<string> = new Set(['.git', 'git~1', '.codemachine', 'codema~1'])

/** Normalizes a name like file systems that ignore case, invisible characters, and dots and spaces at the end. */
function nameOnDisk(part: string): string {
  return part
    .replace(/\p{Cf}/gu, '')
    .toLowerCase()
    .replace(/[. ]+$/, '')
    .replace(/:.*$/, '')
}

function closedProblem(root: string, path: string, { closed }: WriteAllOptions): string | null {
  const isClosed = isWithin(closed, join(root, path)) && !isWithin(closed, root)
  return isClosed ? `${JSON.stringify(path)} lies in the records of codemachine, where nothing is written.` : null
}

/** Returns the paths of a file and its temporary files, relative to the root. */
function placesOf(given: string, key: string) {
  const path = normalize(given)
  const folder = dirname(path)
  const name = createHash('sha256').update(`${key} ${given}`).digest('hex').slice(0, 24)
  return { path, folder, temporary: join(folder, `.${name}.new.tmp`), backup: join(folder, `.${name}.old.tmp`) }
}

const LINE_END = 0x0a

/** Returns the whole new content of a file. Refuses appended text if the file has changed. */
async function wholeOf(root: string, { path, text, behind }: FileToWrite): Promise<WholeFile> {
  const added = Buffer.from(text)
  if (behind === undefined) return { path, bytes: added }
  const now = await readText(root, normalize(path), MOST_BYTES + added.length)
  if (now === null && behind === null) return { path, bytes: added }
  if (now === null) throw new Refusal(`${path} is not there any more.`)
  const before = behind?.bytes ?? 0
  // Appended text starts on its own line.
  const isMidLine = added.length > 0 && before > 0 && now.length >= before && now[before - 1] !== LINE_END
  const more = isMidLine ? Buffer.concat([Buffer.of(LINE_END), added]) : added
  const isBehind = (bytes: Buffer) => bytes.length === (behind?.bytes ?? 0) && sha256Of(bytes) === behind?.sha256
  if (isBehind(now)) return { path, bytes: Buffer.concat([now, more]) }
  const isAdded = now.subarray(before).equals(more) && (behind === null || isBehind(now.subarray(0, before)))
  if (isAdded) return { path, bytes: now }
  throw new Refusal(`${path} ${behind === null ? 'is there by now' : 'was changed since it was looked at'}.`)
}

/** Reads a text file below the root; null if missing. Refuses links on the way, other kinds, and binary content. */
async function readText(root: string, path: string, most: number): Promise<Buffer | null> {
  const blocked = await findObstacle(root, dirname(path))
  if (blocked?.kind === 'missing') return null
  if (blocked !== null) throw new Refusal(`${blocked.path} ${whatIsThere(blocked)}.`)
  if ((await modeOf(root, path)) === null) return null
  const read = await readRegularFile(join(root, path), most)
  if (read.kind === 'too-large') throw new Refusal(`${path} is larger than ${MOST_BYTES / 1024 / 1024} MiB.`)
  if (read.kind !== 'bytes') throw new Refusal(`${path} cannot be read.`)
  if (!isUtf8(read.bytes) || read.bytes.includes(0)) throw new Refusal(`${path} is no text.`)
  return read.bytes
}

/** Returns a file with its hash; without the hash if it was refused. */
async function unlessRefused(file: Promise<WholeFile>, path: string): Promise<NotedFile> {
  try {
    return { path, sha256: sha256Of((await file).bytes) }
  } catch (error) {
    if (error instanceof Refusal) return { path, sha256: null }
    throw error
  }
}

/** Undoes a killed write of a file: beside a replaced file is its old content, beside a new file its new one. */
async function undoKilled(root: string, { path: given, sha256 }: NotedFile, key: string): Promise<void> {
  const { path, folder, temporary, backup } = placesOf(given, key)
  if ((await findObstacle(root, folder)) !== null) return
  const [file, old] = [join(root, path), join(root, backup)]
  if (sha256 !== null && (await hashOf(file)) === sha256) {
    if (await isFile(old)) await rename(old, file)
    else if ((await hashOf(join(root, temporary))) === sha256) await unlink(file)
  }
  await removeTraces(root, temporary, backup)
}

async function isFile(path: string): Promise<boolean> {
  const stat = await lstat(path).catch(() => null)
  return stat?.isFile() ?? false
}

/** Writes the new content to a temporary file beside the file. */
async function stage(
  root: string,
  { path: given, bytes }: WholeFile,
  key: string,
  made: string[],
): Promise<StagedWrite> {
  const sha256 = sha256Of(bytes)
  const { path, folder, temporary, backup } = placesOf(given, key)
  const blocked = await findObstacle(root, folder)
  if (blocked !== null && blocked.kind !== 'missing') throw new Refusal(`${blocked.path} ${whatIsThere(blocked)}.`)
  const obstacle = await makeFolderInside(root, folder, { mode: 0o777, onMade: each => made.push(each) })
  if (obstacle !== null) throw new Refusal(`${obstacle.path} ${whatIsThere(obstacle)}.`)
  const mode = await modeOf(root, path)
  const kind = mode === null ? 'new' : (await hasContent(join(root, path), bytes)) ? 'same' : 'changed'
  if (kind !== 'same') await writing(join(root, path), () => writeNew(join(root, temporary), bytes, mode))
  return { path: given, bytes, sha256, temporary, backup, kind }
}

/** Returns the mode of the regular file at a path; null if it is missing. Refuses another kind. */
async function modeOf(root: string, path: string): Promise<number | null> {
  try {
    const stat = await lstat(join(root, path))
    if (stat.isFile()) return stat.mode & 0o777
    throw new Refusal(
      `${path} is ${stat.isSymbolicLink() ? 'a link' : stat.isDirectory() ? 'a folder' : 'no regular file'}.`,
    )
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}

async function hasContent(path: string, bytes: Buffer): Promise<boolean> {
  const read = await readRegularFile(path, bytes.length)
  return read.kind === 'bytes' && read.bytes.equals(bytes)
}

/** Writes a new file, completely or not at all. @param mode null: the system's default */
async function writeNew(path: string, bytes: Buffer, mode: number | null): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)
  await using file = await open(path, flags, mode ?? 0o666)
  try {
    await file.writeFile(bytes)
    if (mode !== null) await file.chmod(mode)
    await file.sync()
    if (!isItself(path, await realpath(path))) throw new Refusal(`${path} lies behind a link.`)
  } catch (error) {
    await unlink(path).catch(() => {})
    throw error
  }
}

/** Moves all files to their names; if one fails, restores the earlier ones. */
async function replaceAll(root: string, staged: readonly StagedWrite[]): Promise<void> {
  const done: StagedWrite[] = []
  try {
    for (const write of staged) {
      if (write.kind === 'same') continue
      const file = join(root, write.path)
      if (write.kind === 'changed') await keep(file, join(root, write.backup))
      done.push(write)
      await give(join(root, write.temporary), file, write.kind)
    }
  } catch (error) {
    for (const write of done.reverse()) await putBack(root, write)
    throw error
  }
}

/** Moves a file into place. A new one also keeps its temporary name until all are done, which identifies its writer. */
async function give(temporary: string, path: string, kind: StagedWrite['kind']): Promise<void> {
  if (kind === 'new') await link(temporary, path).catch(() => replaceFile(temporary, path))
  else await replaceFile(temporary, path)
}

/** Keeps the old content; copies it on file systems without links. */
async function keep(path: string, backup: string): Promise<void> {
  await link(path, backup).catch(() => copyFile(path, backup, constants.COPYFILE_EXCL))
}

async function putBack(root: string, { path, backup, kind, sha256 }: StagedWrite): Promise<void> {
  const file = join(root, path)
  if (kind === 'changed') await replaceFile(join(root, backup), file)
  else if (kind === 'new' && (await hashOf(file)) === sha256) await unlink(file)
}

async function hashOf(path: string): Promise<string | null> {
  const read = await readRegularFile(path, 2 * MOST_BYTES)
  return read.kind === 'bytes' ? sha256Of(read.bytes) : null
}
