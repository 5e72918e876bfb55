import { realpath } from 'node:fs/promises'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import type { SessionState } from '../../core/state/state.ts'
import { openQueue } from '../../session/records/queue.ts'
import { allRecords, type Records, recordsOf } from '../../session/records/records.ts'
import { readRunLock } from '../../session/records/run-lock.ts'
import { describeOutcome } from '../../tell/words/outcome.ts'
import { directoryOfRecords } from '../environment/directory-of-records.ts'
import { latestSession, readableState } from '../find.ts'
import { stateLeft } from '../resume.ts'
import { nextToStart } from '../run-queue.ts'
import { placesOf, type World } from '../world.ts'

/** Work of the service in a directory. */
export interface Due {
  records: Records
  /** Session to resume; null: run the queue. */
  session: string | null
  /** Key of this work: the session as it was left, and the queued prompts. Each key is due once. */
  of: string
  /** Words after the directory: `resumes 20261126_1, which was cut off`. */
  what: string
}

/** Facts that decide what is due. */
export interface ServiceLimits {
  /** Install time of the service; older work is the person's. Unix time, ms. */
  since: number
  /** Boot time of the machine; Unix time, ms. */
  bootedAt: number
  /** Keys of the records whose sessions the service ended at its own end. */
  stopped: Set<string>
}

/**
 * Yields the due work in this person's directories on this machine where nobody works. Skips unreadable ones.
 * @param isLookedAt whether to check this one for unfinished sessions too, which takes longer; its queue is always checked.
 * `left` identifies the run that was cut off there, null: none
 */
export async function* dueNow(
  world: World,
  root: string,
  limits: ServiceLimits,
  isLookedAt: (key: string, left: string | null) => boolean,
): AsyncGenerator<Due> {
  for (const found of await allRecords(placesOf(world, root))) {
    const due = await dueOf(world, { ...found, root }, limits, isLookedAt).catch(passOver)
    if (due !== null) yield due
  }
}

function passOver(error: unknown): null {
  if (error instanceof UserError || systemErrorCode(error) !== null) return null
  throw error
}

async function dueOf(
  world: World,
  found: Omit<Records, 'directory'>,
  limits: ServiceLimits,
  isLookedAt: (key: string, left: string | null) => boolean,
): Promise<Due | null> {
  const lock = await readRunLock(found.lock, world.platform)
  if (lock.state !== 'free' && lock.state !== 'stale') return null
  const { prompts } = await openQueue(found.queue).list()
  const left = lock.state === 'stale' ? lock.holder.nonce : null
  if (!isLookedAt(found.key, left) && prompts.length === 0) return null
  const directory = await directoryOfRecords(found, (await found.sessions()).slice(-NEWEST), world.platform)
  if (directory === null || (await realpath(directory).catch(() => null)) !== directory) return null
  return await dueIn(world, recordsOf({ root: found.root, templates: world.templates }, directory), limits)
}

const NEWEST = 5

async function dueIn(world: World, records: Records, limits: ServiceLimits): Promise<Due | null> {
  const left = await stateLeft(world, records, () => {})
  if (left !== null && isToGoOn(left, records.key, limits)) {
    const how = left.ended === null ? 'cut off' : describeOutcome(left.ended.outcome).short
    const what = `resumes ${left.id}, which was ${how}`
    return { records, session: left.id, of: `${left.id} ${left.events}`, what }
  }
  const queue = openQueue(records.queue)
  if ((await nextToStart(queue, records.templates)) === null) return null
  const { prompts } = await queue.list()
  const id = await latestSession(records, () => {})
  const state = id === null ? null : await readableState(records, id, 'ends')
  const newest = Math.max(...prompts.map(({ at }) => Date.parse(at)))
  if (state !== null && endsQueue(state) && newest <= state.updatedAt) return null
  const count = prompts.length === 1 ? 'the prompt that waits' : `the ${prompts.length} prompts that wait`
  return { records, session: null, of: prompts.map(({ id }) => id).join(), what: `works off ${count}` }
}

/** Returns whether no person ended the session: it was cut off, or ended with the machine or the service. */
function isToGoOn(
  { ended, updatedAt }: SessionState,
  key: string,
  { since, bootedAt, stopped }: ServiceLimits,
): boolean {
  if (updatedAt < since) return false
  if (ended === null) return true
  const { outcome } = ended
  if (outcome.kind !== 'interrupted' || outcome.by !== 'SIGTERM') return false
  return stopped.has(key) || updatedAt < bootedAt
}

/** Returns whether this end keeps the queue from running until a person adds to it. */
function endsQueue({ ended }: SessionState): boolean {
  if (ended === null) return true
  const { outcome } = ended
  if (outcome.kind === 'needs-person') return !outcome.goalOnly
  return outcome.kind === 'limit' || (outcome.kind === 'interrupted' && outcome.by !== 'skip')
}
