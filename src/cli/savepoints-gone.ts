import type { ReportData } from '../report/report-data.ts'
import type { Records } from '../session/records.ts'
import type { CliContext } from './context.ts'
import { lookAtSavepoints } from './open-savepoints.ts'

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
