import { readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { type WritableByAgents, writableByAgents } from '../../platform/files.ts'
import { findProgram } from '../../platform/run-process.ts'
import { findRepository, type PersonRepository, readLine } from './git.ts'

/**
 * Finds git on the PATH and returns its absolute path. Skips folders that agents of `workTree` can write: a `git` there
 * would run outside of the sandbox (npx adds `node_modules/.bin` to the PATH). Throws a `UserError` if none is left.
 */
export async function findGit(env: NodeJS.ProcessEnv, workTree: string): Promise<string> {
  const where = await writableIn(workTree, env)
  const { path, passedOver } = await findProgram('git', { env, where })
  if (path !== null) return path
  throw new UserError(
    'CM0501',
    'git was not found on the PATH; install git (https://git-scm.com), or put its folder on the PATH.',
    passedOver.length === 0
      ? {}
      : {
          hint: `codemachine does not use a git that the agent can overwrite: ${passedOver.join(', ')}. Install git elsewhere.`,
        },
  )
}

/**
 * Returns the places that agents of a directory can write directly or by landed commits: all work trees of its repository.
 * @param elsewhere as for `writableByAgents`
 */
export async function writableIn(
  directory: string,
  env: Readonly<NodeJS.ProcessEnv>,
  elsewhere: readonly string[] = [],
): Promise<WritableByAgents> {
  const repository = await findRepository(directory)
  if (repository === null) return writableByAgents(directory, env, [], elsewhere)
  const { gitDir, commonDir } = repository
  return writableByAgents(directory, env, [gitDir, commonDir], [...elsewhere, ...(await workTreesOf(repository))])
}

/**
 * Returns the tops of a repository's work trees, without git; at most 1,000 linked ones. Agents can write their list, so an
 * entry counts only if its `.git` leads back to the repository.
 */
export async function workTreesOf({
  root,
  commonDir,
}: Pick<PersonRepository, 'root' | 'commonDir'>): Promise<string[]> {
  const main = basename(commonDir) === '.git' ? [dirname(commonDir)] : []
  const folder = join(commonDir, 'worktrees')
  const names = (await readdir(folder).catch(() => [])).slice(0, MOST_WORK_TREES)
  const linked = await Promise.all(
    names.map(async name => {
      const pointer = await readLine(join(folder, name, 'gitdir'))
      const top = pointer === null ? null : dirname(resolve(folder, name, pointer))
      const found = top === null ? null : await findRepository(top).catch(() => null)
      return found?.commonDir === commonDir && found.gitDir !== commonDir ? [found.root] : []
    }),
  )
  return [...new Set([root, ...main, ...linked.flat()])]
}

const MOST_WORK_TREES = 1000
