import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isNoRoom } from '../base/disk-full.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'

const BYTES = 64 * 1024

/** Room on the disk that is kept for the last events of a session. */
export interface Reserve {
  /** Gives the room back to the disk. */
  release(): Promise<void>
}

/** Keeps room in the folder of a session's records; where there is none left, there is nothing to keep. */
export async function keepReserve(folder: string): Promise<Reserve> {
  const path = join(folder, 'reserve')
  try {
    // Not zeros: some file systems keep no room for them.
    await writeWholeFile(path, Buffer.alloc(BYTES, 'codemachine '))
  } catch (error) {
    if (!isNoRoom(error)) throw error
  }
  return { release: () => rm(path, { force: true }) }
}
