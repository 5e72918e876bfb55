import { UserError, unreachable } from '../../base/errors.ts'
import { type SessionState, sessionStatusOf } from '../../core/state/state.ts'
import { lockOfSession } from '../../session/records/journal.ts'
import { allRecords, type Records, recordsOf } from '../../session/records/records.ts'
import { type LockHolder, readRunLock, unreadableLock } from '../../session/records/run-lock.ts'
import { resumeCommand } from '../../tell/words/commands.ts'
import { describeOutcome } from '../../tell/words/outcome.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { latestSession, readableState } from '../find.ts'
import { findSessionAround } from '../worktrees/find.ts'
import { placesOf, type World } from '../world.ts'

/** A running session on this machine. */
export interface RunningHere {
  records: Records
  id: string
  state: SessionState
}

/**
 * Returns the session that a person wants to see: the named one, or the one that runs in this directory. Null: none is
 * named, and none runs there. Throws a `UserError` if it does not run, or runs on another machine.
 */
export async function runningSession(
  world: World,
  records: Records,
  wanted: string | null,
  onProblem: (problem: string) => void,
): Promise<RunningHere | null> {
  if (wanted === null) {
    const holder = await holderOf(world, records.lock)
    const id = holder === null ? null : await latestSession(records, onProblem)
    return id === null ? null : await asRunning(world, records, id)
  }
  const named = await findSessionAround(records, wanted, { platform: world.platform, onProblem }).catch(error => {
    if (error instanceof UserError) return error
    throw error
  })
  if (!(named instanceof UserError)) return await asRunning(world, named.records, named.id)
  const elsewhere = (await allRunning(world, records)).filter(({ id }) => id === wanted)
  const [only] = elsewhere
  if (only === undefined) throw named
  if (elsewhere.length === 1) return only
  throw new UserError(
    'CM0604',
    `${oneLine(wanted, MOST_TYPED)} runs in ${elsewhere.length} directories; name one with -C.`,
    {
      hint: elsewhere.map(({ records: { directory } }) => directory).join(', '),
    },
  )
}

const MOST_TYPED = 60

/** Returns all running sessions of this person on this machine, in any directory; skips unreadable ones. */
export async function allRunning(world: World, { root }: Pick<Records, 'root'>): Promise<RunningHere[]> {
  const found: RunningHere[] = []
  for (const { key, lock: path } of await allRecords(placesOf(world, root))) {
    const lock = await readRunLock(path, world.platform)
    // An earlier version's lock does not name its directory.
    if (lock.state !== 'held' || lock.holder.directory === undefined) continue
    const records = recordsOf({ root, templates: world.templates }, lock.holder.directory)
    const id = records.key === key ? await latestSession(records, () => {}) : null
    const state = id === null ? null : await readableState(records, id, 'ends')
    if (id !== null && state !== null && state.ended === null) found.push({ records, id, state })
  }
  return found
}

async function asRunning(world: World, records: Records, id: string): Promise<RunningHere> {
  // Read the lock before the journal: a session that ends meanwhile must not look cut off.
  const holder = await holderOf(world, await lockOfSession(records, id))
  const state = await readableState(records, id, 'ends')
  if (state === null) throw new UserError('CM0607', `${records.journal(id)} contains no readable session.`)
  const standing = sessionStatusOf(state, holder)
  switch (standing) {
    case 'running':
    case 'unknown':
      return { records, id, state }
    case 'cut-off':
      throw new UserError('CM0613', `${id} no longer runs: its process was killed.`, {
        hint: `To resume it: ${resumeCommand(id, null)}`,
      })
    case 'ended':
      throw new UserError(
        'CM0613',
        `${id} has ended: ${state.ended === null ? '' : describeOutcome(state.ended.outcome).short}. There is nothing to attach to.`,
        { hint: `Its result: codemachine report ${id}` },
      )
    default:
      return unreachable(standing)
  }
}

/** Returns the lock's holder if this process can reach it. */
async function holderOf({ platform }: World, path: string): Promise<LockHolder | null> {
  const lock = await readRunLock(path, platform)
  switch (lock.state) {
    case 'held':
      return lock.holder
    case 'free':
    case 'stale':
      return null
    case 'elsewhere':
      throw new UserError(
        'CM0620',
        `The session runs on ${lock.holder.host} (pid ${lock.holder.pid}), another machine or container. Type codemachine attach there.`,
        {
          hint: 'From here, in lines: codemachine logs -f',
        },
      )
    case 'unreadable':
      throw unreadableLock(lock)
    default:
      return unreachable(lock)
  }
}
