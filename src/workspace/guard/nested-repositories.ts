import { type Dirent, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
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
  const isGit = (entries: readonly Dirent[]) => looksLikeGit(new Set(entries.map(({ name }) => name)))
  const enters = (path: string, entries: readonly Dirent[]) => {
    const name = basename(path)
    return !isNamedGit(name) && !leaveOut.includes(path) && !(STORES.has(name) && isGit(entries))
  }
  for await (const { folder, entries } of foldersBelow(workTree, enters)) {
    if (entries === 'too many' || directories.length + pointers.length >= MOST_REPOSITORIES)
      return { directories, pointers, isCut: true }
    if (isGit(entries)) directories.push(folder)
    for (const entry of entries.filter(({ name }) => isNamedGit(name)))
      (entry.isDirectory() ? directories : pointers).push(join(folder, entry.name))
  }
  return { directories, pointers, isCut: false }
}

/**
 * A folder and those in it, the nearest first, with what is in each; of one that cannot be read nothing. Follows no link, and
 * ends with `too many` after 50,000.
 * @param enters whether a folder is looked into; it lies in one with these entries
 */
export async function* foldersBelow(
  top: string,
  enters: (path: string, entries: readonly Dirent[]) => boolean,
): AsyncGenerator<{ folder: string; entries: readonly Dirent[] | 'too many' }> {
  const folders = [top]
  // The list grows while it is gone through.
  for (const [index, folder] of folders.entries()) {
    if (index === MOST_FOLDERS) return yield { folder, entries: 'too many' }
    if (index % FOLDERS_AT_ONCE === FOLDERS_AT_ONCE - 1) await setImmediate()
    const entries = entriesOf(folder)
    yield { folder, entries }
    const paths = entries.filter(entry => entry.isDirectory()).map(({ name }) => join(folder, name))
    for (const path of paths) if (enters(path, entries)) folders.push(path)
  }
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
  return entriesOf(directory).every(({ name }) => OF_GIT.has(name) || MADE_BY_GIT.test(name))
}

/** As git itself decides: with a `commondir`, objects and refs lie there. */
function looksLikeGit(names: ReadonlySet<string>): boolean {
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

/** As gitrepository-layout(5) has it, and what git writes while it merges, picks, bisects and edits. */
const OF_GIT: ReadonlySet<string> = new Set([
  ...STORES,
  'AUTO_MERGE',
  'COMMIT_EDITMSG',
  'EDIT_DESCRIPTION',
  'HEAD',
  'MERGE_AUTOSTASH',
  'MERGE_MODE',
  'MERGE_MSG',
  'MERGE_RR',
  'NOTES_EDITMSG',
  'NOTES_MERGE_PARTIAL',
  'NOTES_MERGE_REF',
  'NOTES_MERGE_WORKTREE',
  'SQUASH_MSG',
  'TAG_EDITMSG',
  'branches',
  'commondir',
  'config',
  'config.worktree',
  'description',
  'fsmonitor--daemon',
  'fsmonitor--daemon.ipc',
  'gc.log',
  'gc.pid',
  'git-daemon-export-ok',
  'gitdir',
  'hooks',
  'index',
  'info',
  'lfs',
  'modules',
  'packed-refs',
  'rebase-apply',
  'rebase-merge',
  'reftable',
  'remotes',
  'rr-cache',
  'sequencer',
  'shallow',
  'worktrees',
])
/** Those of which the names are made: other heads, locks, the messages and logs of a bisection, shared indexes. */
const MADE_BY_GIT = /(?:_HEAD|\.lock)$|^(?:BISECT_[A-Z_]+|sharedindex\.[0-9a-f]{40,64})$/
