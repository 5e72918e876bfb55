import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError } from '../base/errors.ts'
import type { Records } from '../session/records.ts'
import { oneLine } from '../ui/safe-text.ts'

/**
 * The session that a person means: by its id, by its counter alone (`1` for `20261120_1`), or by any beginning or end
 * that only one has; without a word the latest. A `UserError` that names those near if it is none or not one.
 */
export async function findSession(records: Records, wanted: string | null): Promise<string> {
  const ids = await records.sessions()
  if (wanted === null) {
    const latest = await latestSession(records)
    if (latest !== null) return latest
  }
  if (wanted === null || ids.length === 0) {
    throw new UserError(`There are no sessions in ${records.directory} yet.`, { hint: 'Start one: codemachine "…"' })
  }
  const matches = matching(ids, wanted)
  const [match] = matches
  if (match !== undefined && matches.length === 1) return match
  const shown = oneLine(wanted, 60)
  if (match === undefined) {
    throw new UserError(`There is no session "${shown}" in ${records.directory}.`, {
      hint: `${ids.length > MOST_SHOWN ? 'The newest are' : 'There are'}: ${some(ids)}`,
    })
  }
  throw new UserError(`"${shown}" may mean ${matches.length} sessions; use more of the id.`, { hint: some(matches) })
}

/** The session that was written to last: the one that runs, if one does. Null if there is none. */
export async function latestSession(records: Records): Promise<string | null> {
  let latest: { id: string; at: number } | null = null
  for (const id of await records.sessions()) {
    const at = await writtenAt(join(records.sessionFolder(id), 'journal.ndjson'))
    if (at !== null && at >= (latest?.at ?? 0)) latest = { id, at }
  }
  return latest?.id ?? null
}

const MOST_SHOWN = 8

function matching(ids: readonly string[], wanted: string): readonly string[] {
  if (ids.includes(wanted)) return [wanted]
  const byCounter = ids.filter(id => id.endsWith(`_${wanted.replace(/^_/, '')}`))
  if (byCounter.length > 0) return byCounter
  return ids.filter(id => id.startsWith(wanted) || (wanted.includes('_') && id.endsWith(wanted)))
}

function some(ids: readonly string[]): string {
  return `${ids.length > MOST_SHOWN ? '…, ' : ''}${ids.slice(-MOST_SHOWN).join(', ')}`
}

/** When a file was last changed, Unix time in ms; null if there is none. */
async function writtenAt(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}
