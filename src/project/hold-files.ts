import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { UserError } from '../base/errors.ts'
import { isWithin, isWritableByAgents, pathExists, writableByAgents } from '../platform/files.ts'
import { shellWord } from '../platform/shell-word.ts'
import type { Records } from '../session/records/records.ts'
import { holderAlive, type LockHolder, readRunLock } from '../session/records/run-lock.ts'
import { readTextFile, writeFileInside } from '../workspace/files/inside-directory.ts'
import { findGit } from '../workspace/git/find-git.ts'
import { findRepository, hardenedEnvironment, runGit, toLatin1 } from '../workspace/git/git.ts'
import { readPersonExcludes } from '../workspace/git/private-git.ts'
import { foldersBelow } from '../workspace/guard/nested-repositories.ts'
import { makeMemoryFolder } from '../workspace/memory/memory-folder.ts'
import { memoryRoot } from '../workspace/memory/memory-paths.ts'
import type { World } from './world.ts'

/** A codemachine that runs in another directory, or in the same one with other records. */
interface OtherRun {
  directory: string
  holder: LockHolder
  /** File that an agent could have written and that names the run; null: the run's lock. */
  marker: string | null
}

/**
 * Protects a run's files from another run: in the same directory with other records (another HOME), in a folder of it, or in
 * one around it. Throws a `UserError` with exit code 6 if there is one. A folder that is its own git repository, ignored by
 * the outer run, does not count.
 *
 * It writes a marker into `.codemachine` for runs with other records; disposing removes it. Others believe the marker only
 * while this process lives and its lock, in the records, says the same.
 */
export async function holdFiles(world: World, records: Records, holder: LockHolder): Promise<AsyncDisposable> {
  const marker = join(records.directory, MARKER)
  // Write before looking: of two runs that begin at once, at least one sees the other.
  const isOthers = (await otherAt(world, records.directory, records, holder)) !== null
  const isNew = !(await pathExists(dirname(marker)))
  const isWritten = !isOthers && dirname(marker) !== records.root && (await writeMarker(records, holder))
  const release = async () => {
    if (!isWritten) return
    await rm(marker, { force: true }).catch(() => undefined)
    if (isNew) await removeEmpty(dirname(marker))
  }
  try {
    for (const other of await otherRuns(world, records, holder)) {
      if (!(await isApart(world, records, other.directory))) throw refusal(records.directory, other)
    }
  } catch (error) {
    await release()
    throw error
  }
  return { [Symbol.asyncDispose]: release }
}

const MARKER = join(memoryRoot, 'running.json')
const MARKER_BYTES = 64 * 1024

/** Returns whether the marker was written. It helps, but a run works without it. */
async function writeMarker({ directory, lock }: Records, holder: LockHolder): Promise<boolean> {
  try {
    if ((await makeMemoryFolder(directory, memoryRoot)) !== null) return false
    // Its place names the directory; nobody would believe a directory written in it.
    await writeFileInside(directory, MARKER, `${JSON.stringify({ ...holder, directory: undefined, lock })}\n`)
    return true
  } catch {
    return false
  }
}

/** Removes the memory folder again if it holds nothing. */
async function removeEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => null)
  if (names?.length !== 1 || names[0] !== '.gitignore') return
  await rm(join(folder, '.gitignore'), { force: true }).catch(() => undefined)
  await rmdir(folder).catch(() => undefined)
}

/** Returns the runs on this machine with these records; the caller too, once it has its lock. */
export async function runsNow(root: string, platform: NodeJS.Platform): Promise<LockHolder[]> {
  const found: LockHolder[] = []
  for (const key of await readdir(join(root, 'state')).catch(() => [])) {
    const lock = await readRunLock(join(root, 'state', key, 'lock'), platform)
    if (lock.state === 'held') found.push(lock.holder)
  }
  return found
}

async function otherRuns(world: World, records: Records, own: LockHolder): Promise<OtherRun[]> {
  const { root, directory } = records
  const found = new Map<string, OtherRun>()
  for (const holder of await runsNow(root, world.platform)) {
    const { directory: other, nonce } = holder
    if (nonce === own.nonce || other === undefined) continue
    if (isWithin(directory, other) || isWithin(other, directory))
      found.set(other, { directory: other, holder, marker: null })
  }
  for await (const each of placesOfMarkers(directory, root)) {
    const other = await otherAt(world, each, records, own)
    if (other !== null && !found.has(each)) found.set(each, other)
  }
  return [...found.values()]
}

/** Yields the directory, its parents, and the folders below it that have a memory. */
async function* placesOfMarkers(directory: string, root: string): AsyncGenerator<string> {
  for (let above = directory; ; above = dirname(above)) {
    yield above
    if (dirname(above) === above) break
  }
  const enters = (path: string) => path !== root && !PASSED_OVER.has(basename(path))
  for await (const { folder, entries } of foldersBelow(directory, enters)) {
    if (entries === 'too many') return
    if (folder !== directory && entries.some(({ name }) => name === memoryRoot)) yield folder
  }
}

