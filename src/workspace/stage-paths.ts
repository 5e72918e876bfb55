import { constants, lstat, open } from 'node:fs/promises'
import { sep } from 'node:path'
import { isNoRoom } from '../base/disk-full.ts'
import { systemErrorCode } from '../base/errors.ts'
import { GitError, type GitResult, runGit, runGitOrThrow } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'

/** What differs between the index and the work tree: latin1 paths relative to the top. */
export interface Differences {
  gone: readonly string[]
  present: readonly string[]
}

/** Brings the index up to date at these paths; answers those that could not be read and are left as they were. */
export async function stagePaths(git: PrivateGit, { gone, present }: Differences): Promise<string[]> {
  if ((await update(git, [...gone, ...present])).ok) return []
  // git gives up at the first path that it cannot take: find out which those are.
  const { readable, unreadable, special } = await classify(git, present)
  await forget(git, [...gone, ...special])
  return [...unreadable, ...(await stageByHalves(git, readable))]
}

async function stageByHalves(git: PrivateGit, paths: readonly string[]): Promise<string[]> {
  const result = await update(git, paths)
  if (result.ok) return []
  if (paths.length === 1) return [...paths]
  const middle = paths.length >> 1
  const first = await stageByHalves(git, paths.slice(0, middle))
  return [...first, ...(await stageByHalves(git, paths.slice(middle)))]
}

/** A refusal because of a path is an answer; any other failure is an error. */
async function update(git: PrivateGit, paths: readonly string[]): Promise<GitResult> {
  if (paths.length === 0) return { ok: true, stdout: '', stderr: '' }
  const bulk = git.packsInBulk && paths.length > bulkFrom ? onePack : []
  const args = [...bulk, 'update-index', '--add', '--remove', '--replace', '-z', '--stdin']
  const result = await runGit(git.setting, args, zeroTerminated(paths))
  if (result.ok) return result
  const failure = new GitError(args, result)
  // Without room git blames the path too.
  if (isNoRoom(failure) || !/Unable to process path|Ignoring path/i.test(result.stderr)) throw failure
  return result
}

async function forget(git: PrivateGit, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await runGitOrThrow(git.setting, ['update-index', '--force-remove', '-z', '--stdin'], zeroTerminated(paths))
}

type Kind = 'readable' | 'unreadable' | 'special'

async function classify(git: PrivateGit, paths: readonly string[]): Promise<Record<Kind, string[]>> {
  const kinds: Record<Kind, string[]> = { readable: [], unreadable: [], special: [] }
  for (let start = 0; start < paths.length; start += atOnce) {
    const some = paths.slice(start, start + atOnce)
    const found = await Promise.all(some.map(path => kindOf(git.setting.directory + sep, path)))
    for (const [index, path] of some.entries()) kinds[found[index] ?? 'readable'].push(path)
  }
  return kinds
}

async function kindOf(top: string, path: string): Promise<Kind> {
  const bytes = Buffer.concat([Buffer.from(top), Buffer.from(path, 'latin1')])
  try {
    const stat = await lstat(bytes)
    if (stat.isSymbolicLink() || stat.isDirectory()) return 'readable'
    if (!stat.isFile()) return 'special'
    await using _ = await open(bytes, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    return 'readable'
  } catch (error) {
    const code = systemErrorCode(error)
    // What has gone meanwhile is taken out by git itself.
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'readable' : 'unreadable'
  }
}

function zeroTerminated(paths: readonly string[]): string {
  return paths.map(path => `${path}\0`).join('')
}

const bulkFrom = 1000
const atOnce = 100
// 50,000 new files take 11 MiB in one pack, 207 MiB and as many inodes as loose objects, in the same time.
const onePack = ['-c', 'core.bigFileThreshold=1', '-c', 'core.compression=1']
