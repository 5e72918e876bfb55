import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { makeFolder, type Obstacle } from './inside-directory.ts'

/** The folder of the memory, in the work directory. */
export const memoryHome = '.codemachine'

/**
 * Makes a folder of the memory (a path from the work directory's real path `root`), for this user alone, and keeps all of the memory out of
 * git by a `.gitignore` of its own, which is left alone if there is one. Answers what is in the way if it cannot.
 */
export async function makeMemoryFolder(root: string, folder: string): Promise<Obstacle | null> {
  const obstacle = await makeFolder(root, folder)
  if (obstacle !== null) return obstacle
  await writeGitignore(join(root, memoryHome, '.gitignore'))
  return null
}

async function writeGitignore(path: string): Promise<void> {
  try {
    // `wx` does not follow a link either.
    await writeFile(path, '*\n', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return
    // Half-written it would ignore nothing, and be left alone for ever.
    await rm(path, { force: true }).catch(() => undefined)
    throw error
  }
}
