import { lstat } from 'node:fs/promises'
import { type CardLine, cardOf } from '../report/card.ts'
import { commandsOf } from '../report/report-commands.ts'
import type { ReportData } from '../report/report-data.ts'
import { pagePath } from '../report/write-reports.ts'
import type { Records } from '../session/records.ts'
import type { CliContext } from './context.ts'
import { commandsHere } from './report-commands-here.ts'
import { areSavepointsGone } from './savepoints-gone.ts'

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
