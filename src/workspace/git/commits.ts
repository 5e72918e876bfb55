import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathExists } from '../../platform/files.ts'
import { type GitSetting, runGit, runGitOrThrow } from './git.ts'
import { type PrivateGit, withoutIndex } from './private-git.ts'

/** A commit of the person's repository. */
export interface Commit {
  commit: string
  subject: string
  /** When it was committed, ISO 8601. */
  date: string
}

/** The commits that lead from one to another, the oldest first; or a sentence that says why they are not known. */
export type CommitsBetween = { commits: readonly Commit[] } | { problem: string }

/**
 * The commits after `from` up to `to`, along first parents; a merge stands for what it brought. None if they are the
 * same. The person's own git and its configuration have no part in it.
 */
export async function commitsBetween(git: PrivateGit, from: string, to: string): Promise<CommitsBetween> {
  if (from === to) return { commits: [] }
  const shallow = await shallowFile(git)
  const setting = shallow === null ? git.setting : withShallow(git.setting, shallow)
  const [start, end] = [shortHash(from), shortHash(to)]
  if (!(await isThere(setting, to))) return { problem: `HEAD (${end}) cannot be read` }
  const isCutOff = `this clone is shallow, and its history does not reach back to ${start}`
  const isGone = `history has been rewritten: ${start}, at which it was done, is not there any more`
  if (!(await isThere(setting, from))) return { problem: shallow === null ? isGone : isCutOff }
  if (!(await runGit(setting, ['merge-base', '--is-ancestor', from, to])).ok) {
    const isAside = `${start}, at which it was done, is not in the history of HEAD (${end}): it has been rewritten, or another branch is checked out`
    return { problem: shallow === null ? isAside : isCutOff }
  }
  return { commits: await firstParentCommits(setting, from, to) }
}

/** As a person reads it. */
export function shortHash(commit: string): string {
  return commit.slice(0, 12)
}

/** What leads only from elsewhere into a merge is left out: it never had what `from` has. */
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

/** Where the repository says at which commits its history was cut; null if it is whole. */
async function shallowFile({ repository }: PrivateGit): Promise<string | null> {
  if (repository === null) return null
  const path = join(repository.commonDir, 'shallow')
  const found = await stat(path).catch(() => null)
  return found?.isFile() && found.size > 0 ? path : null
}

/** Without it git takes a history that was cut for one that is broken. */
function withShallow(setting: GitSetting, path: string): GitSetting {
  return { ...setting, env: { ...setting.env, GIT_SHALLOW_FILE: path } }
}

async function isThere(setting: GitSetting, commit: string): Promise<boolean> {
  return (await runGit(setting, ['cat-file', '-e', `${commit}^{commit}`])).ok
}

function fromLatin1(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}

/** A commit of the person's repository. */
export interface NewCommit {
  commit: string
  /** On one line, without control characters, at most 200 columns. */
  subject: string
}

/**
 * The commits that lead to `head` and not to `before`, the oldest first, the newest 20 of them; none if one of the two
 * is not there. Read through the private git directory: the person's config has no say.
 */
export async function newCommits(git: PrivateGit, before: string | null, head: string | null): Promise<NewCommit[]> {
  if (before === null || head === null || before === head || git.repository === null) return []
  const setting = withoutIndex(git)
  // A shallow clone's history ends where this file says.
  const shallow = join(git.repository.commonDir, 'shallow')
  const isShallow = await pathExists(shallow)
  const env = isShallow ? { ...setting.env, GIT_SHALLOW_FILE: shallow } : setting.env
  const range = ['--end-of-options', head, `^${before}`]
  const args = [
    ...PLAIN_LOG,
    'log',
    `-${MOST_COMMITS}`,
    '-z',
    '--no-show-signature',
    '--format=%H %<(201,trunc)%s',
    ...range,
  ]
  const { ok, stdout } = await runGit({ ...setting, env }, args)
  if (!ok) return []
  const entries = Buffer.from(stdout, 'latin1').toString('utf8').split('\0')
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
 * Whether a commit of the person's repository alone holds a fingerprint of the work directory: whether nothing of it is
 * uncommitted. Null if that cannot be known: the commit cannot be read, or it has submodules.
 */
export async function isFullyCommitted(git: PrivateGit, commit: string, tree: string): Promise<boolean | null> {
  const { ok, stdout } = await runGit(git.setting, ['rev-parse', '--verify', '--quiet', treeRevision(git, commit)])
  if (!ok) return (await commitIsReadable(git, commit)) ? false : null
  if (stdout.trim() === tree) return true
  const listed = await runGit(git.setting, ['ls-tree', '-r', '-z', stdout.trim()])
  return !listed.ok || listed.stdout.split('\0').some(entry => entry.startsWith('160000 ')) ? null : false
}

/** How git calls what a commit has in the work directory. */
export function treeRevision({ prefix }: Pick<PrivateGit, 'prefix'>, commit: string): string {
  // Names go to git in UTF-8, as they are.
  return prefix === '' ? `${commit}^{tree}` : `${commit}:${prefix.slice(0, -1)}`
}

async function commitIsReadable({ setting }: PrivateGit, commit: string): Promise<boolean> {
  return (await runGit(setting, ['cat-file', '-e', `${commit}^{commit}`])).ok
}
