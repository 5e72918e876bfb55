import { randomUUID } from 'node:crypto'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { RUNTIME_FOLDER } from '../files/write-all.ts'
import {
  fromLatin1,
  type GitSetting,
  runGit,
  runGitOrThrow,
  toLatin1,
  withVariables,
  writeToPrivateGit,
} from './git.ts'
import { type PrivateGit, withoutIndex } from './private-git.ts'
import { changedFiles } from './trees.ts'

/** A commit of the person's repository. */
export interface Commit {
  commit: string
  subject: string
  /** Time of the commit, ISO 8601. */
  date: string
}

/** Commits, oldest first; or a clause on why they are unknown. */
type CommitsBetween = { commits: readonly Commit[] } | { problem: string }

/**
 * Returns the commits after `from` up to `to`, along first parents; a merge counts as one commit. None if `from` is `to`.
 * Does not use the person's git configuration.
 */
export async function commitsBetween(git: PrivateGit, from: string, to: string): Promise<CommitsBetween> {
  if (from === to) return { commits: [] }
  const shallow = await shallowFile(git)
  const setting = withShallow(git.setting, shallow)
  const [start, end] = [shortHash(from), shortHash(to)]
  if (!(await isThere(setting, to))) return { problem: `HEAD (${end}) cannot be read` }
  const isCutOff = `this clone is shallow, and its history does not reach back to ${start}`
  const isGone = `history has been rewritten: ${start}, at which it was done, is not there any more`
  if (!(await isThere(setting, from))) return { problem: shallow === null ? isGone : isCutOff }
  if (!(await runGit(setting, ['merge-base', '--is-ancestor', from, to])).ok) {
    const isAside = `${start}, at which it was done, is not in the history of HEAD (${end}). History was rewritten, or another branch is checked out`
    return { problem: shallow === null ? isAside : isCutOff }
  }
  return { commits: await firstParentCommits(setting, from, to) }
}

/** Returns the first 12 digits of a commit's hash, for persons. */
export function shortHash(commit: string): string {
  return commit.slice(0, 12)
}

/** Returns the commits without those merged from elsewhere, which do not descend from `from`. */
async function firstParentCommits(setting: GitSetting, from: string, to: string): Promise<Commit[]> {
  const range = ['--end-of-options', `${from}..${to}`]
  const later = new Set((await runGitOrThrow(setting, ['rev-list', '--ancestry-path', ...range])).split('\n'))
  const format = '--format=%H%n%cI%n%s'
  const log = await runGitOrThrow(setting, ['log', '-z', '--first-parent', '--no-show-signature', format, ...range])
  return log
    .split('\0')
    .filter(entry => entry !== '')
    .map(entry => entry.split('\n'))
    .map(([commit = '', date = '', subject = '']) => ({ commit, date, subject: fromLatin1(subject) }))
    .filter(({ commit }) => later.has(commit))
    .reverse()
}

/** Returns the file with the cuts of a shallow clone's history; `null`: the history is complete. */
async function shallowFile({ repository }: PrivateGit): Promise<string | null> {
  if (repository === null) return null
  const path = join(repository.commonDir, 'shallow')
  const found = await stat(path).catch(() => null)
  return found?.isFile() && found.size > 0 ? path : null
}

/** Passes the file to git, which otherwise takes a cut history for a broken one. */
function withShallow(setting: GitSetting, path: string | null): GitSetting {
  return path === null ? setting : withVariables(setting, { GIT_SHALLOW_FILE: path })
}

async function isThere(setting: GitSetting, commit: string): Promise<boolean> {
  return (await runGit(setting, ['cat-file', '-e', `${commit}^{commit}`])).ok
}

/** A commit of the person's repository since the last savepoint. */
export interface NewCommit {
  commit: string
  /** Subject on one line, without control characters, at most 200 columns. */
  subject: string
}

/**
 * Returns the newest 20 commits reachable from `head` and not from the previous one, oldest first; without a previous one,
 * from all. None if `before` is null: nothing is known. Reads through the private git directory, so the person's config has
 * no effect.
 */
export async function newCommits(
  git: PrivateGit,
  before: { head: string | null } | null,
  head: string | null,
): Promise<NewCommit[]> {
  if (before === null || head === null || before.head === head || git.repository === null) return []
  const setting = withShallow(withoutIndex(git), await shallowFile(git))
  const range = ['--end-of-options', head, ...(before.head === null ? [] : [`^${before.head}`])]
  const args = [
    ...PLAIN_LOG,
    'log',
    `-${MOST_COMMITS}`,
    '-z',
    '--no-show-signature',
    '--format=%H %<(201,trunc)%s',
    ...range,
  ]
  const { ok, stdout } = await runGit(setting, args)
  if (!ok) return []
  const entries = fromLatin1(stdout).split('\0')
  return entries.flatMap(entry => parseLogEntry(entry) ?? []).reverse()
}

