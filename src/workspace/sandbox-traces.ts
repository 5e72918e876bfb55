import { lstatSync, readdirSync, type Stats } from 'node:fs'
import { lstat, mkdir, readFile, realpath, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, writing } from '../base/errors.ts'
import { writeWholeFile } from '../platform/files.ts'

/**
 * Empty folders that codex's sandbox creates in each writable folder, and leaves behind if it is killed
 * (docs/inside/codex.md).
 */
const TRACES: readonly string[] = ['.agents', '.aws', '.codex', '.git']

const tracePath = v.pipe(
  v.string(),
  v.check(path => isAbsolute(path) && TRACES.includes(basename(path))),
)
const recordSchema = v.object({
  v: v.literal(2),
  absent: v.array(tracePath),
  /** Files that were not there and that threads may not read; left out: none. */
  files: v.optional(v.array(v.pipe(v.string(), v.check(isAbsolute))), []),
})
type TraceRecord = Pick<v.InferOutput<typeof recordSchema>, 'absent' | 'files'>

/**
 * The empty folders that codex's sandbox creates. Disposing removes those that were created since and are still empty.
 */
export interface SandboxTraces extends AsyncDisposable {
  /**
   * Creates the folders and keeps them until disposal. Where several app-servers run commands in the same folders, each
   * removes folders that another one has created, whose command then fails (measured, codex 0.169).
   */
  keep(): Promise<void>
  /**
   * From now on, an empty file at one of these paths that nobody may write also counts as a trace, if nothing is there yet.
   * codex makes one for each missing path that a thread may not read, and sometimes leaves it behind.
   * @param paths absolute; those with a wildcard are ignored, nothing is laid for them
   */
  expectFiles(paths: readonly string[]): Promise<void>
  /**
   * Expects them, and lays them itself where they are missing: of several app-servers with the same folder each removes what
   * another one has laid, whose command or thread then fails (measured, codex 0.169). What is there already codex leaves.
   * @param paths absolute; a folder of one that is a link, or leads through one, gets none
   */
  layFiles(paths: readonly string[]): Promise<void>
  /** Removes those files, once no command runs for which they are laid. */
  removeFiles(): Promise<void>
  /** Whether this absolute path is such a folder, created since and still empty. */
  readonly isTrace: (path: string) => boolean
  /** Whether at this absolute path such a file is laid now. */
  readonly isLaid: (path: string) => boolean
}

/**
 * Records in the file `record` which of the folders do not exist yet, after removing those that a killed run has left
 * according to it. A folder with anything in it is never touched.
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
      // Recorded first: what is laid by one that is killed is removed by the next.
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

/** Whether a folder is empty, or gone. */
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

/** As codex lays them; nothing where that cannot be done. */
async function layMask(path: string): Promise<void> {
  const folder = await realpath(dirname(path)).catch(() => null)
  if (folder === dirname(path)) await writeFile(path, '', { flag: 'wx', mode: 0o444 }).catch(() => {})
}

async function removeMask(path: string): Promise<void> {
  if (isMask(await lstat(path))) await rm(path)
}

function isMask(found: Stats | undefined): boolean {
  return found?.isFile() === true && found.size === 0 && (found.mode & 0o333) === 0
}

/** What an earlier record says. An unusable one counts as empty: at worst, empty folders stay. */
async function readRecord(path: string): Promise<TraceRecord> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return ''
  })
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), recordSchema), text)
  return read.success ? read.output : { absent: [], files: [] }
}
