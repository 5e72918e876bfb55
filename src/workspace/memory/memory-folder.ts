import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { diskFull, isNoRoom, systemErrorCode, UserError } from '../../base/errors.ts'
import { makeFolderInside, type Obstacle, whatIsThere } from '../files/inside-directory.ts'
import { memoryRoot } from './memory-paths.ts'

/**
 * Makes a folder below `.codemachine`, accessible to this user only, and a `.gitignore` that keeps all of
 * `.codemachine` out of git, unless there is one. `root` is the work directory's real path, `folder` relative to it.
 * Returns what is in the way; `null` on success.
 */
export async function makeMemoryFolder(root: string, folder: string): Promise<Obstacle | null> {
  const obstacle = await makeFolderInside(root, folder)
  if (obstacle !== null) return obstacle
  await writeIfMissing(join(root, memoryRoot, '.gitignore'), '*\n')
  return null
}

/**
 * As `makeMemoryFolder`, but throws a `UserError` if something else is in the folder's place. `purpose`: what the
 * folder is for, the end of the sentence.
 */
export async function makeMemoryFolderOrRefuse(root: string, folder: string, purpose: string): Promise<void> {
  const obstacle = await makeMemoryFolder(root, folder)
  if (obstacle === null) return
  throw new UserError(
    `${join(root, obstacle.path)} ${whatIsThere(obstacle)}; move it away, so that codemachine can ${purpose}.`,
  )
}

/** Writes a file if nothing has its path; a link there is not followed. */
export async function writeIfMissing(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return
    // A half-written file would count, and never be replaced.
    await rm(path, { force: true }).catch(() => undefined)
    throw error
  }
}

/**
 * Does some writing in the work directory. A failure of the system becomes a `UserError`: `diskFull(place)`, or
 * `sentence` with the failure's code.
 */
export async function writingInside<T>(
  place: string,
  write: () => Promise<T>,
  sentence: (code: string) => string,
  exitCode: 2 | 4 = 2,
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (isNoRoom(error)) throw diskFull(place, error)
    throw new UserError(sentence(code), { exitCode, cause: error })
  }
}
