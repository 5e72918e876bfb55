import { messageOf } from '../base/errors.ts'
import type { Records } from '../records/records.ts'
import { type CardLine, type CardPlace, cardOf } from '../report/card.ts'
import { commandsHere, commandsOf } from '../report/words.ts'
import { readReport, writeReports } from '../report/write.ts'

/** A session that has ended: `session-ended` is in its journal. */
interface EndedSession {
  records: Pick<Records, 'journal' | 'sessionFolder' | 'directory'>
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
  card(place: Pick<CardPlace, 'columns' | 'isEndShown'>): CardLine[]
}

/** Writes the reports of a session that has ended. Never rejects: a session does not fail for its report. */
export async function reportAtEnd({ records, id, named, resumable }: EndedSession): Promise<EndReport> {
  try {
    const data = await readReport(records.journal(id), id, null)
    if (data === null) return noReport(`The journal of ${id} holds no session.`)
    const commands = commandsHere(data, named)
    const places = { id, records: records.sessionFolder(id), directory: records.directory }
    const { html, problems } = await writeReports(data, places, commands)
    const problem = problems.length === 0 ? null : problems.join(' ')
    // How to go on is said after the card.
    const typed = commandsOf(data, commands).filter(({ command }) => resumable && command !== commands.resume)
    return { html, problem, card: place => cardOf(data, { ...place, commands: typed, full: html }) }
  } catch (error) {
    return noReport(`The report could not be made: ${messageOf(error)}`)
  }
}

function noReport(problem: string): EndReport {
  return { html: null, problem, card: () => [] }
}
