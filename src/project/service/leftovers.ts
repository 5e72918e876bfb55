import { lstat, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { SERVICE_FILES } from '../../platform/service.ts'
import { allRecords, type Records, rootOf } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { listLandableBranches } from '../../workspace/worktree/land.ts'
import { openCheckout, runGitOrUserError } from '../../workspace/worktree/worktree.ts'
import { directoryOfRecords } from '../environment/directory-of-records.ts'
import { placesOf, type World } from '../world.ts'
import { serviceLock } from './service.ts'

/** Kinds of codemachine's leftovers, in removal order. */
export const KINDS = ['services', 'worktrees', 'memory', 'settings', 'login', 'history', 'sessions'] as const
export type LeftoverKind = (typeof KINDS)[number]

/** A leftover of codemachine on this machine. */
export interface Leftover {
  kind: LeftoverKind
  /** Absolute; for a branch without a worktree, its reference in `repository`. */
  path: string
  bytes: number
  /** Remark for the person; null: none. */
  note: string | null
  /** True if it holds work that exists nowhere else: it is never removed. */
  isKept: boolean
  /** For a worktree: the first worktree of its repository, and its branch. */
  worktree?: { main: string; branch: string; hasFiles: boolean }
}

/**
 * Finds all leftovers of codemachine: in its own folder, in recorded work directories, in the person's settings and among
 * services. Follows no links, skips missing directories, and changes nothing.
 */
export async function findLeftovers(world: World): Promise<readonly Leftover[]> {
  const root = rootOf(placesOf(world, world.cwd))
  const directories = await knownDirectories(world)
  const found = [
    ...(await each('services', [SERVICE_FILES.systemd(world), SERVICE_FILES.launchd(world)], 'ended first')),
    ...(await worktrees(world, directories)),
    ...(await each('memory', memoriesOf(directories, root), NOTE_OF_MEMORY)),
    ...(await each('settings', [join(world.configHome, 'codemachine')])),
    ...(await each('login', [join(root, 'codex')], 'the login, and the configuration and profiles of its codex')),
    ...(await each('history', await othersIn(root))),
    ...(await each(
      'sessions',
      await below(join(root, 'state')),
      'journals, reports, secrets, and savepoints in private git directories',
    )),
  ]
  return found
}

const NOTE_OF_MEMORY = 'with what you have written into inputs/, agents/ and kb/'

/** Throws a `UserError` (exit code 6) if a session, a call or the service runs with these records. */
export async function refuseWhileRunning(world: World): Promise<void> {
  const places = placesOf(world, world.cwd)
  const refuse = async (lock: string, hint: string) => {
    const runner = await readRunner(lock, world.platform)
    if (runner === null) return
    const where = runner.directory === undefined ? '' : ` in ${runner.directory}`
    throw new UserError('CM0601', `A codemachine runs${where} (pid ${runner.pid}), so nothing can be removed now.`, {
      hint,
      exitCode: 6,
    })
  }
  await refuse(serviceLock(rootOf(places)), 'It is the service; end it first: codemachine service uninstall')
  for (const records of await allRecords(places)) {
    for (const lock of [records.lock, ...(await sessionsOf(records)).map(records.callLock)])
      await refuse(lock, 'End it first: codemachine stop')
  }
}

/** Returns none if the folder holds no records. */
async function sessionsOf(records: Pick<Records, 'sessions'>): Promise<string[]> {
  return await records.sessions().catch(error => {
    if (systemErrorCode(error) === null) throw error
    return []
  })
}

/** Removes a leftover. Returns null, or a sentence why it failed. Never removes a kept one. */
export async function removeLeftover(world: World, { path, isKept, worktree }: Leftover): Promise<string | null> {
  if (isKept) return null
  try {
    if (worktree === undefined) await rm(path, { recursive: true, maxRetries: 3 })
    else await removeWorktree(world, path, worktree)
    return null
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
    return `${path} could not be removed: ${messageOf(error)}`
  }
}

/** Removes codemachine's own folder if it is empty. */
export async function removeEmptyRoot(world: World): Promise<void> {
  const root = rootOf(placesOf(world, world.cwd))
  for (const folder of [join(root, 'state'), root]) await rmdir(folder).catch(() => undefined)
}

/** Git itself refuses if there are new files. */
async function removeWorktree(
  { env }: World,
  top: string,
  { main, branch, hasFiles }: NonNullable<Leftover['worktree']>,
): Promise<void> {
  const checkout = await openCheckout(main, env)
  if (hasFiles) await runGitOrUserError(checkout, ['worktree', 'remove', '--', top], `remove the worktree ${top}`)
  await runGitOrUserError(checkout, ['branch', '--delete', '--', branch], `delete the branch ${branch}`)
}

/** Returns the work directories of all records that exist and are not reached through a link. */
async function knownDirectories(world: World): Promise<string[]> {
  const found = new Set<string>()
  for (const records of await allRecords(placesOf(world, world.cwd))) {
    const directory = await directoryOfRecords(records, await sessionsOf(records), world.platform)
    if (directory !== null && (await realpath(directory).catch(() => null)) === directory) found.add(directory)
  }
  return [...found].sort()
}

/** In a home directory the records have the same folder name. */
function memoriesOf(directories: readonly string[], root: string): string[] {
  const runs = directories.map(directory => join(directory, '.codex-flow', 'runtime'))
  return [...directories.map(directory => join(directory, memoryRoot)).filter(path => path !== root), ...runs]
}

async function worktrees({ env }: World, directories: readonly string[]): Promise<Leftover[]> {
  const mains = new Set<string>()
  for (const directory of directories) {
    const checkout = await openCheckout(directory, env).catch(orNone)
    if (checkout !== null) mains.add(checkout.main)
  }
  const found: Leftover[] = []
  for (const main of mains) {
    const checkout = await openCheckout(main, env).catch(orNone)
    const branches = checkout === null ? null : await listLandableBranches(checkout, null).catch(orNone)
    for (const { branch, top, ahead, uncommitted } of branches ?? []) {
      const isKept = ahead > 0 || uncommitted.length > 0
      const note = isKept ? 'holds work that is not landed: codemachine land merges it; until then it stays' : null
      const worktree = { main, branch, hasFiles: top !== null }
      found.push({
        kind: 'worktrees',
        path: top ?? branch,
        bytes: top === null ? 0 : await sizeOf(top),
        note,
        isKept,
        worktree,
      })
    }
  }
  return found
}

function orNone(error: unknown): null {
  if (!(error instanceof UserError)) throw error
  return null
}

/** Returns the other entries of codemachine's own folder. */
async function othersIn(root: string): Promise<string[]> {
  return (await below(root)).filter(path => !['state', 'codex'].includes(basename(path)))
}

/** Returns the existing paths that are no links. */
async function each(kind: LeftoverKind, paths: readonly string[], note: string | null = null): Promise<Leftover[]> {
  const found: Leftover[] = []
  for (const path of paths) {
    const stat = await lstat(path).catch(() => null)
    if (stat === null || stat.isSymbolicLink()) continue
    found.push({ kind, path, bytes: await sizeOf(path), note, isKept: false })
  }
  return found
}

/** Returns the sorted paths in a folder; none if it is a link, or missing. */
async function below(folder: string): Promise<string[]> {
  const stat = await lstat(folder).catch(() => null)
  if (stat === null || !stat.isDirectory()) return []
  const names = await readdir(folder).catch(() => [])
  const order = new Intl.Collator('en', { numeric: true })
  return names.sort(order.compare).map(name => join(folder, name))
}

const MOST_ENTRIES = 500_000

/** Returns the size of all files in it, in bytes, of at most 500,000 entries. */
async function sizeOf(path: string): Promise<number> {
  let [bytes, entries] = [0, 0]
  const waiting = [path]
  for (let next = waiting.pop(); next !== undefined && entries < MOST_ENTRIES; next = waiting.pop()) {
    entries += 1
    const stat = await lstat(next).catch(() => null)
    if (stat?.isDirectory()) waiting.push(...(await below(next)))
    else bytes += stat?.size ?? 0
  }
  return bytes
}
