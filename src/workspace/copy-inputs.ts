import { constants, copyFile, opendir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { findObstacle, makeFolder } from './inside-directory.ts'
import { makeProjectFolders, projectFolders, specificationFile, specificationGuide } from './project-folders.ts'
import { readTextFile } from './read-text-file.ts'

/**
 * Copies the specification of a work directory, and the files beside it, into another one that has none of its own yet;
 * answers whether it had none. What lies there is not overwritten; links, and what begins with a dot, are left out. Throws
 * a `UserError` if nothing can be written there.
 */
export async function copyInputs(from: string, to: string): Promise<boolean> {
  const [source, target] = [await realpath(from), await realpath(to)]
  await makeProjectFolders(target)
  if (await isWritten(target)) return false
  await rm(join(target, specificationFile), { force: true })
  try {
    await copyFolder(source, target, projectFolders.inputs)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError(`The specification cannot be copied to ${target} (${code}).`, { cause: error })
  }
  return true
}

/** Whether there is anything but the guide in its place. */
async function isWritten(root: string): Promise<boolean> {
  const read = await readTextFile(join(root, specificationFile), MOST_GUIDE_BYTES)
  return read.kind === 'broken' || (read.kind === 'text' && read.text.trim() !== specificationGuide().trim())
}

/** What is larger is no guide. */
const MOST_GUIDE_BYTES = 64 * 1024

async function copyFolder(from: string, to: string, folder: string): Promise<void> {
  // An agent that worked there could have put a link in its place.
  if ((await findObstacle(from, folder)) !== null || (await makeFolder(to, folder)) !== null) return
  for await (const entry of await opendir(join(from, folder))) {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) await copyFolder(from, to, path)
    if (entry.isFile()) await copyNew(join(from, path), join(to, path))
  }
}

/** Follows no link in the place of the copy. */
async function copyNew(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error
  })
}
