import { Cleanup } from '../base/cleanup.ts'
import type { Records } from '../session/records.ts'
import { oneLine } from '../ui/safe-text.ts'
import { type Fingerprints, lookAtFingerprints } from '../workspace/fingerprint.ts'
import { openSavepoints, type Savepoints } from '../workspace/savepoints.ts'
import type { CliContext } from './context.ts'
import { fingerprintOptions, openWorkDirectory, WAIT_FOR_ITS_END } from './open-work-directory.ts'

/** The savepoints of a work directory, and the means to tell what its files are now. */
export interface OpenSavepoints extends AsyncDisposable {
  fingerprints: Fingerprints
  savepoints: Savepoints
}

/** Opens them to look at, also while a session runs here; null if there are none yet. */
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

/** Opens them for a change; a `UserError` with exit code 6 while a session runs here. */
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
