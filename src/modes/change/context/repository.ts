import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeWholeFile } from '../../../platform/files.ts'
import type { Project } from '../../../workspace/context/project-file.ts'
import { oneLine, quoted } from '../../../workspace/context/sections.ts'
import { readTextFile } from '../../../workspace/files/inside-directory.ts'
import { fromLatin1, readHead, splitAtNul, watchGit } from '../../../workspace/git/git.ts'
import type { PrivateGit } from '../../../workspace/git/private-git.ts'

/** State of the person's repository around a work directory. */
export interface RepositoryState {
  /** `null` when detached, or not readable. */
  branch: string | null
  /** Number of files that differ from the commit, new ones included. */
  dirty: number
  /** Markdown: branch, status and the last commits. */
  text: string
  notes: string[]
}

/**
 * Reads the person's repository through a private git directory. No config, hook, filter or file system monitor of theirs
 * runs, and their index is only read. Rejects with the signal's reason once that is aborted.
 * @param git its `repository` is not null
 */
export async function lookAtRepository(
  git: PrivateGit,
  { root: directory, redact }: Project,
): Promise<RepositoryState> {
  const { repository } = git
  if (repository === null) return { branch: null, dirty: 0, text: 'The directory is in no git repository.', notes: [] }
  const { branch, commit } = await readHead(repository)
  await pointHeadAt(git, commit)
  const isIgnored = git.prefix === '' && repository.root !== directory
  const [status, commits] = await Promise.all([
    isIgnored ? null : statusOf(git, join(repository.gitDir, 'index')),
    commit === null ? [] : lastCommits(git, commit, repository.commonDir, redact),
  ])
  const notes: string[] = []
  if (isIgnored) notes.push('The repository around it ignores the work directory, so there is no status.')
  else if (status === null) notes.push('git could not list what differs from the last commit.')
  if (commit !== null && commits.length === 0) notes.push('git could not list the last commits.')
  const text = [
    branch !== null
      ? `Branch: ${quoted(branch)}`
      : commit !== null
        ? `No branch: at ${commit.slice(0, 12)}`
        : 'The branch is not known.',
    commit === null ? 'No commit yet, or none that can be read.' : '',
    statusText(status),
    commits.length === 0 ? '' : `The last commits:\n${commits.join('\n')}`,
  ]
  return { branch, dirty: status?.length ?? 0, text: text.filter(part => part !== '').join('\n\n'), notes }
}

/** `git status` compares with its own HEAD. */
async function pointHeadAt({ gitDir }: PrivateGit, commit: string | null): Promise<void> {
  const head = `${commit ?? 'ref: refs/heads/none'}\n`
  const path = join(gitDir, 'HEAD')
  const before = await readTextFile(path, 1024)
  if (before.kind !== 'text' || before.text !== head) await writeWholeFile(path, head)
}

interface StatusEntry {
  /** Two letters, as in `git status --short`. */
  code: string
  path: string
}

/** Null: git cannot tell. */
async function statusOf({ setting, prefix }: PrivateGit, index: string): Promise<StatusEntry[] | null> {
  const args = ['status', '--porcelain=v1', '-z', '--no-renames', '--untracked-files=normal', '--ignore-submodules=all']
  const listed = await ask({ ...setting, env: { ...setting.env, GIT_INDEX_FILE: index } }, [
    ...args,
    '--',
    prefix || '.',
  ])
  if (listed === null) return null
  return splitAtNul(listed)
    .map(entry => ({
      code: entry.slice(0, 2),
      path: fromLatin1(entry.slice(3)).slice(prefix.length),
    }))
    .filter(({ path }) => !path.startsWith('.codemachine/'))
}

function statusText(status: readonly StatusEntry[] | null): string {
  if (status === null) return ''
  if (status.length === 0) return 'Nothing differs from the last commit.'
  const lines = status.slice(0, MOST_SHOWN).map(({ code, path }) => `- ${code.trim()} ${quoted(path, 200)}`)
  const left = status.length - lines.length
  const more = left > 0 ? `\n- … and ${left} more` : ''
  return `Not committed (as \`git status --short\` has it):\n${lines.join('\n')}${more}`
}

/** Returns the last ten commits, newest first, a line each. */
async function lastCommits(
  git: PrivateGit,
  commit: string,
  commonDir: string,
  redact: Project['redact'],
): Promise<string[]> {
  // In a shallow clone, git must know where the history ends.
  const shallow = await readTextFile(join(commonDir, 'shallow'), 1024 * 1024)
  const ends = shallow.kind === 'text' ? shallow.text.split('\n').filter(line => /^[0-9a-f]{40,64}$/.test(line)) : []
  const file = join(git.gitDir, 'shallow')
  if (ends.length === 0) await rm(file, { force: true })
  else await writeWholeFile(file, ends.map(line => `${line}\n`).join(''))
  const format = '--format=%h%x09%cd%x09%an%x09%s'
  const args = ['log', '-10', '-z', format, '--date=short', '--no-mailmap', '--no-show-signature', '--no-color', commit]
  const text = await ask(git.setting, args)
  return redact(fromLatin1(text ?? ''))
    .split('\0')
    .flatMap(line => {
      const [hash = '', date = '', author = '', ...subject] = line.split('\t')
      return hash === '' ? [] : [`- ${hash} ${date} ${oneLine(author, 60)}: ${oneLine(subject.join(' '), 160)}`]
    })
}

/** Returns git's output (latin1). Null: it fails, blocks on a file, or takes too long for a context. */
async function ask(setting: PrivateGit['setting'], args: readonly string[]) {
  const { stdout, exitCode } = await watchGit({ ...setting, env: { ...setting.env, GIT_OPTIONAL_LOCKS: '0' } }, args, {
    encoding: 'latin1',
    outputLimit: MOST_OUTPUT,
    timeoutMs: MOST_MS,
  })
  setting.signal?.throwIfAborted()
  return exitCode === 0 ? stdout : null
}

const MOST_SHOWN = 60
const MOST_OUTPUT = 16 * 1024 * 1024
const MOST_MS = 10_000
