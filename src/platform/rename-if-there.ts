import { rename } from 'node:fs/promises'
import { systemErrorCode } from '../base/errors.ts'

/** Renames a file; false if there was none, which somebody else may have renamed first. */
export async function renameIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}
