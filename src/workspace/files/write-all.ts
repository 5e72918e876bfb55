import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { constants, copyFile, link, lstat, open, realpath, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import * as v from 'valibot'
import { diskFull, isNoRoom, systemErrorCode, writing } from '../../base/errors.ts'
import { isWithin, pathExists, readBoundedText, replaceFile, sha256Of, writeWholeFile } from '../../platform/files.ts'
import { findObstacle, makeFolderInside, readRegularFile, whatIsThere } from './inside-directory.ts'

/**
 * A text file to be written; `path`: relative to the work directory, with `/` between its parts. `behind`: the text is added
 * at the end of the file that was this one when somebody looked at it (null: there was none), on a line of its own; left out: the text is all of it.
 */
export interface FileToWrite {
  path: string
  text: string
  behind?: Omit<WrittenFile, 'path'> | null
}

/** A file as it is now. `sha256`: of its bytes, hex. */
interface WrittenFile {
  path: string
  bytes: number
  sha256: string
}

interface WriteAllOptions {
  /** Tells one writing from another. Done again with the same one after a crash, it clears up what that has left. */
  key: string
  /** A folder that nothing is written in, wherever it lies. */
  closed: string
  /** A file of the records that names the set while it is written, for `finishKilledWrite`; left out: nobody looks for it. */
  note?: string | undefined
}

/** At most so many files, of so many bytes together (and as many again that they stand behind), with so many characters in a path. */
const MOST_FILES = 500
const MOST_BYTES = 16 * 1024 * 1024
const MOST_PATH = 1_000
/** Of as many paths, each character written as an escape. */
const MOST_NOTE_BYTES = 8 * 1024 * 1024

/**
 * Writes files below `root`, the real path of a work directory: all of them, or none and why, a sentence. Never through a
 * link, never into `.git`, `.codemachine` or `.codex-flow/runtime`. One that has its content already is left alone; another keeps its mode; one that
 * is to be added to, and is neither as it was looked at nor as it would be then, is a problem. If
 * the process is killed between two files, `finishKilledWrite` or doing it again ends it, or takes back what was written.
 * Throws a `UserError` that names the file where there is no room on the disk for it.
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

/** What a killed process has left of a set of files: all of them were written, or those that were are as before again. */
export interface KilledWrite {
  end: 'written' | 'taken back'
  paths: readonly string[]
}

/**
 * Ends what a killed `writeAllInside` has left half, by its note, before anything else is done in the work directory; null if it
 * left nothing. A file that somebody has changed since stays as it is.
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

/** The files of a set that is being written, and the folders that were not there, those above first. */
const noteSchema = v.object({
  key: v.string(),
  files: v.array(v.object({ path: v.pipe(v.string(), v.check(isPlainPath)), sha256: v.string() })),
  folders: v.array(v.pipe(v.string(), v.check(isPlainPath))),
})

/** Once all files have their names, so that only what lay beside them is left to be removed. */
function writtenNote(note: string): string {
  return `${note}.written`
}

/** The note of a set: that it is being written, that all files have their names, that nothing is left to be done. */
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

/** The folders that are made for these files, those above first. */
async function missingFolders(root: string, all: readonly WholeFile[]): Promise<string[]> {
  const folders = new Set<string>()
  for (const { path } of all)
    for (let above = dirname(path); above !== '.' && !(await pathExists(join(root, above))); above = dirname(above))
      folders.add(above)
  return [...folders].sort()
}

/** Null if there is none. One that is no note says nothing. */
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

/** It, or a link that somebody has put there. */
async function removeTraces(root: string, ...paths: readonly string[]): Promise<void> {
  for (const each of paths) await unlink(join(root, each)).catch(() => {})
}

/** Why files cannot be written, a sentence. */
class Refusal extends Error {}

/** A file as it is to be. */
interface WholeFile {
  path: string
  bytes: Buffer
}

/** The same by its hash; null: not known. */
interface NotedFile {
  path: string
  sha256: string | null
}

interface StagedWrite {
  path: string
  bytes: Buffer
  sha256: string
  /** Where the new content lies, and where the old one is kept meanwhile; in the folder of the file. */
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
    if (seen.has(path)) return `${name} is there twice.`
    seen.add(path)
  }
  return null
}

