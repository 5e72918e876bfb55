import { readdirSync } from 'node:fs'
import { lstat, mkdir, readFile, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, writing } from '../base/errors.ts'
import { writeWholeFile } from '../platform/files.ts'

/** Empty folders that codex's sandbox lays into each folder that a command may write to, and leaves there if it is cut off (docs/codex.md). */
const TRACES: readonly string[] = ['.agents', '.aws', '.codex', '.git']

const tracePath = v.pipe(
  v.string(),
  v.check(path => isAbsolute(path) && TRACES.includes(basename(path))),
)
const recordSchema = v.object({ v: v.literal(2), absent: v.array(tracePath) })

/** What codex's sandbox leaves in folders. Disposing of it removes what has come since and is empty. */
export interface SandboxTraces extends AsyncDisposable {
  /**
   * Makes them, and keeps them until it is disposed of: where several app-servers run commands in the same folders, each
   * removes what another one has laid there, whose command then fails (measured, codex 0.169).
   */
  keep(): Promise<void>
  /** Whether what is at this absolute path has come since, and holds nothing. */
  readonly isTrace: (path: string) => boolean
}

/**
 * Looks which of them are not there now. What has anything in it is never touched. What was not there is kept in the
 * file `record`: those that a run left which was cut off are removed first.
 * @param folders those that commands may write to, absolute; one that is not there yet may come
 */
export async function openSandboxTraces(folders: readonly string[], record: string): Promise<SandboxTraces> {
  await removeEmpty(await readRecord(record))
  const absent = await absentIn(folders)
  await writing(record, () => writeWholeFile(record, JSON.stringify({ v: 2, absent })))
  return {
    async keep() {
      const laid = async (path: string) => {
        if (await isFolder(dirname(path))) await mkdir(path, { mode: 0o700 }).catch(() => {})
      }
      await Promise.all(absent.map(laid))
    },
    isTrace: path => absent.includes(path) && holdsNothing(path),
    async [Symbol.asyncDispose]() {
      await removeEmpty(absent)
      await rm(record, { force: true })
    },
  }
}

async function absentIn(folders: readonly string[]): Promise<string[]> {
  const paths = [...new Set(folders)].flatMap(folder => TRACES.map(name => join(folder, name)))
  const there = await Promise.all(paths.map(isThere))
  return paths.filter((_, i) => !there[i])
}

async function isFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null)
  return found?.isDirectory() ?? false
}

/** Of a folder; one that has been taken away again holds nothing either. */
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

/** A folder that is not empty, or none, stays as it is. */
async function removeEmpty(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map(path => rmdir(path).catch(() => {})))
}

/** A record that cannot be used says nothing: the worst is that empty folders stay. */
async function readRecord(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return ''
  })
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), recordSchema), text)
  return read.success ? read.output.absent : []
}
