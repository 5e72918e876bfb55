import { randomUUID } from 'node:crypto'
import { lstat, lutimes, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Finds the files of a folder that were read since the trace was set. */
interface ReadTrace {
  /** Returns paths relative to the folder, with `/`, without removed files. */
  read(): Promise<ReadonlySet<string>>
}

/**
 * Sets each file's access time in a folder to long before its change, so that the first read renews it. That needs
 * `relatime`, the usual mount option. Follows no links. Null if access times are not kept or cannot be set, or for more than
 * 200,000 files and folders.
 */
export async function traceReads(folder: string): Promise<ReadTrace | null> {
  if (!(await keepsAccessTimes(folder))) return null
  const files = await filesBelow(folder)
  if (files === null) return null
  try {
    for (const path of files) {
      const { mtimeMs } = await lstat(join(folder, path))
      await lutimes(join(folder, path), LONG_AGO, mtimeMs / 1000)
    }
  } catch {
    return null
  }
  return {
    async read() {
      const read = new Set<string>()
      for (const path of files) {
        const now = await lstat(join(folder, path)).catch(() => null)
        if (now !== null && now.atimeMs > LONG_AGO.getTime()) read.add(path)
      }
      return read
    },
  }
}

const LONG_AGO = new Date('2001-01-01T00:00:00Z')
/** More than a checkout of 50,000 files usually has. */
const MOST_FILES = 200_000

async function keepsAccessTimes(folder: string): Promise<boolean> {
  // A name that no file of the folder can have.
  const probe = join(folder, `.codemachine-${randomUUID()}`)
  try {
    await writeFile(probe, 'probe', { flag: 'wx' })
    await utimes(probe, LONG_AGO, new Date())
    await readFile(probe)
    return (await lstat(probe)).atimeMs > LONG_AGO.getTime()
  } catch {
    return false
  } finally {
    await rm(probe, { force: true }).catch(() => {})
  }
}

/** Returns the regular files below a folder; null: too many. */
async function filesBelow(folder: string): Promise<string[] | null> {
  const files: string[] = []
  const folders = ['']
  for (let at = 0; at < folders.length; at++) {
    const inner = folders[at] ?? ''
    for (const entry of await readdir(join(folder, inner), { withFileTypes: true })) {
      const path = inner === '' ? entry.name : `${inner}/${entry.name}`
      if (entry.isDirectory()) folders.push(path)
      else if (entry.isFile()) files.push(path)
      if (files.length + folders.length > MOST_FILES) return null
    }
  }
  return files
}
