import { Cleanup, UserError } from '../base/errors.ts'
import { isReplayedSession } from '../session/records/journal.ts'
import type { Records } from '../session/records/records.ts'
import type { ReportData } from '../tell/report/report-data.ts'
import { formatCount } from '../tell/words/numbers.ts'
import { type Fingerprints, openFingerprintsReadOnly } from '../workspace/fingerprint/fingerprint.ts'
import { followIgnoreRules } from '../workspace/fingerprint/session-rules.ts'
import {
  applyRewind,
  filesNotRestored,
  planRewind,
  type RewindPlan,
  whileNoted,
} from '../workspace/savepoints/rewind.ts'
import { printablePath } from '../workspace/savepoints/rewind-obstacles.ts'
import type { NamedState } from '../workspace/savepoints/savepoint-store.ts'
import { openSavepoints, type SavepointWriter } from '../workspace/savepoints/savepoint-writer.ts'
import { readableState } from './find.ts'
import { fingerprintOptions, openWorkDirectory, WAIT_FOR_ITS_END } from './open-run.ts'
import type { World } from './world.ts'

/** Savepoints of a work directory, and the means to read its files now. */
export interface OpenSavepoints extends AsyncDisposable {
  fingerprints: Fingerprints
  savepoints: SavepointWriter
}

/**
 * Opens the savepoints for reading, also while a session runs in the work directory. Passes warnings to `onWarning`; null:
 * no savepoints yet.
 */
