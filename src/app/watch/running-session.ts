import { fold } from '../../core/state/fold.ts'
import { emptyState, sessionStatusOf } from '../../core/state/state.ts'
import { readJournal } from '../../records/journal.ts'
import type { Records } from '../../records/records.ts'
import type { LockHolder } from '../../records/run-lock.ts'
import { statusLine } from '../../words/status.ts'
import { latestSession } from '../find.ts'
import { boardPlaceOf, readTaskBoard } from './task-watch.ts'

/** The session that the runner is at, as `statusLine` says it; null if it is at none just now. */
export async function runningInOneLine(records: Records, runner: LockHolder, now: number): Promise<string | null> {
  const id = await latestSession(records, () => {})
  if (id === null) return null
  let state = emptyState(id)
  for await (const event of readJournal(records.journal(id))) state = fold(state, event)
  if (state.createdAt === 0 || sessionStatusOf(state, runner) !== 'running') return null
  return statusLine(state, await readTaskBoard(boardPlaceOf(records, id, () => state)), now)
}
