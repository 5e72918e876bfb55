import { UserError } from '../base/errors.ts'
import { foldJournal } from '../session/fold-journal.ts'
import type { Records } from '../session/records.ts'
import type { SessionState } from '../session/state.ts'

/**
 * The newest build that began after this session, if this is a build: the plan in the work directory is that one's now.
 * Null: it has its own. Journals that cannot be read are passed over.
 */
export async function newerBuild(
  records: Pick<Records, 'sessions' | 'journal'>,
  { id, template }: Pick<SessionState, 'id' | 'template'>,
): Promise<string | null> {
  if (template !== 'build') return null
  const ids = await records.sessions()
  for (const later of ids.slice(ids.indexOf(id) + 1).reverse()) {
    if (await isBuild(records.journal(later), later)) return later
  }
  return null
}

async function isBuild(path: string, id: string): Promise<boolean> {
  try {
    return (await foldJournal(path, id))?.template === 'build'
  } catch (error) {
    if (error instanceof UserError) return false
    throw error
  }
}
