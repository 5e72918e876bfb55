import { lstat } from 'node:fs/promises'
import { Cleanup } from '../base/errors.ts'
import type { Records } from '../records/records.ts'
import { type CardLine, cardOf } from '../report/card.ts'
import type { ReportData } from '../report/report-data.ts'
import { commandsHere, commandsOf } from '../report/words.ts'
import { pagePath } from '../report/write.ts'
import { oneLine } from '../words/cells.ts'
import { type Fingerprints, openFingerprintsReadOnly } from '../workspace/fingerprint.ts'
import { openSavepoints, type SavepointWriter } from '../workspace/savepoints/savepoint-writer.ts'
import { fingerprintOptions, openWorkDirectory, WAIT_FOR_ITS_END } from './project.ts'
import type { CliContext } from './world.ts'

/** The savepoints of a work directory, and the means to tell what its files are now. */
export interface OpenSavepoints extends AsyncDisposable {
  fingerprints: Fingerprints
  savepoints: SavepointWriter
}

/** Opens them to look at, also while a session runs here; null if there are none yet. */
export async function lookAtSavepoints(context: CliContext, records: Records): Promise<OpenSavepoints | null> {
  await using opened = new Cleanup()
  const options = await fingerprintOptions(context, records, tellOn(context))
  const look = await openFingerprintsReadOnly(options)
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

/** Whether the savepoints that a session made are no longer kept; not so if that cannot be known. */
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

interface CardOptions {
  context: CliContext
  records: Records
  columns: number
  /** The work directory as it was named on the command line; null if it was not. */
  named: string | null
}

const NARROWEST = 40
const WIDEST = 120

/** The card of a report, with where its page lies if there is one, else how it is made. */
export async function reportCard(
  data: ReportData,
  { context, records, columns, named }: CardOptions,
): Promise<CardLine[]> {
  const { session } = data
  const page = pagePath({ id: session, records: records.sessionFolder(session), directory: records.directory })
  const gone = await areSavepointsGone(context, records, data)
  const commands = { ...commandsHere(data, named), areSavepointsGone: gone }
  const full = (await isFile(page)) ? page : `codemachine report ${session} --open${commands.here}`
  return cardOf(data, {
    commands: commandsOf(data, commands),
    columns: Math.max(NARROWEST, Math.min(WIDEST, columns)),
    full,
    areSavepointsGone: gone,
  })
}

async function isFile(path: string): Promise<boolean> {
  return await lstat(path).then(
    stat => stat.isFile(),
    () => false,
  )
}
