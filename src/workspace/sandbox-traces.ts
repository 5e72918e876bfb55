import { lstatSync, readdirSync, type Stats } from 'node:fs'
import { lstat, mkdir, readFile, realpath, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, writing } from '../base/errors.ts'
import { isItself, writeWholeFile } from '../platform/files.ts'

/**
 * Empty folders that codex's sandbox creates in each writable folder and leaves behind after a kill (docs/inside/codex.md).
 */
const TRACES: readonly string[] = ['.agents', '.aws', '.codex', '.git']

const tracePath = v.pipe(
  v.string(),
  v.check(path => isAbsolute(path) && TRACES.includes(basename(path))),
)
const recordSchema = v.object({
  v: v.literal(2),
  absent: v.array(tracePath),
  /** Missing files that threads may not read; undefined: none. */
  files: v.optional(v.array(v.pipe(v.string(), v.check(isAbsolute))), []),
})
type TraceRecord = Pick<v.InferOutput<typeof recordSchema>, 'absent' | 'files'>

/** The empty folders of codex's sandbox. Disposal removes the ones that are new and still empty. */
export interface SandboxTraces extends AsyncDisposable {
  /**
   * Creates the folders and keeps them until disposal. Several app-servers remove each other's folders, and the command then
   * fails (measured, codex 0.169).
   */
  keep(): Promise<void>
  /**
   * From now on, a new empty read-only file at one of these paths also counts as a trace. Codex creates one for each missing
   * path that a thread may not read, and sometimes leaves it behind.
   * @param paths absolute; those with a wildcard are ignored, nothing is laid for them
   */
  expectFiles(paths: readonly string[]): Promise<void>
  /**
   * Expects these files and creates missing ones. Several app-servers remove each other's files, and the command or thread
   * then fails (measured, codex 0.169). Codex keeps existing files.
   * @param paths absolute; a folder of one that is a link, or leads through one, gets none
   */
  layFiles(paths: readonly string[]): Promise<void>
  /** Removes these files after the last command that needs them. */
  removeFiles(): Promise<void>
  /** Returns true for an absolute path of such a folder, new and still empty. */
  readonly isTrace: (path: string) => boolean
  /** Returns true for an absolute path with such a file now. */
  readonly isLaid: (path: string) => boolean
}

/**
 * Notes in the file `record` which folders do not exist yet, after removing a killed run's leftovers. Never touches a folder
 * with content.
 * @param folders absolute paths that commands may write to; they need not exist yet
 */
export async function openSandboxTraces(folders: readonly string[], record: string): Promise<SandboxTraces> {
  await removeTraces(await readRecord(record))
  const absent = await absentIn(folders)
  let files: string[] = []
  const write = () => writing(record, () => writeWholeFile(record, JSON.stringify({ v: 2, absent, files })))
  await write()
  const expectMissing = async (paths: readonly string[]) => {
    const there = await Promise.all(paths.map(isThere))
    const missing = paths.filter((path, i) => !there[i] && isAbsolute(path) && !WILDCARD.test(path))
    const known = new Set(files)
    if (missing.every(path => known.has(path))) return missing
    files = [...new Set([...files, ...missing])]
    await write()
    return missing
  }
  return {
    async keep() {
      const laid = async (path: string) => {
        if (await isFolder(dirname(path))) await mkdir(path, { mode: 0o700 }).catch(() => {})
      }
      await Promise.all(absent.map(laid))
    },
    async expectFiles(paths) {
      await expectMissing(paths)
    },
    async layFiles(paths) {
      // Record first, so that the next process removes a killed one's files.
      await Promise.all((await expectMissing(paths)).map(layMask))
    },
    removeFiles: () => removeMasks(files),
    isLaid: path => files.includes(path) && isMask(lstatSync(path, { throwIfNoEntry: false })),
    isTrace: path => absent.includes(path) && holdsNothing(path),
    async [Symbol.asyncDispose]() {
      await removeTraces({ absent, files })
      await rm(record, { force: true })
    },
  }
}

const WILDCARD = /[*?[{]/

async function absentIn(folders: readonly string[]): Promise<string[]> {
  const paths = [...new Set(folders)].flatMap(folder => TRACES.map(name => join(folder, name)))
  const there = await Promise.all(paths.map(isThere))
  return paths.filter((_, i) => !there[i])
}

async function isFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null)
  return found?.isDirectory() ?? false
}

/** True for an empty or missing folder. */
function holdsNothing(path: string): boolean {
  try {
    return readdirSync(path).length === 0
  } catch (error) {
    return systemErrorCode(error) === 'ENOENT'
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null
}

async function removeTraces({ absent, files }: TraceRecord): Promise<void> {
  await Promise.all(absent.map(path => rmdir(path).catch(() => {})))
  await removeMasks(files)
}

async function removeMasks(files: readonly string[]): Promise<void> {
  await Promise.all(files.map(path => removeMask(path).catch(() => {})))
}

/** Creates an empty read-only file like codex; ignores failures. */
async function layMask(path: string): Promise<void> {
  const folder = await realpath(dirname(path)).catch(() => null)
  if (isItself(dirname(path), folder)) await writeFile(path, '', { flag: 'wx', mode: 0o444 }).catch(() => {})
}

async function removeMask(path: string): Promise<void> {
  if (isMask(await lstat(path))) await rm(path)
}

function isMask(found: Stats | undefined): boolean {
  return found?.isFile() === true && found.size === 0 && (found.mode & 0o333) === 0
}

/** Reads an earlier record. An invalid one counts as empty: at worst, empty folders stay. */
async function readRecord(path: string): Promise<TraceRecord> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return ''
  })
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), recordSchema), text)
  return read.success ? read.output : { absent: [], files: [] }
}
