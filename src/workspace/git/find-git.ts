import { delimiter } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { writableByAgents } from '../../platform/files.ts'
import { findProgram } from '../../platform/run-process.ts'
import { findRepository } from './git.ts'

/**
 * Finds git on the PATH and returns its absolute path. Folders where agents that work in `workTree` can write are
 * skipped: a program called `git` there (npx puts `node_modules/.bin` on the PATH) would run outside of the sandbox.
 * Throws a `UserError` if none is left.
 */
export async function findGit(env: NodeJS.ProcessEnv, workTree: string): Promise<string> {
  const repository = await findRepository(workTree)
  const where = writableByAgents(workTree, env, repository ? [repository.gitDir, repository.commonDir] : [])
  const platform = delimiter === ';' ? 'win32' : 'linux'
  const { path, passedOver } = await findProgram('git', { env, platform, where })
  if (path !== null) return path
  throw new UserError(
    'git was not found on the PATH; install git (https://git-scm.com), or put its folder on the PATH.',
    passedOver.length === 0
      ? {}
      : { hint: `This does not count, as the agent can write there: ${passedOver.join(', ')}. Have git elsewhere.` },
  )
}
