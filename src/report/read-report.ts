import { readJournal } from '../session/journal.ts'
import { standingOf } from '../session/standing.ts'
import { ReportFold } from './fold-report.ts'
import type { ReportData } from './report-data.ts'

/**
 * The report of a session, by its journal alone; null if that holds no session. Events are read one by one: how much
 * memory it takes does not depend on how many there are.
 * @param runner who runs in the work directory, as of `standingOf`, asked before this is called
 */
export async function readReport(
  journal: string,
  id: string,
  runner: Parameters<typeof standingOf>[1],
): Promise<ReportData | null> {
  const report = new ReportFold(id)
  for await (const event of readJournal(journal)) report.add(event)
  return report.data(state => standingOf(state, runner))
}
