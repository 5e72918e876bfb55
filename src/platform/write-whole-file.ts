import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isNoRoom } from '../base/disk-full.ts'

/**
 * Writes a whole file of the records atomically, mode 0600: the old one stays until the new one is on the disk, and if
 * there is no room for it. (A disk that is nearly full cuts a write short without an error: the rest is written too, or
 * fails.) Not for folders where an agent can write: what lies on the way may be a link.
 */
export async function writeWholeFile(path: string, content: string | Buffer): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, content)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw error
  }
}

async function writeNew(path: string, content: string | Buffer): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(content)
  await file.sync()
}

/** Whether there is no room in a folder even for a small file. */
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
