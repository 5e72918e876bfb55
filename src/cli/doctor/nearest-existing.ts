import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'

/** Something on the disk. */
interface Existing {
  path: string
  isDirectory: boolean
  /** Permission bits. */
  mode: number
  /** Tells file systems apart. */
  device: number
}

/** What is at an absolute path, or else at the nearest one above it. */
export async function nearestExisting(path: string): Promise<Existing> {
  for (let place = path; ; place = dirname(place)) {
    try {
      const found = await stat(place)
      return { path: place, isDirectory: found.isDirectory(), mode: found.mode & 0o777, device: found.dev }
    } catch (error) {
      const code = systemErrorCode(error)
      if ((code !== 'ENOENT' && code !== 'ENOTDIR') || dirname(place) === place) throw error
    }
  }
}
