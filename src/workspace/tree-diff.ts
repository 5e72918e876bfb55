import { runProcess } from '../platform/run-process.ts'
import { GitError } from './git-command.ts'
import { onOwnObjects, type PrivateGit } from './private-git.ts'
import { asText, readAsItIs } from './tree-changes.ts'

/** How much of a diff is wanted. */
export interface TreeDiffOptions {
  /** Of the text, in UTF-8. */
  mostBytes: number
  /** Relative to the work directory, files or folders, names as they are; all, if left out. */
  paths?: readonly string[]
}

/** A unified diff, as `git diff` writes it; a file that is not text is only named. */
export interface TreeDiff {
  text: string
  /** Whether it was longer than was wanted: then it ends with a whole line, and the rest is left out. */
  isCut: boolean
}

/** The diff of two trees that the private git directory holds, renamed files as such. */
export async function treeDiff(
  git: PrivateGit,
  before: string,
  after: string,
  { mostBytes, paths = [] }: TreeDiffOptions,
): Promise<TreeDiff> {
  if (before === after) return { text: '', isCut: false }
  const { program, directory, env } = onOwnObjects(git)
  const within = paths.length === 0 ? [] : ['--', ...paths]
  const args = [...readAsItIs, 'diff-tree', '-r', '-p', '-M', '-l400', ...asText, before, after, ...within]
  // What comes in the chunk with which it becomes too much is left out as a whole.
  const outputLimit = mostBytes + mostOfChunk
  const { exitCode, stdout, stderr, failure } = await runProcess(program, args, {
    directory,
    env,
    encoding: 'latin1',
    outputLimit,
  })
  if (exitCode !== 0 && failure !== 'output-limit') throw new GitError(args, { ok: false, stdout, stderr })
  const isCut = failure === 'output-limit' || stdout.length > mostBytes
  return { text: textOf(isCut ? wholeLines(stdout.slice(0, mostBytes)) : stdout), isCut }
}

function textOf(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

const mostOfChunk = 64 * 1024
