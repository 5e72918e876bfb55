import { Cleanup } from '../base/errors.ts'
import { isReplayedSession } from '../records/journal.ts'
import type { Records } from '../records/records.ts'
import type { ReportData } from '../report/report-data.ts'
import { type Fingerprints, openFingerprintsReadOnly } from '../workspace/fingerprint.ts'
import { followIgnoreRules } from '../workspace/ignored/session-rules.ts'
import { openSavepoints, type SavepointWriter } from '../workspace/savepoints/savepoint-writer.ts'
import { fingerprintOptions, openWorkDirectory, WAIT_FOR_ITS_END } from './open-run.ts'
import type { World } from './world.ts'

/** The savepoints of a work directory, and the means to tell what its files are now. */
export interface OpenSavepoints extends AsyncDisposable {
  fingerprints: Fingerprints
  savepoints: SavepointWriter
}

/**
 * Opens the savepoints for reading, also while a session runs in the work directory. Warnings go to `onWarning`; null if
 * there are no savepoints yet.
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
 * Opens the savepoints for a change, such as a rewind. Warnings go to `onWarning`; a `UserError` with exit code 6 while a
 * session runs in the work directory.
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

/** One whose journal cannot be read, or has gone, may have worked. */
function replayedIn(records: Records): (session: string) => Promise<boolean> {
  return session => isReplayedSession(records, session).catch(() => false)
}

/** Looks at the files as the newest session does that has rules of its own. */
async function followNewestRules(fingerprints: Fingerprints, records: Records): Promise<void> {
  for (const id of (await records.sessions()).reverse()) {
    await followIgnoreRules(fingerprints, records.ignoreRules(id))
    if (fingerprints.ignoredBy !== null) return
  }
}

/** True if all savepoints of a session have been pruned; false if it made none, or if that cannot be found out. */
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
