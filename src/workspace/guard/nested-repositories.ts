import { type Dirent, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'

/** The repositories that git sees in a work tree, the nearest to its top first. Absolute paths. */
export interface NestedRepositories {
  /** Git directories: folders named `.git`, and folders that look like one (bare, or apart from their work tree). */
  directories: readonly string[]
  /** Files and links named `.git` that lead to a git directory. */
  pointers: readonly string[]
  /** True if the search stopped at 50,000 folders or 1,000 repositories. */
  isCut: boolean
}

/**
 * Finds the repositories in a work tree, including the tree itself. Follows no link, and skips git directories and the
 * folders of `leaveOut`.
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
 * Yields a folder and all below it, the nearest first, with their entries; none for an unreadable one. Follows no link, and
 * ends with `too many` after 50,000.
 * @param enters whether a folder is looked into; it lies in one with these entries
 */
export async function* foldersBelow(
  top: string,
  enters: (path: string, entries: readonly Dirent[]) => boolean,
): AsyncGenerator<{ folder: string; entries: readonly Dirent[] | 'too many' }> {
  const folders = [top]
  // The loop extends its own list.
  for (const [index, folder] of folders.entries()) {
    if (index === MOST_FOLDERS) return yield { folder, entries: 'too many' }
    if (index % FOLDERS_AT_ONCE === FOLDERS_AT_ONCE - 1) await setImmediate()
    const entries = entriesOf(folder)
    yield { folder, entries }
    const paths = entries.filter(entry => entry.isDirectory()).map(({ name }) => join(folder, name))
    for (const path of paths) if (enters(path, entries)) folders.push(path)
  }
}

/** Returns the real path of the target of a file or link named `.git`; null if git would not follow it. */
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

/** True if a git directory has only git's own entries, so it is not a disguised folder of the project. */
export function isPureGitDirectory(directory: string): boolean {
  return entriesOf(directory).every(({ name }) => OF_GIT.has(name) || MADE_BY_GIT.test(name))
}

/** True for a git directory by git's own rule: with a `commondir`, objects and refs are there. */
function looksLikeGit(names: ReadonlySet<string>): boolean {
  return names.has('HEAD') && (names.has('commondir') || (names.has('objects') && names.has('refs')))
}

/** True for `.git` in any case: a case-insensitive file system makes git accept each. */
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

/** Folders of a git directory with many others, which no person enters. */
const STORES: ReadonlySet<string> = new Set(['objects', 'refs', 'logs'])

/** Entries by gitrepository-layout(5), and those that git writes during a merge, pick, bisect or edit. */
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
/** Matches entries with generated names: other heads, locks, files of a bisection, shared indexes. */
const MADE_BY_GIT = /(?:_HEAD|\.lock)$|^(?:BISECT_[A-Z_]+|sharedindex\.[0-9a-f]{40,64})$/
