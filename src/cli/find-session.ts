import { lstat } from 'node:fs/promises'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { holdsEvents, problemOfJournal } from '../session/journal.ts'
import type { Records } from '../session/records.ts'
import { oneLine } from '../ui/safe-text.ts'

/**
 * The session that a person means: by its id, by its counter alone (`1` for `20261120_1`), or by any beginning or end
 * that only one has; without a word the latest. A `UserError` that names those near if it is none or not one.
 * @param onProblem as of `latestSession`
 */
export async function findSession(
  records: Records,
  wanted: string | null,
  onProblem: (problem: string) => void = () => {},
): Promise<string> {
  const ids = await records.sessions()
  if (ids.length === 0) {
    throw new UserError(`There are no sessions in ${records.directory} yet.`, { hint: 'Start one: codemachine "…"' })
  }
  if (wanted === null) return await latestOrRefuse(records, onProblem)
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

async function latestOrRefuse(records: Records, onProblem: (problem: string) => void): Promise<string> {
  const problems: string[] = []
  const latest = await latestSession(records, problem => problems.push(problem))
  const last = latest === null ? problems.pop() : undefined
  for (const problem of problems) onProblem(problem)
  if (latest !== null) return latest
  throw new UserError(last ?? `There is no session in ${records.directory} that can be read.`)
}

/**
 * The session that was written to last: the one that runs, if one does. Null if there is none.
 * @param onProblem told a sentence for each that was written to later, and cannot be read; if there is none, for each
 * that holds nothing, too
 */
export async function latestSession(records: Records, onProblem: (problem: string) => void): Promise<string | null> {
  const written: { path: string; id: string; at: number }[] = []
  for (const id of await records.sessions()) {
    const path = records.journal(id)
    const at = await writtenAt(path)
    if (at !== null) written.push({ path, id, at })
  }
  // Of two that were written to at the same moment the one that was created last.
  const empty: string[] = []
  for (const { path, id } of written.reverse().sort((a, b) => b.at - a.at)) {
    const problem = await problemOfJournal(path)
    if (problem !== null) onProblem(problem)
    else if (await holdsEvents(path)) return id
    else empty.push(path)
  }
  for (const path of empty) onProblem(`${path} holds no session.`)
  return null
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

/** When a file, or a link, was last changed, Unix time in ms; null if there is none. */
async function writtenAt(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).mtimeMs
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}
