import { join } from 'node:path'
import { pathExists } from '../platform/path-exists.ts'
import { runGit } from './git-command.ts'
import { type PrivateGit, withoutIndex } from './private-git.ts'

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
  const args = [...plain, 'log', `-${most}`, '-z', '--no-show-signature', '--format=%H %<(201,trunc)%s', ...range]
  const { ok, stdout } = await runGit({ ...setting, env }, args)
  if (!ok) return []
  const entries = Buffer.from(stdout, 'latin1').toString('utf8').split('\0')
  return entries.flatMap(entry => parse(entry) ?? []).reverse()
}

function parse(entry: string): NewCommit | null {
  const [, commit, subject] = entry.match(/^([0-9a-f]{40,64}) (.*)$/s) ?? []
  if (commit === undefined || subject === undefined) return null
  return { commit, subject: subject.replace(/\p{Cc}+/gu, ' ').trim() }
}

const most = 20
const plain = ['-c', 'core.commitGraph=false', '-c', 'i18n.logOutputEncoding=UTF-8']
