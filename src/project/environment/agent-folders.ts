import { dirname } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { allRecords, type Records } from '../../session/records/records.ts'
import { workTreesOf } from '../../workspace/git/find-git.ts'
import { findRepository, type PersonRepository } from '../../workspace/git/git.ts'
import type { World } from '../world.ts'
import { directoryOfRecords } from './directory-of-records.ts'

/**
 * Returns the folders in which this person's agents may have written: each directory of a session, as the records name it,
 * and all worktrees of its repository, because work in one can land in another. Real paths; they may be missing.
 */
export async function agentFolders(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates'>,
): Promise<readonly string[]> {
  const directories = new Set<string>()
  // If they are unreadable, the command itself reports it.
  const left = await allRecords(world).catch(unlessBug)
  const readNext = async () => {
    for (let records = left.pop(); records !== undefined; records = left.pop()) {
      const directory = await workedIn(records, world.platform)
      if (directory !== null) directories.add(directory)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_READS }, readNext))
  const repositories = new Map<string, PersonRepository>()
  for (const directory of directories) {
    for (const place of [directory, checkoutOf(directory)]) {
      const repository = place === null ? null : await findRepository(place).catch(() => null)
      if (repository !== null) repositories.set(repository.commonDir, repository)
    }
  }
  const tops = await Promise.all([...repositories.values()].map(workTreesOf))
  return [...new Set([...directories, ...tops.flat()])]
}

function unlessBug(error: unknown): [] {
  if (error instanceof UserError || systemErrorCode(error) !== null) return []
  throw error
}

const CONCURRENT_READS = 16

/** Null: no session has begun there, or the directory is unknown. */
async function workedIn(records: Omit<Records, 'directory'>, platform: NodeJS.Platform): Promise<string | null> {
  // If the list is unreadable, assume that a session has begun.
  const ids = await records.sessions().catch(() => null)
  return ids?.length === 0 ? null : await directoryOfRecords(records, ids ?? [], platform)
}

/** Returns the checkout of a worktree by codemachine's folder name. The worktree may be removed, or its `.git` forged. */
function checkoutOf(directory: string): string | null {
  const above = dirname(directory)
  if (above === directory) return null
  return above.endsWith('.worktrees') ? above.slice(0, -'.worktrees'.length) : checkoutOf(above)
}
