import { UserError } from '../../base/errors.ts'
import { readBoundedText } from '../../platform/files.ts'
import { type Records, recordsOf } from '../../session/records/records.ts'
import { readRunLock } from '../../session/records/run-lock.ts'

const MOST_BYTES = 64 * 1024

/**
 * Returns the real path of the work directory of records: from the records themselves, their lock, or the beginning of one
 * of these journals. The records' key must be that of the directory. Null if none names it.
 */
export async function directoryOfRecords(
  records: Omit<Records, 'directory'>,
  ids: readonly string[],
  platform: NodeJS.Platform,
): Promise<string | null> {
  const isOf = (directory: string | undefined): directory is string =>
    directory !== undefined && recordsOf(records, directory).key === records.key
  const said = await readBoundedText(records.directoryFile, MOST_BYTES)
  if (typeof said === 'object' && 'text' in said && isOf(said.text.trim())) return said.text.trim()
  const lock = await readRunLock(records.lock, platform)
  if ('holder' in lock && isOf(lock.holder.directory)) return lock.holder.directory
  for (const id of [...ids].reverse()) {
    const directory = await createdIn(records.journal(id))
    if (isOf(directory)) return directory
  }
  return null
}

async function createdIn(journal: string): Promise<string | undefined> {
  try {
    const { firstEvent } = await import('../../session/records/journal.ts')
    const first = await firstEvent(journal)
    return first?.type === 'session-created' ? first.directory : undefined
  } catch (error) {
    // The list of sessions reports it.
    if (!(error instanceof UserError)) throw error
    return undefined
  }
}
