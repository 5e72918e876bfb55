import { Cleanup } from '../base/errors.ts'
import type { Records } from '../records/records.ts'
import type { ReportData } from '../report/report-data.ts'
import { oneLine } from '../words/cells.ts'
import { type Fingerprints, lookAtFingerprints } from '../workspace/fingerprint.ts'
import { openSavepoints, type Savepoints } from '../workspace/savepoints/savepoints.ts'
import { fingerprintOptions, openWorkDirectory, WAIT_FOR_ITS_END } from './project.ts'
import type { CliContext } from './world.ts'

/** The savepoints of a work directory, and the means to tell what its files are now. */
export interface OpenSavepoints extends AsyncDisposable {
  fingerprints: Fingerprints
  savepoints: Savepoints
}

/**
 * Opens the savepoints for reading, also while a session runs in the work directory. Warnings go to stderr; null if
 * there are no savepoints yet.
 */
export async function lookAtSavepoints(context: CliContext, records: Records): Promise<OpenSavepoints | null> {
  await using opened = new Cleanup()
  const options = await fingerprintOptions(context, records, tellOn(context))
  const look = await lookAtFingerprints(options)
  if (look === null) return null
  opened.use(look)
  const { fingerprints } = look
  const savepoints = opened.use(openSavepoints(fingerprints, options))
  const held = opened.move()
  return { fingerprints, savepoints, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

/**
 * Opens the savepoints for a change, such as a rewind. Warnings go to stderr; a `UserError` with exit code 6 while a
 * session runs in the work directory.
 */
export async function holdSavepoints(context: CliContext, records: Records): Promise<OpenSavepoints> {
  await using opened = new Cleanup()
  const onWarning = tellOn(context)
  const { fingerprints } = opened.use(await openWorkDirectory(context, records, onWarning, WAIT_FOR_ITS_END))
  const savepoints = opened.use(openSavepoints(fingerprints, { onWarning }))
  const held = opened.move()
  return { fingerprints, savepoints, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

function tellOn({ stderr }: CliContext): (message: string) => void {
  return message => void stderr.write(`codemachine: ${oneLine(message, 2_000)}\n`)
}

/** True if all savepoints of a session have been pruned; false if it made none, or if that cannot be found out. */
export async function areSavepointsGone(
  context: CliContext,
  records: Records,
  { session, changes }: Pick<ReportData, 'session' | 'changes'>,
): Promise<boolean> {
  if (changes.savepoints === 0) return false
  try {
    await using open = await lookAtSavepoints(context, records)
    const kept = (await open?.savepoints.list()) ?? []
    return kept.every(each => each.session !== session)
  } catch {
    return false
  }
}
