import { diskFull, isNoRoom, writing } from '../base/disk-full.ts'
import { lacksRoom } from '../platform/write-whole-file.ts'
import { GitError } from './git-command.ts'
import { removeUnfinished } from './unfinished-objects.ts'

/** Writes into a private git directory; for want of room nothing half-written stays, and a `UserError` says so. */
export function writingGit<T>(gitDir: string, write: () => Promise<T>): Promise<T> {
  return writing(gitDir, async () => {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof GitError) || !(await failedForRoom(gitDir, error))) throw error
      await removeUnfinished(gitDir)
      throw diskFull(gitDir, error)
    }
  })
}

/** git does not always say why it could not write. */
async function failedForRoom(gitDir: string, error: GitError): Promise<boolean> {
  return isNoRoom(error) || (await lacksRoom(gitDir))
}
