import { dirname, join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { pathExists } from '../../platform/files.ts'
import {
  findObstacle,
  makeFolderInside,
  readRegularFile,
  whatIsThere,
  writeFileInside,
} from '../files/inside-directory.ts'
import { fromLatin1, splitAtNul, toLatin1 } from '../git/git.ts'
import { type Checkout, gitErrorLine, runGitIn } from './worktree.ts'

/** Largest copy in all, MiB. */
const MOST_MIB = 64

/**
 * Copies ignored files from a checkout into its worktree, never through a link; keeps existing ones. Throws a `UserError` if
 * one cannot be copied or git would not ignore it there; then copies none.
 * @param worktree the setting to run git in the worktree
 * @param options `from`, `to`: the top folders of both; `paths`: relative to them; `place`: where a person wrote them
 * @returns those that the checkout does not have
 */
export async function copyIgnored(
  worktree: Pick<Checkout, 'setting'>,
  { from, to, paths, place }: { from: string; to: string; paths: readonly string[]; place: string },
): Promise<string[]> {
  const refusal = (path: string, why: string) =>
    new UserError('CM0510', `${place}: ${path} cannot be copied into the worktree: ${why.replace(/\.$/, '')}.`)
  const missing: string[] = []
  const files: { path: string; bytes: Buffer; mode: number }[] = []
  let left = MOST_MIB * 1024 * 1024
  for (const path of new Set(paths)) {
    if (await pathExists(join(to, path))) continue
    const obstacle = await findObstacle(from, dirname(path))
    if (obstacle !== null && obstacle.kind !== 'missing')
      throw refusal(path, `${obstacle.path} ${whatIsThere(obstacle)}`)
    const read = obstacle === null ? await readRegularFile(join(from, path), left) : ({ kind: 'gone' } as const)
    if (read.kind === 'too-large') throw refusal(path, `${MOST_MIB} MiB in all are the most`)
    if (read.kind === 'broken') throw refusal(path, read.problem)
    if (read.kind === 'gone') missing.push(path)
    else files.push({ path, bytes: read.bytes, mode: read.state.mode })
    if (read.kind === 'bytes') left -= read.bytes.length
  }
  const ignored = await ignoredOf(
    worktree,
    files.map(({ path }) => path),
  )
  const open = files.find(({ path }) => !ignored.has(path))
  if (open !== undefined) {
    const mend = 'add it to .gitignore and commit that, or to .git/info/exclude'
    throw refusal(
      open.path,
      `git does not ignore it there, so it would be committed with the work. To ignore it, ${mend}`,
    )
  }
  for (const { path, bytes, mode } of files) {
    const obstacle = await makeFolderInside(to, dirname(path), { mode: 0o755 })
    if (obstacle !== null) throw refusal(path, `${join(to, obstacle.path)} ${whatIsThere(obstacle)}`)
    await writeFileInside(to, path, bytes, mode)
  }
  return missing
}

async function ignoredOf(worktree: Pick<Checkout, 'setting'>, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  const result = await runGitIn(worktree, ['check-ignore', '-z', '--stdin'], toLatin1(paths.join('\0')))
  // Git also fails if nothing is ignored.
  if (!result.ok && result.stderr !== '') {
    throw new UserError('CM0510', `git could not say what it ignores: ${gitErrorLine(result)}.`)
  }
  return new Set(splitAtNul(fromLatin1(result.stdout)))
}
