import { foldJournal } from '../session/fold-journal.ts'
import type { Records } from '../session/records.ts'

/**
 * The tree that the files which gates protect are compared with in a session that begins now, if that is an older one
 * than it begins with: the session before it changed some, and was not done, so nobody has agreed to that.
 */
export async function protectFrom(records: Pick<Records, 'sessions' | 'journal'>): Promise<string | null> {
  const newest = (await records.sessions()).at(-1)
  if (newest === undefined) return null
  // What cannot be read is said by those who list it.
  const state = await foldJournal(records.journal(newest), newest).catch(() => null)
  if (state === null || state.ended?.outcome.kind === 'done') return null
  if (state.protectFrom !== null || state.protectedChanged.length === 0) return state.protectFrom
  return state.savepoint?.start ?? null
}
