import { UserError } from '../base/errors.ts'
import { foldJournal } from '../session/fold-journal.ts'
import type { Records } from '../session/records.ts'
import type { SessionState } from '../session/state.ts'

/** The sessions of a work directory, the oldest first, and a sentence for each whose journal cannot be read. */
export async function readSessions(records: Records): Promise<{ sessions: SessionState[]; problems: string[] }> {
  const sessions: SessionState[] = []
  const problems: string[] = []
  for (const id of await records.sessions()) {
    try {
      const state = await foldJournal(records.journal(id), id)
      if (state !== null) sessions.push(state)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      problems.push(error.message)
    }
  }
  return { sessions, problems }
}
