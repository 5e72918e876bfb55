import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemErrorCode } from '../../../base/errors.ts'
import { findObstacle, readTextFile } from '../../../workspace/files/inside-directory.ts'
import { isInRuntime, isOwnFolder, isPlainPath, RUNTIME_FOLDER } from '../../../workspace/files/write-all.ts'

/** Most bytes of a file to append to. */
const MOST_ADDED_TO = 16 * 1024 * 1024

/** Output of a step, as in its workflow file. */
interface WantedOutput {
  path: string
  append: boolean
}

/**
 * Returns why a step's output cannot be written below `root`, the real path of the work directory, as a clause after the
 * path; null: it can now.
 * @param others paths of the outputs of other steps
 */
export async function problemOfOutput(
  root: string,
  { path, append }: WantedOutput,
  others: readonly string[],
): Promise<string | null> {
  const wrong = problemOfName(path) ?? problemBeside(path, others)
  if (wrong !== null) return wrong
  const obstacle = await findObstacle(root, dirname(path))
  if (obstacle !== null && obstacle.kind !== 'missing') {
    const what = obstacle.kind === 'link' ? 'a link' : 'no folder'
    return `leads through ${obstacle.path}, which is ${what}; name a file in folders of the project`
  }
  return await problemOfFile(join(root, path), append)
}

function problemOfName(path: string): string | null {
  if (path === '') return 'names no file; write its path, such as "docs/plan.md"'
  if (/^(?:[/\\~]|[a-z]:)/i.test(path))
    return `is an absolute path; write one from the project's root, such as "docs/plan.md"`
  const parts = path.split('/')
  if (parts.includes('..')) return 'has ".." in it; write a path within the project'
  if (path.endsWith('/')) return 'is a folder; name a file in it'
  if (!isPlainPath(path)) return 'is not a plain path; write one such as "docs/plan.md"'
  if (parts.some(isOwnFolder)) return 'lies in .git or .codemachine, where a workflow may not write; name another file'
  return isInRuntime(parts) ? `lies in ${RUNTIME_FOLDER}, which is codemachine's own; name another file` : null
}

/** One step's file cannot be another step's folder. */
function problemBeside(path: string, others: readonly string[]): string | null {
  const inIt = others.find(other => other.startsWith(`${path}/`))
  return inIt === undefined
    ? null
    : `is used as a folder by ${JSON.stringify(inIt)}, of another step; name another file`
}

async function problemOfFile(path: string, append: boolean): Promise<string | null> {
  try {
    const stat = await lstat(path)
    if (stat.isSymbolicLink()) return 'is a link; remove it, or name another file'
    if (stat.isDirectory()) return 'is a folder; name a file in it'
    if (!stat.isFile()) return 'is no regular file; name another one'
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return null
    if (code === null) throw error
    return `cannot be written (${code}); name another file`
  }
  if (!append) return null
  const read = await readTextFile(path, MOST_ADDED_TO)
  return read.kind === 'broken' ? `cannot be added to: ${read.problem.replace(/\.$/, '')}` : null
}
