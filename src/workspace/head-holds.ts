import { runGit } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'

/**
 * Whether a commit of the person's repository alone holds a fingerprint of the work directory: whether nothing of it is
 * uncommitted. Null if that cannot be known: the commit cannot be read, or it has submodules.
 */
export async function commitHolds(git: PrivateGit, commit: string, tree: string): Promise<boolean | null> {
  const { ok, stdout } = await runGit(git.setting, ['rev-parse', '--verify', '--quiet', treeAt(git, commit)])
  if (!ok) return (await isThere(git, commit)) ? false : null
  if (stdout.trim() === tree) return true
  const listed = await runGit(git.setting, ['ls-tree', '-r', '-z', stdout.trim()])
  return !listed.ok || listed.stdout.split('\0').some(entry => entry.startsWith('160000 ')) ? null : false
}

/** How git calls what a commit has in the work directory. */
export function treeAt({ prefix }: Pick<PrivateGit, 'prefix'>, commit: string): string {
  // Names go to git in UTF-8, as they are.
  return prefix === '' ? `${commit}^{tree}` : `${commit}:${prefix.slice(0, -1)}`
}

async function isThere({ setting }: PrivateGit, commit: string): Promise<boolean> {
  return (await runGit(setting, ['cat-file', '-e', `${commit}^{commit}`])).ok
}
