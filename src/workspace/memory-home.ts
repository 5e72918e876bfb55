import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { makeFolder, type Obstacle } from './inside-directory.ts'

/** The folder of the memory, in the work directory. */
export const memoryHome = '.codemachine'

/**
 * Makes a folder of the memory (a path from the work directory's real path `root`) and keeps all of the memory out of
 * git by a `.gitignore` of its own, which is left alone if there is one. Answers what is in the way if it cannot.
 */
export async function makeMemoryFolder(root: string, folder: string): Promise<Obstacle | null> {
  const obstacle = await makeFolder(root, folder)
  if (obstacle !== null) return obstacle
  // `wx` does not follow a link either.
  await writeFile(join(root, memoryHome, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error
  })
  return null
}
