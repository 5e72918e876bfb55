import { randomUUID } from 'node:crypto'
import { link, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'

/** A file that is written whole, synced, and waits for its name. */
export interface StagedFile extends AsyncDisposable {
  /** Gives it the name, at once and for good; false if something has that name already. */
  linkAs(name: string): Promise<boolean>
}

/** Writes `content` into a hidden temporary file of the directory, mode 0600; disposing it removes what has no name. */
export async function stageFile(directory: string, content: string): Promise<StagedFile> {
  const temporary = join(directory, `.${randomUUID()}.tmp`)
  const discard = () => rm(temporary, { force: true })
  try {
    await using file = await open(temporary, 'wx', 0o600)
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    await discard()
    throw error
  }
  return {
    linkAs: async name => {
      try {
        await link(temporary, join(directory, name))
      } catch (error) {
        if (systemErrorCode(error) === 'EEXIST') return false
        throw error
      }
      await syncDirectory(directory)
      return true
    },
    [Symbol.asyncDispose]: discard,
  }
}

/** Makes a new name last through a power cut; not every platform can sync a directory, and the file itself is synced. */
async function syncDirectory(directory: string): Promise<void> {
  try {
    await using folder = await open(directory, 'r')
    await folder.sync()
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
}
