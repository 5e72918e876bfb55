import { type Dirent, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'

/** What git takes for a repository in a work tree, the nearest to its top first. Absolute paths. */
export interface NestedRepositories {
  /** Git directories: folders named `.git`, and those that look like one (bare, or kept apart from their work tree). */
  directories: readonly string[]
  /** Files and links named `.git`, which lead to a git directory. */
  pointers: readonly string[]
  /** Whether there was more than is looked at: 50,000 folders and 1,000 repositories. */
  isCut: boolean
}

/**
 * Finds the repositories in a work tree, the tree itself among them. Follows no link, and does not look into git
 * directories, nor into the folders of `leaveOut`.
 */
export async function findNestedRepositories(
  workTree: string,
  leaveOut: readonly string[],
): Promise<NestedRepositories> {
  const directories: string[] = []
  const pointers: string[] = []
  const folders = [workTree]
  // The list grows while it is gone through: what is nearer to the top comes first.
  for (const [index, folder] of folders.entries()) {
    if (index === MOST_FOLDERS || directories.length + pointers.length >= MOST_REPOSITORIES)
      return { directories, pointers, isCut: true }
    if (index % FOLDERS_AT_ONCE === FOLDERS_AT_ONCE - 1) await setImmediate()
    const entries = entriesOf(folder)
    const isGit = looksLikeGit(entries)
    if (isGit) directories.push(folder)
    for (const entry of entries.filter(({ name }) => isNamedGit(name)))
      (entry.isDirectory() ? directories : pointers).push(join(folder, entry.name))
    const others = entries.filter(entry => entry.isDirectory() && !isNamedGit(entry.name))
    const paths = others.filter(({ name }) => !isGit || !STORES.has(name)).map(({ name }) => join(folder, name))
    folders.push(...paths.filter(path => !leaveOut.includes(path)))
  }
  return { directories, pointers, isCut: false }
}

/** The real path of what a file or link named `.git` leads to; null if git would not follow it. */
export function targetOfPointer(path: string): string | null {
  try {
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return realpathSync(path)
    if (!stat.isFile() || stat.size > POINTER_BYTES) return null
    const [, target] = /^gitdir: (.+?)[\r\n]*$/s.exec(readFileSync(path, 'utf8')) ?? []
    return target === undefined ? null : realpathSync(resolve(dirname(path), target))
  } catch {
    return null
  }
}

/** Whether a git directory holds nothing but what git itself puts there: it is no folder of the project made to look like one. */
export function isPureGitDirectory(directory: string): boolean {
  return entriesOf(directory).every(({ name }) => OF_GIT.has(name) || name.endsWith('_HEAD') || name.endsWith('.lock'))
}

/** As git itself decides: with a `commondir`, objects and refs lie there. */
function looksLikeGit(entries: readonly Dirent[]): boolean {
  const names = new Set(entries.map(({ name }) => name))
  return names.has('HEAD') && (names.has('commondir') || (names.has('objects') && names.has('refs')))
}

/** Where names of any case are the same file, git takes each for its own. */
function isNamedGit(name: string): boolean {
  return name.toLowerCase() === '.git'
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

const MOST_FOLDERS = 50_000
const MOST_REPOSITORIES = 1000
const FOLDERS_AT_ONCE = 500
const POINTER_BYTES = 64 * 1024

/** Folders of a git directory that hold many others, and none that a person goes into. */
const STORES: ReadonlySet<string> = new Set(['objects', 'refs', 'logs'])

const OF_GIT: ReadonlySet<string> = new Set([
  ...STORES,
  'HEAD',
  'branches',
  'COMMIT_EDITMSG',
  'commondir',
  'config',
  'config.worktree',
  'description',
  'gc.log',
  'gc.pid',
  'gitdir',
  'hooks',
  'index',
  'info',
  'lfs',
  'modules',
  'packed-refs',
  'rebase-apply',
  'rebase-merge',
  'shallow',
  'worktrees',
])
