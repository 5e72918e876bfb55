import { Interrupted, UserError } from '../../base/errors.ts'
import { listLandableBranches } from '../../workspace/worktree/land.ts'
import { checkWorktreeName } from '../../workspace/worktree/worktree.ts'
import type { World } from '../world.ts'
import { provedBefore } from './demands.ts'
import { foldersOf, hasWork, type Landed, Landing, type LandingPlace, type LandingTerms, stateOf } from './land.ts'

/** Result of a worktree in a queue. */
export interface QueueEntry {
  worktree: string
  /** Null: it was not tried, or failed. */
  landed: Landed | null
  /** Why it did not land; null: it landed, or was not tried. */
  error: UserError | null
}

/** A worktree that a queue may land. */
export interface Candidate {
  name: string
  /** Its last finished session; null: none, or a newer one has begun since. */
  session: string | null
  /** Its content in a few words. */
  holds: string
}

/**
 * Returns the worktrees with something to land, in the order in which their sessions finished.
 * @param names only these, in this order; null: all
 */
export async function landable(
  { checkout, target, records }: LandingPlace,
  names: readonly string[] | null,
  say: (remark: string) => void,
): Promise<Candidate[]> {
  const wanted = names?.map(name => checkWorktreeName(name.replace(/^codemachine\//, ''))) ?? null
  const branches = await listLandableBranches(checkout, null, target.commit)
  const missing = wanted?.find(name => !branches.some(branch => branch.name === name))
  if (missing !== undefined) throw new UserError('CM0511', `There is no branch codemachine/${missing}.`)
  const found: (Candidate & { at: number })[] = []
  for (const branch of branches) {
    const { name, top } = branch
    if (wanted === null ? !hasWork(branch) : !wanted.includes(name)) continue
    const of = { name, keepsChecks: true }
    const folders = top === null ? [] : await foldersOf(checkout, top, branch.branch)
    const proved = top === null ? null : await provedBefore(records, { top, folders }, of, say)
    const session = proved?.isNewest ? proved.certificate.session : null
    found.push({ name, session, holds: stateOf(branch), at: Date.parse(proved?.certificate.endedAt ?? '') || 0 })
  }
  const placeOf = ({ name, at }: { name: string; at: number }) => wanted?.indexOf(name) ?? at
  return found.sort((a, b) => placeOf(a) - placeOf(b))
}

/** Result of a queue. */
export interface QueueResult {
  entries: readonly QueueEntry[]
  /** Id of the record of everything that landed; null: nothing landed. */
  record: string | null
  /** Why it was interrupted; null: it was not. */
  interrupted: Interrupted | null
}

/**
 * Lands worktrees one after the other, each merged with the earlier ones and proved again. A failed one is left as it is,
 * and the next follows. Throws a `UserError` with exit code 6 while a codemachine runs in the checkout.
 */
export async function landQueue(
  world: World,
  place: LandingPlace,
  names: readonly string[],
  terms: LandingTerms,
): Promise<QueueResult> {
  await using landing = await Landing.open(world, place, terms)
  const entries: QueueEntry[] = []
  let interrupted: Interrupted | null = null
  for (const worktree of names) {
    let entry: QueueEntry = { worktree, landed: null, error: null }
    try {
      if (world.signal.aborted) interrupted ??= new Interrupted(world.signal.reason)
      if (interrupted === null) {
        terms.say(`lands ${worktree} (${entries.length + 1} of ${names.length})`)
        entry = { ...entry, landed: await landing.land(worktree) }
      }
    } catch (error) {
      if (error instanceof Interrupted) interrupted = error
      else if (error instanceof UserError) entry = { ...entry, error }
      else throw error
    }
    entries.push(entry)
  }
  return { entries, record: landing.record, interrupted }
}
