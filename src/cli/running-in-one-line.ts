import { fold } from '../session/fold.ts'
import { readJournal } from '../session/journal.ts'
import type { Records } from '../session/records.ts'
import type { LockHolder } from '../session/run-lock.ts'
import { standingOf } from '../session/standing.ts'
import { emptyState } from '../session/state.ts'
import { statusLine } from '../ui/status-line.ts'
import { latestSession } from './find-session.ts'
import { boardPlaceOf, readTaskBoard } from './screen/task-watch.ts'

/** The session that the runner is at, as `statusLine` says it; null if it is at none just now. */
export async function runningInOneLine(records: Records, runner: LockHolder, now: number): Promise<string | null> {
  const id = await latestSession(records, () => {})
  if (id === null) return null
  let state = emptyState(id)
  for await (const event of readJournal(records.journal(id))) state = fold(state, event)
  if (state.createdAt === 0 || standingOf(state, runner) !== 'running') return null
  return statusLine(state, await readTaskBoard(boardPlaceOf(records, id, () => state)), now)
}
