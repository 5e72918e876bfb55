import { messageOf } from '../base/errors.ts'
import type { Records } from '../records/records.ts'
import type { ReportData } from '../report/report-data.ts'
import { commandsHere } from '../report/words.ts'
import { readReport, writeReports } from '../report/write.ts'

/** A session that has ended: `session-ended` is in its journal. */
export interface ReportedSession {
  records: Pick<Records, 'journal' | 'sessionFolder' | 'directory'>
  id: string
  /** The work directory as it was named on the command line; null if it was not. */
  named: string | null
}

/** What has been written of it. `data`: the report; `html`: where the page lies; `problem`: what failed, a sentence. */
export interface EndReports {
  data: ReportData | null
  html: string | null
  problem: string | null
}

/**
 * Writes the reports of a session that has ended. Never rejects: a session does not fail for its report.
 * @param drawPage throws what keeps the page from being drawn; left out: it is drawn
 */
export async function writeEndReports(
  { records, id, named }: ReportedSession,
  drawPage?: () => Promise<void>,
): Promise<EndReports> {
  try {
    const data = await readReport(records.journal(id), id, null)
    if (data === null) return { data, html: null, problem: `The journal of ${id} holds no session.` }
    const places = { id, records: records.sessionFolder(id), directory: records.directory }
    const { html, problems } = await writeReports(data, places, commandsHere(data, named), drawPage)
    return { data, html, problem: problems.length === 0 ? null : problems.join(' ') }
  } catch (error) {
    return { data: null, html: null, problem: `The report could not be made: ${messageOf(error)}` }
  }
}
