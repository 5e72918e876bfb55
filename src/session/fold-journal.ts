import { fold } from './fold.ts'
import { readJournal } from './journal.ts'
import { emptyState, type SessionState } from './state.ts'

/** What the session `id` has come to, by its journal; null if the journal holds no session. */
export async function foldJournal(path: string, id: string): Promise<SessionState | null> {
  let state = emptyState(id)
  for await (const event of readJournal(path)) state = fold(state, event)
  return state.createdAt === 0 ? null : state
}
