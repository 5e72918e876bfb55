import { lstat } from 'node:fs/promises'
import { systemErrorCode } from '../base/errors.ts'

/** Whether something, if only a dangling link, has this path; throws if that may not be known. */
export async function pathExists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw error
  }
}
