import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type GitSetting, runGit, runGitOrThrow } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'

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
  return { commits: await lineFrom(setting, from, to) }
}

/** As a person reads it. */
export function shortHash(commit: string): string {
  return commit.slice(0, 12)
}

/** What leads only from elsewhere into a merge is left out: it never had what `from` has. */
async function lineFrom(setting: GitSetting, from: string, to: string): Promise<Commit[]> {
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
