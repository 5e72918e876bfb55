import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { runGit, runGitOrThrow } from './git-command.ts'
import { orUserError } from './kept-savepoints.ts'
import { throwAwayObjects } from './own-objects.ts'
import { onOwnObjects, type PrivateGit } from './private-git.ts'
import { dropIndex } from './private-git-layout.ts'
import { byAge, newestSession, refOf, type Savepoint } from './savepoint.ts'
import { writingGit } from './writing-git.ts'

/** Which savepoints may go. */
export interface PruneRule {
  /** Those of sessions whose newest is older than this moment, Unix time, ms; null: none for that. */
  before: number | null
  /** The oldest, until the rest takes at most so many bytes; null: none for that. */
  mostBytes: number | null
  /** Every one, also the newest session's and the newest before a rewind. */
  all: boolean
  /** A session whose savepoints stay all the same. */
  spare?: string | null
}

/** The savepoints that go together: those of a session, or one that was made before a rewind. */
export interface Batch {
  /** The session, or the savepoint's id. */
  name: string
  savepoints: readonly Savepoint[]
  /** Of the newest of them, Unix time, ms. */
  at: number
}

/** The batches that a rule lets go, the oldest first. */
export async function planPrune(
  git: PrivateGit,
  savepoints: readonly Savepoint[],
  { before, mostBytes, all, spare = null }: PruneRule,
): Promise<Batch[]> {
  const batches = batchesOf(savepoints)
  if (all) return batches.filter(({ name }) => name !== spare)
  const kept = [
    spare,
    newestSession(savepoints),
    savepoints.toSorted(byAge).findLast(({ session }) => session === null)?.id,
  ]
  const free = batches.filter(({ name }) => !kept.includes(name))
  const old = free.filter(({ at }) => before !== null && at < before)
  if (mostBytes === null) return old
  const byCount = await fewestFor(free.length, async count => {
    const gone = new Set(free.slice(0, count))
    return (
      (await bytesOf(
        git,
        batches.filter(each => !gone.has(each)),
      )) <= mostBytes
    )
  })
  return free.slice(0, Math.max(old.length, byCount))
}

/**
 * Lets batches go, and gives the room back that nothing needs then, or did not need before; answers how many bytes that
 * are. The caller holds the lock of the run.
 */
export async function prune(git: PrivateGit, batches: readonly Batch[]): Promise<number> {
  const before = await bytesOnDisk(git)
  const writing = () =>
    writingGit(git.gitDir, async () => {
      const refs = batches.flatMap(({ savepoints }) => savepoints.map(each => `delete ${refOf(each)}\n`))
      await runGitOrThrow(onOwnObjects(git), ['update-ref', '--stdin'], refs.join(''))
      await dropIndex(git)
      await throwAwayObjects(git)
    })
  await orUserError('Not all room can be given back, for git failed', writing)
  return Math.max(0, before - (await bytesOnDisk(git)))
}

/** What the objects of the private git directory take on the disk, those too that nothing needs, bytes. */
export async function bytesOnDisk({ gitDir }: PrivateGit): Promise<number> {
  const files = await readdir(join(gitDir, 'objects'), { recursive: true, withFileTypes: true })
  let bytes = 0
  for (const file of files) {
    if (!file.isFile()) continue
    // Something may go meanwhile.
    bytes += (await stat(join(file.parentPath, file.name)).catch(() => null))?.size ?? 0
  }
  return bytes
}

/** What these savepoints take, bytes. */
export async function bytesOf(git: PrivateGit, batches: readonly Batch[]): Promise<number> {
  const commits = batches.flatMap(({ savepoints }) => savepoints.map(({ commit }) => `${commit}\n`))
  if (commits.length === 0) return 0
  const args = ['rev-list', '--objects', '--disk-usage', '--stdin']
  const { ok, stdout, stderr } = await runGit(onOwnObjects(git), args, commits.join(''))
  if (ok) return Number(stdout.trim())
  throw new UserError('How much the savepoints take cannot be found out; git 2.31 or newer can, if none is broken.', {
    hint: stderr.trim().slice(0, 300),
  })
}

function batchesOf(savepoints: readonly Savepoint[]): Batch[] {
  const groups = Map.groupBy(savepoints.toSorted(byAge), ({ session, id }) => session ?? id)
  const batches = [...groups].map(([name, group]) => ({ name, savepoints: group, at: group.at(-1)?.at ?? 0 }))
  return batches.sort((a, b) => a.at - b.at)
}

/** The least count from 0 to `most` of which it is true, if it is true of all above; `most` if it is of none. */
async function fewestFor(most: number, isTrue: (count: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, most]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await isTrue(middle)) high = middle
    else low = middle + 1
  }
  return low
}
