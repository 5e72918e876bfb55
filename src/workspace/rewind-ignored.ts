import { randomUUID } from 'node:crypto'
import { copyFile, lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GitError, type GitSetting, runGit, runGitOrThrow } from './git-command.ts'
import { onOwnObjects, type PrivateGit } from './private-git.ts'

/**
 * Of files that a tree does not have, those that were ignored then: its ignore files, the person's, and those above the
 * work directory cover them. All paths are latin1, relative to the work directory.
 */
export async function ignoredIn(git: PrivateGit, tree: string, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  const folder = join(git.gitDir, `rewind-${randomUUID()}`)
  const top = join(folder, 'files')
  const own = onOwnObjects(git)
  const env = { ...own.env, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(folder, 'index'), GIT_LITERAL_PATHSPECS: '0' }
  try {
    await mkdir(join(top, git.prefix), { recursive: true })
    await layOutRules(git, tree, { ...own, directory: top, env })
    return await covered({ ...own, directory: join(top, git.prefix), env }, paths)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function layOutRules(git: PrivateGit, tree: string, setting: GitSetting): Promise<void> {
  for (const above of foldersAbove(git.prefix)) {
    const rules = join(git.setting.directory, above, RULES)
    const found = await lstat(rules).catch(() => null)
    if (found?.isFile()) await copyFile(rules, join(setting.directory, above, RULES))
  }
  const entries = (await runGitOrThrow(setting, ['ls-tree', '-r', '-z', '--full-tree', tree])).split('\0')
  const prefix = Buffer.from(git.prefix, 'utf8').toString('latin1')
  const found = entries.flatMap(entry => {
    const [, entryOf, path] = entry.match(/^(100(?:644|755) blob [0-9a-f]+)\t((?:.*\/)?\.gitignore)$/s) ?? []
    return path === undefined ? [] : [`${entryOf}\t${prefix}${path}\0`]
  })
  await runGitOrThrow(setting, [...whole, 'update-index', '-z', '--index-info'], found.join(''))
  await runGitOrThrow(setting, [...whole, 'checkout-index', '--all', '--force', '--quiet'])
}

/** From the top, those in which the work directory lies. */
function foldersAbove(prefix: string): string[] {
  const parts = prefix.split('/').slice(0, -1)
  return parts.map((_, index) => join('.', ...parts.slice(0, index)))
}

/** With `./` before it no path is taken for a pattern. */
async function covered(setting: GitSetting, paths: readonly string[]): Promise<Set<string>> {
  const args = ['check-ignore', '--no-index', '-z', '--stdin']
  const result = await runGit(setting, args, paths.map(path => `./${path}\0`).join(''))
  // Without any it ends as if it had failed.
  if (!result.ok && result.stderr !== '') throw new GitError(args, result)
  return new Set(result.stdout.split('\0').map(path => path.replace(/^\.\//, '')))
}

const RULES = '.gitignore'
const whole = ['-c', 'core.splitIndex=false']
