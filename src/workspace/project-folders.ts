import { lstat, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { diskFull, isNoRoom } from '../base/disk-full.ts'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { loadPrompt } from '../base/package-root.ts'
import { makeMemoryFolder, memoryHome } from './memory-home.ts'

/** The folders that a team of agents shares with the person; relative to the work directory. */
export const projectFolders = {
  agents: join(memoryHome, 'agents'),
  inputs: join(memoryHome, 'inputs'),
  memory: join(memoryHome, 'memory'),
  plan: join(memoryHome, 'plan'),
}

/** Where the specification lies; relative to the work directory. */
export const specificationFile = join(projectFolders.inputs, 'specifications.md')

/** The text that a new specification starts with. */
export function specificationGuide(): string {
  return loadPrompt('specifications.template')
}

/**
 * Makes the folders of a work directory that are not there yet, and a specification that is a guide to writing one.
 * What there is stays as it is. Throws a `UserError` if a link or a file is in the place of a folder, or if nothing can be
 * written.
 */
export async function makeProjectFolders(directory: string): Promise<void> {
  try {
    const root = await realpath(directory)
    for (const folder of Object.values(projectFolders)) await makeProjectFolder(root, folder)
    await writeGuide(join(root, specificationFile))
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (isNoRoom(error)) throw diskFull(join(directory, memoryHome), error)
    throw new UserError(
      `codemachine cannot write to ${directory} (${code}); make it a directory that you can write to.`,
      { cause: error },
    )
  }
}

/** Makes one of them below the work directory's real path; a `UserError` if something else is in its place. */
export async function makeProjectFolder(root: string, folder: string): Promise<void> {
  const obstacle = await makeMemoryFolder(root, folder)
  if (obstacle === null) return
  const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
  throw new UserError(
    `${join(root, obstacle.path)} ${what}; move it away, so that codemachine can make a folder in its place.`,
  )
}

async function writeGuide(path: string): Promise<void> {
  const isThere = await lstat(path).then(
    () => true,
    () => false,
  )
  if (isThere) return
  try {
    // `wx` neither follows a link nor takes the place of what came meanwhile.
    await writeFile(path, specificationGuide(), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return
    // Half-written it would be taken for a specification.
    await rm(path, { force: true }).catch(() => undefined)
    throw error
  }
}