export async function lookAtSavepoints(
  world: World,
  records: Records,
  onWarning: (warning: string) => void,
): Promise<OpenSavepoints | null> {
  await using opened = new Cleanup()
  const options = await fingerprintOptions(world, records, onWarning)
  const look = await openFingerprintsReadOnly(options)
  if (look === null) return null
  opened.use(look)
  const { fingerprints } = look
  await followNewestRules(fingerprints, records)
  const savepoints = opened.use(openSavepoints(fingerprints, { ...options, isReplayed: replayedIn(records) }))
  const held = opened.move()
  return { fingerprints, savepoints, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

/**
 * Opens the savepoints for a change, such as a rewind. Passes warnings to `onWarning`. Throws a `UserError` with exit code 6
 * while a session runs there.
 */
export async function holdSavepoints(
  world: World,
  records: Records,
  onWarning: (warning: string) => void,
): Promise<OpenSavepoints> {
  await using opened = new Cleanup()
  const { fingerprints } = opened.use(await openWorkDirectory(world, records, onWarning, { hint: WAIT_FOR_ITS_END }))
  await followNewestRules(fingerprints, records)
  const savepoints = opened.use(openSavepoints(fingerprints, { onWarning, isReplayed: replayedIn(records) }))
  const held = opened.move()
  return { fingerprints, savepoints, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

/** A session with an unreadable or missing journal may have worked. */
function replayedIn(records: Records): (session: string) => Promise<boolean> {
  return session => isReplayedSession(records, session).catch(() => false)
}

/** Reads the files by the rules of the newest session that has its own. */
async function followNewestRules(fingerprints: Fingerprints, records: Records): Promise<void> {
  for (const id of (await records.sessions()).reverse()) {
    await followIgnoreRules(fingerprints, records.ignoreRules(id))
    if (fingerprints.ignoredBy !== null) return
  }
}

/** A planned rewind. `now`: tree of the files now. */
interface PlannedRewind {
  target: NamedState
  now: string
  plan: RewindPlan
}

/**
 * Plans to restore the work directory's files from a savepoint, and changes nothing. Throws a `UserError` if there is no
 * such savepoint, or something blocks it.
 * @param to name of the savepoint as typed
 * @param only the files to which it is limited (`RewindTrees.only`); left out: all
 */
export async function planRewindTo(
  { savepoints, fingerprints }: OpenSavepoints,
  records: Records,
  to: string,
  only?: readonly string[],
): Promise<PlannedRewind> {
  const target = await savepoints.resolve(to, () => fingerprints.take())
  const session = target.savepoint?.session ?? null
  if (session !== null) await followIgnoreRules(fingerprints, records.ignoreRules(session))
  const now = await fingerprints.mending(async () => {
    const tree = await fingerprints.take()
    // Read all files now, so that the trees can be compared.
    await savepoints.changes(target.tree, tree, 0)
    return tree
  })
  const plan = await planRewind(fingerprints.git, records.directory, {
    now,
    target: target.tree,
    ignoredBy: fingerprints.ignoredBy,
    hidden: fingerprints.hidden,
    ended: await lastEnd(savepoints, records),
    ...(only === undefined ? {} : { only }),
  })
  return { target, now, plan }
}

/** Returns when the newest savepoint's session ended, and the commits of all savepoints; null: not ended, or unknown. */
async function lastEnd(
  savepoints: SavepointWriter,
  records: Records,
): Promise<{ at: number; commits: readonly string[] } | null> {
  const all = await savepoints.list()
  const session = await savepoints.newestSession(all)
  const state = session === null ? null : await readableState(records, session, 'ends')
  if (state === null || state.ended === null) return null
  return { at: state.updatedAt, commits: all.flatMap(each => (each.session === null ? [] : [each.commit])) }
}

/**
 * Restores the files of a savepoint while nothing runs there, and describes it in sentences. `undo`: savepoint that undoes
 * it; null: nothing changes. Throws as `planRewindTo` and `carryOutRewind` do.
 * @param go whether to carry it out, not only describe it
 */
export async function rewindInWords(
  world: World,
  records: Records,
  { to, go }: { to: string; go: boolean },
  onWarning: (warning: string) => void,
): Promise<{ to: string; files: number; words: string[]; undo: string | null }> {
  await using open = await holdSavepoints(world, records, onWarning)
  const planned = await planRewindTo(open, records, to)
  const { plan, target } = planned
  const files = plan.write.length + plan.remove.length
  const words = files === 0 ? [`The files are as at ${target.name} already.`] : [sumOfRewind(plan), keptByRewind(plan)]
  const undo = go && files > 0 ? await carryOutRewind(open, records, planned, world.clock.now()) : null
  return { to: target.name, files, words: words.filter(word => word !== ''), undo }
}

/**
 * Saves the files as they are, then carries out a planned rewind. Returns the name of the savepoint that undoes it. Throws a
 * `UserError` with a hint how to undo it if some files could not change.
 * @param at Unix time, ms
 */
export async function carryOutRewind(
  { savepoints, fingerprints }: OpenSavepoints,
  { directory, rewinding }: Records,
  { target, now, plan }: PlannedRewind,
  at: number,
): Promise<string> {
  const { id } = await savepoints.keepBeforeRewind(now, at)
  const undo = `Perhaps not every file is as at ${target.name} now; codemachine rewind ${id} restores the earlier files.`
  try {
    // Start over if git would block on a file in a folder that it writes.
    await whileNoted(rewinding, { to: target.name, undo: id }, () =>
      fingerprints.mending(() => applyRewind(fingerprints, directory, plan)),
    )
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    throw new UserError(error.code, error.message, { hint: undo, exitCode: error.exitCode, cause: error })
  }
  const left = await filesNotRestored(fingerprints.git, plan, { after: await fingerprints.take(), target: target.tree })
  if (left.length === 0) return id
  throw new UserError('CM0516', `${formatCount(left.length, 'file')} could not be rewound: ${somePaths(left)}.`, {
    hint: undo,
  })
}

/** Returns the first of some latin1 paths, safe to print. */
function somePaths(paths: readonly string[]): string {
  const more = paths.length > MOST_NAMED ? ', …' : ''
  return `${paths.slice(0, MOST_NAMED).map(printablePath).join(', ')}${more}`
}

const MOST_NAMED = 5

/** Returns true if all savepoints of a session were pruned; false if it made none, or that is unknown. */
export async function areSavepointsGone(
  world: World,
  records: Records,
  { session, changes }: Pick<ReportData, 'session' | 'changes'>,
  onWarning: (warning: string) => void,
): Promise<boolean> {
  if (changes.savepoints === 0) return false
  try {
    await using open = await lookAtSavepoints(world, records, onWarning)
    const kept = (await open?.savepoints.list()) ?? []
    return kept.every(each => each.session !== session)
  } catch {
    return false
  }
}

/** Returns one line for each reason why files that the savepoint lacks remain; empty if none remain. */
export function keptByRewind({ keep, made }: RewindPlan): string {
  return [
    leftAlone('ignored when that savepoint was made', keep),
    leftAlone('made after the last session ended', made),
  ].join('')
}

function leftAlone(why: string, paths: readonly string[]): string {
  return paths.length === 0 ? '' : `Not changed (${why}): ${somePaths(paths)} (${formatCount(paths.length, 'file')}).\n`
}

/** Counts the files that a rewind changes, restores and removes. */
export function sumOfRewind({ write, remove }: RewindPlan): string {
  const known = write.filter(({ isKnown }) => isKnown).length
  const parts = [
    [known, 'changed'],
    [write.length - known, 'restored'],
    [remove.length, 'removed'],
  ] as const
  const words = parts.flatMap(([count, how]) => (count === 0 ? [] : [`${formatCount(count, 'file')} ${how}`]))
  return words.join(', ')
}
