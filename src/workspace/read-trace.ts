import { lstat, lutimes, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Which files of a folder were read since the trace was set. */
interface ReadTrace {
  /** Paths relative to the folder, with `/`; without files that are gone by now. */
  read(): Promise<ReadonlySet<string>>
}

/**
 * Sets every file of a folder to an access time long before its change, so that the first read renews it: file systems
 * mounted with `relatime`, the usual way, do that. Links are not followed. Null where the file system does not keep access
 * times, where there are more than 20,000 files, or where one cannot be set.
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
const MOST_FILES = 20_000

async function keepsAccessTimes(folder: string): Promise<boolean> {
  const probe = join(folder, '.codemachine-read-probe')
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

/** The regular files below a folder; null if there are too many. */
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