function parseLogEntry(entry: string): NewCommit | null {
  const [, commit, subject] = entry.match(/^([0-9a-f]{40,64}) (.*)$/s) ?? []
  if (commit === undefined || subject === undefined) return null
  return { commit, subject: subject.replace(/\p{Cc}+/gu, ' ').trim() }
}

const MOST_COMMITS = 20
const PLAIN_LOG = ['-c', 'core.commitGraph=false', '-c', 'i18n.logOutputEncoding=UTF-8']

/**
 * Returns true if a commit of the person's repository contains the whole fingerprint `tree`. `null` if unknown: the commit
 * is unreadable or has submodules.
 */
export async function isFullyCommitted(git: PrivateGit, commit: string, tree: string): Promise<boolean | null> {
  const held = await treeOfCommit(git, commit)
  if (held === null) return (await isThere(git.setting, commit)) ? false : null
  if (held === tree) return true
  const listed = await runGit(git.setting, ['ls-tree', '-r', '-z', held])
  return !listed.ok || listed.stdout.split('\0').some(entry => entry.startsWith('160000 ')) ? null : false
}

/**
 * Returns the oldest of the last 500 commits up to `head` with exactly the fingerprint `tree`; null: none. Needs no lock.
 */
export async function commitWithTree(git: PrivateGit, head: string, tree: string): Promise<string | null> {
  const setting = withShallow(withoutIndex(git), await shallowFile(git))
  const log = await runGit(setting, [...PLAIN_LOG, 'log', `-${MOST_SEARCHED}`, '--format=%H', '--end-of-options', head])
  const commits = log.stdout.split('\n').filter(line => line !== '')
  const asked = commits.map(commit => `${toLatin1(treeRevision(git, commit))}\n`).join('')
  const trees = (await runGit(setting, ['cat-file', '--batch-check=%(objectname)'], asked)).stdout.split('\n')
  return commits.findLast((_, at) => trees[at] === tree) ?? null
}

const MOST_SEARCHED = 500

/**
 * Returns the paths that changed from the fingerprint `first` to `tree`, and that a commit of the person's repository lacks.
 * In git's order; null: unknown.
 */
export async function uncommittedPaths(
  git: PrivateGit,
  commit: string,
  { first, tree }: { first: string; tree: string },
): Promise<string[] | null> {
  const held = await treeOfCommit(git, commit)
  if (held === null) return null
  const [uncommitted, changed] = await Promise.all([changedFiles(git, held, tree), changedFiles(git, first, tree)])
  const work = new Set(changed?.map(({ path }) => path))
  return uncommitted?.map(({ path }) => path).filter(path => changed === null || work.has(path)) ?? null
}

/**
 * Returns the tree of the work directory in a commit like a fingerprint, without `RUNTIME_FOLDER`. Null if the commit is
 * unreadable or lacks the directory. Writes it to the private git directory; the caller holds the run lock.
 */
export async function treeOfCommit(git: PrivateGit, commit: string): Promise<string | null> {
  const tree = await idOf(git, treeRevision(git, commit))
  if (tree === null || (await idOf(git, `${tree}:${RUNTIME_FOLDER}`)) === null) return tree
  const index = join(git.gitDir, `rewind-${randomUUID()}.index`)
  const setting = withVariables(git.setting, { GIT_INDEX_FILE: index })
  try {
    return await writeToPrivateGit(git.gitDir, async () => {
      await runGitOrThrow(setting, ['read-tree', tree])
      await runGitOrThrow(setting, ['rm', '--cached', '-r', '-f', '-q', '--', RUNTIME_FOLDER])
      return (await runGitOrThrow(setting, ['write-tree', '--missing-ok'])).trim()
    })
  } finally {
    await rm(index, { force: true })
  }
}

async function idOf({ setting }: PrivateGit, revision: string): Promise<string | null> {
  const { ok, stdout } = await runGit(setting, ['rev-parse', '--verify', '--quiet', revision])
  return ok ? stdout.trim() : null
}

/** Returns the git revision of the work directory's tree in a commit: `<commit>^{tree}` or `<commit>:<prefix>`. */
export function treeRevision({ prefix }: Pick<PrivateGit, 'prefix'>, commit: string): string {
  // Git gets names unchanged, in UTF-8.
  return prefix === '' ? `${commit}^{tree}` : `${commit}:${prefix.slice(0, -1)}`
}