/** Relative, in its shortest form, and without what has a meaning of its own on some system. */
export function isPlainPath(path: string): boolean {
  if (path === '' || path.length > MOST_PATH || /[\\\p{Cc}]|^[a-z]:/iu.test(path)) return false
  return path.split('/').every(part => part !== '' && part !== '.' && part !== '..')
}

/** Whether a part of a path is the name of git's folder or of codemachine's, on some file system. */
export function isOwnFolder(part: string): boolean {
  return OWN_NAMES.has(nameOnDisk(part))
}

/**
 * What runs of workflows write for people, relative to the work directory: as `.codemachine` no work of an agent's, whether
 * git ignores it or not.
 */
export const RUNTIME_FOLDER = '.codex-flow/runtime'

/** Whether the parts of a path in the work directory lead to that folder, or into it. */
export function isInRuntime(parts: readonly string[]): boolean {
  const [first = '', second = ''] = parts.map(nameOnDisk)
  return (first === '.codex-flow' || first === 'codex-~1') && second === 'runtime'
}

const OWN_NAMES: ReadonlySet<string> = new Set(['.git', 'git~1', '.codemachine', 'codema~1'])

/** As file systems compare names that ignore case, invisible characters, or dots and spaces at the end. */
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

/** Where a file, and what is kept beside it meanwhile, lie below the root. */
function placesOf(given: string, key: string) {
  const path = normalize(given)
  const folder = dirname(path)
  const name = createHash('sha256').update(`${key} ${given}`).digest('hex').slice(0, 24)
  return { path, folder, temporary: join(folder, `.${name}.new.tmp`), backup: join(folder, `.${name}.old.tmp`) }
}

const LINE_END = 0x0a

/** The whole content of a file that is to be written. Refuses one that is added to where it is another by now. */
async function wholeOf(root: string, { path, text, behind }: FileToWrite): Promise<WholeFile> {
  const added = Buffer.from(text)
  if (behind === undefined) return { path, bytes: added }
  const now = await readText(root, normalize(path), MOST_BYTES + added.length)
  if (now === null && behind === null) return { path, bytes: added }
  if (now === null) throw new Refusal(`${path} is not there any more.`)
  const before = behind?.bytes ?? 0
  // What is added begins a line of its own.
  const isMidLine = added.length > 0 && before > 0 && now.length >= before && now[before - 1] !== LINE_END
  const more = isMidLine ? Buffer.concat([Buffer.of(LINE_END), added]) : added
  const isBehind = (bytes: Buffer) => bytes.length === (behind?.bytes ?? 0) && sha256Of(bytes) === behind?.sha256
  if (isBehind(now)) return { path, bytes: Buffer.concat([now, more]) }
  const isAdded = now.subarray(before).equals(more) && (behind === null || isBehind(now.subarray(0, before)))
  if (isAdded) return { path, bytes: now }
  throw new Refusal(`${path} ${behind === null ? 'is there by now' : 'was changed since it was looked at'}.`)
}

/** A text file below the root; null if there is none. Refuses a link on the way, anything else in its place, and what is no text. */
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

/** What was found out of a file; only its path if it is refused. */
async function unlessRefused(file: Promise<WholeFile>, path: string): Promise<NotedFile> {
  try {
    return { path, sha256: sha256Of((await file).bytes) }
  } catch (error) {
    if (error instanceof Refusal) return { path, sha256: null }
    throw error
  }
}

/** Takes back what a killed one has written, and clears up: it left the old content beside a file that it replaced, and the new beside one that it made. */
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

/** Writes the new content beside the file. */
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

/** The mode of the regular file at a path; null if there is nothing. Refuses anything else. */
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

/** A whole file, or none. @param mode null: as the system makes new files */
async function writeNew(path: string, bytes: Buffer, mode: number | null): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)
  await using file = await open(path, flags, mode ?? 0o666)
  try {
    await file.writeFile(bytes)
    if (mode !== null) await file.chmod(mode)
    await file.sync()
    if ((await realpath(path)) !== path) throw new Refusal(`${path} lies behind a link.`)
  } catch (error) {
    await unlink(path).catch(() => {})
    throw error
  }
}

/** Gives each its name; if one cannot have it, those before it are as they were. */
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

/** One that is made keeps its other name until all are, which says by whom it was made. */
async function give(temporary: string, path: string, kind: StagedWrite['kind']): Promise<void> {
  if (kind === 'new') await link(temporary, path).catch(() => replaceFile(temporary, path))
  else await replaceFile(temporary, path)
}

/** Not every file system has links. */
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
