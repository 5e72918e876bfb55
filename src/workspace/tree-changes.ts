import { GitError, runGit } from './git-command.ts'
import { onOwnObjects, type PrivateGit } from './private-git.ts'

/** What one tree has become in another. */
export interface TreeChanges {
  /** How many files differ. */
  files: number
  /** Lines, in files that are text. */
  added: number
  removed: number
  /** In git's order, at most as many as were asked for; null lines: not text. */
  paths: readonly { path: string; added: number | null; removed: number | null }[]
}

/** What differs between two trees that the private git directory holds, file by file. A renamed file is a deleted and a new one. */
export async function treeChanges(
  git: PrivateGit,
  before: string,
  after: string,
  mostPaths: number,
): Promise<TreeChanges> {
  if (before === after) return { files: 0, added: 0, removed: 0, paths: [] }
  const args = [...readAsItIs, 'diff-tree', '-r', '-z', '--numstat', '--no-renames', ...asText, before, after]
  const result = await runGit(onOwnObjects(git), args)
  if (!result.ok) throw new GitError(args, result)
  const changes = { files: 0, added: 0, removed: 0, paths: [] as TreeChanges['paths'][number][] }
  for (const line of result.stdout.split('\0')) {
    const [, added, removed, path] = line.match(/^(\d+|-)\t(\d+|-)\t(.+)$/s) ?? []
    if (path === undefined) continue
    const lines = { added: linesOf(added), removed: linesOf(removed) }
    changes.files += 1
    changes.added += lines.added ?? 0
    changes.removed += lines.removed ?? 0
    if (changes.paths.length < mostPaths) {
      changes.paths.push({ path: Buffer.from(path, 'latin1').toString('utf8'), ...lines })
    }
  }
  return changes
}

function linesOf(count: string | undefined): number | null {
  return count === undefined || count === '-' ? null : Number(count)
}

/** No program that a tree or a person asks for, and names in any script as they are. What is over 4 MiB is not text. */
export const readAsItIs = ['-c', 'core.quotePath=false', '-c', 'core.bigFileThreshold=4m']
export const asText = ['--no-ext-diff', '--no-textconv', '--no-color']