/** Nobody runs codemachine in these. */
const PASSED_OVER: ReadonlySet<string> = new Set(['.git', 'node_modules', memoryRoot])

/** Returns the run that a marker in this directory names, if the lock that it names says the same. */
async function otherAt(world: World, directory: string, records: Records, own: LockHolder): Promise<OtherRun | null> {
  const { platform, env } = world
  const path = join(directory, MARKER)
  const read = await readTextFile(path, MARKER_BYTES)
  const holder = read.kind === 'text' ? await holderAlive(read.text, platform) : null
  if (read.kind !== 'text' || holder === null || holder.nonce === own.nonce) return null
  const { lock } = JSON.parse(read.text) as { lock?: unknown }
  if (typeof lock !== 'string' || !isAbsolute(lock)) return null
  // An agent can forge a lock that it can write. If it can write ours too, ours is no better.
  const where = writableByAgents(records.directory, env, [directory])
  if (isWritableByAgents(lock, where) && !isWritableByAgents(records.lock, where)) return null
  const found = await readRunLock(lock, platform)
  if (found.state !== 'held' || found.holder.nonce !== holder.nonce) return null
  return found.holder.directory === directory ? { directory, holder, marker: path } : null
}

/** Returns whether the inner directory is, or is inside, its own git repository that the outer one ignores. */
async function isApart(world: World, { directory, folder }: Records, other: string): Promise<boolean> {
  if (other === directory) return false
  const [outer, inner] = isWithin(directory, other) ? [directory, other] : [other, directory]
  for (let at = inner; at !== outer; at = dirname(at)) {
    const repository = await findRepository(at).catch(() => null)
    if (repository?.root === at && (await isIgnoredBy(outer, `${relative(outer, at)}/`, world, folder))) return true
  }
  return false
}

/**
 * Returns whether git ignores a path in `outer`, by the same rules as the fingerprints of a run there. Uses an empty git
 * directory. False for a file that the repository tracks.
 * @param path relative to `outer`; a folder's ends in `/`
 * @param scratch a folder of the records
 */
export async function isIgnoredBy(
  outer: string,
  path: string,
  { env }: Pick<World, 'env'>,
  scratch: string,
): Promise<boolean> {
  const repository = await findRepository(outer)
  const top = repository?.root ?? outer
  const program = await findGit(env, top)
  const gitDir = join(scratch, `ignored-${randomUUID()}`)
  const plain = { ...hardenedEnvironment(env, join(gitDir, 'none')), GIT_LITERAL_PATHSPECS: '0' }
  try {
    await runGit({ program, directory: scratch, env: plain }, ['init', '--quiet', '--bare', '--template=', gitDir])
    await mkdir(join(gitDir, 'info'), { recursive: true })
    const excludes = await readPersonExcludes(program, outer, repository, env)
    await writeFile(join(gitDir, 'info', 'exclude'), excludes, 'latin1')
    const setting = { program, directory: top, env: { ...plain, GIT_DIR: gitDir, GIT_WORK_TREE: top } }
    const asked = toLatin1(`${relative(top, outer)}/${path}`.replaceAll(sep, '/').replace(/^\//, ''))
    const isAdded = async () => {
      if (repository === null) return false
      const added = { ...setting, env: { ...setting.env, GIT_INDEX_FILE: join(repository.gitDir, 'index') } }
      return (await runGit(added, ['--literal-pathspecs', 'ls-files', '--error-unmatch', '--', asked])).ok
    }
    return (
      !(await isAdded()) &&
      (await runGit(setting, ['check-ignore', '--quiet', '--no-index', '--stdin', '-z'], `${asked}\0`)).ok
    )
  } finally {
    await rm(gitDir, { recursive: true, force: true })
  }
}

function refusal(directory: string, { directory: other, holder, marker }: OtherRun): UserError {
  const where =
    other === directory
      ? 'here already, with other records'
      : `in ${other} already, which ${isWithin(directory, other) ? 'is in this directory' : 'contains this directory'}`
  const stop = `Wait for its end, or end it: codemachine stop -C ${shellWord(other)}`
  const forged = marker === null ? '' : `\n  If none runs there: rm ${shellWord(marker)}`
  const apart = other === directory ? '' : '\n  A separate git repository that the outer one ignores is allowed.'
  return new UserError(
    'CM0601',
    `Another codemachine (pid ${holder.pid}) runs ${where}, and two runs cannot use the same files.`,
    {
      hint: `${stop}${apart}${forged}`,
      exitCode: 6,
    },
  )
}
