import { lstat } from 'node:fs/promises'
import { messageOf } from '../base/errors.ts'
import type { Records } from '../records/records.ts'
import { type CardLine, type CardOptions, cardOf } from '../report/card.ts'
import type { ReportData } from '../report/report-data.ts'
import { asSentence, commandsHere, commandsOf } from '../report/words.ts'
import { pagePath, readReport, writeReports } from '../report/write.ts'
import { areSavepointsGone } from './savepoints.ts'
import type { World } from './world.ts'

/** A session that has ended: `session-ended` is in its journal. */
interface EndedSession {
  records: Pick<Records, 'journal' | 'sessionFolder' | 'directory' | 'templates'>
  id: string
  /** The work directory as it was named on the command line; null if it was not. */
  named: string | null
  /** Whether commands that are typed later find the session. */
  resumable: boolean
}

/** What a person is shown at the end. */
export interface EndReport {
  /** Where the page lies; null if it could not be written. */
  html: string | null
  /** What could not be written, a sentence; null if all was. */
  problem: string | null
  /** The card for a terminal of so many columns; none if there is no report. */
  card(place: Pick<CardOptions, 'columns' | 'isEndShown'>): CardLine[]
}

/** Writes the reports of a session that has ended. Never rejects: a session does not fail for its report. */
export async function reportAtEnd({ records, id, named, resumable }: EndedSession): Promise<EndReport> {
  try {
    // Who ran it has looked at all of a snapshot that another process has left.
    const data = await readReport(records, id, null, 'ends')
    if (data === null) return noReport(`The journal of ${id} holds no session.`)
    const commands = commandsHere(data, named)
    const places = { id, records: records.sessionFolder(id), directory: records.directory }
    const { html, problems } = await writeReports(data, places, commands)
    const problem = problems.length === 0 ? null : problems.join(' ')
    // How to go on is said after the card.
    const typed = commandsOf(data, commands).filter(({ command }) => resumable && command !== commands.resume)
    return { html, problem, card: place => cardOf(data, { ...place, commands: typed, full: html }) }
  } catch (error) {
    return noReport(asSentence(`The report could not be made: ${messageOf(error)}`))
  }
}

function noReport(problem: string): EndReport {
  return { html: null, problem, card: () => [] }
}

const NARROWEST = 40
const WIDEST = 120

/** The card of a report for a person who asks for it. It names the page's path, or the command that makes the page if there is none. */
export async function reportCard(
  data: ReportData,
  {
    world,
    records,
    columns,
    named,
    onWarning,
  }: {
    world: World
    records: Records
    columns: number
    /** The work directory as it was named on the command line; null if it was not. */
    named: string | null
    onWarning: (warning: string) => void
  },
): Promise<CardLine[]> {
  const { session } = data
  const page = pagePath({ id: session, records: records.sessionFolder(session), directory: records.directory })
  const gone = await areSavepointsGone(world, records, data, onWarning)
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
