import { openRecords } from '../../session/records.ts'
import { formatCount } from '../../ui/format-count.ts'
import { formatDayAndTime } from '../../ui/format-time.ts'
import type { Savepoint } from '../../workspace/savepoint.ts'
import type { Savepoints } from '../../workspace/savepoints.ts'
import type { TreeChanges } from '../../workspace/tree-changes.ts'
import type { CliContext } from '../context.ts'
import { findSession } from '../find-session.ts'
import { lookAtSavepoints } from '../open-savepoints.ts'

export interface SavepointsCommand {
  directory: string
  /** As typed; null for all. */
  session: string | null
  json: boolean
}

/** A savepoint as `savepoints --json` shows it. */
interface ListedSavepoint {
  id: string
  session: string | null
  round: number
  commit: string
  tree: string
  /** ISO 8601 in UTC. */
  at: string
  head: string | null
  /** Against the one before it in its session; null for the first, and of what cannot be read. */
  changes: Omit<TreeChanges, 'paths'> | null
}

/** `codemachine savepoints`: what can be looked at and gone back to, the newest last. */
export async function savepoints(
  context: CliContext,
  { directory, session, json }: SavepointsCommand,
): Promise<number> {
  const records = await openRecords({ ...context, directory })
  const wanted = session === null ? null : await findSession(records, session)
  await using open = await lookAtSavepoints(context, records)
  const all = (await open?.savepoints.list()) ?? []
  const some = all.filter(each => wanted === null || each.session === wanted)
  const listed = open === null ? [] : await withChanges(open.savepoints, some)
  if (json) context.stdout.write(`${JSON.stringify(listed)}\n`)
  else if (listed.length === 0) context.stdout.write(`There are no savepoints ${wanted ? `of ${wanted}` : 'here'}.\n`)
  else context.stdout.write(table(listed))
  return 0
}

async function withChanges(savepoints: Savepoints, some: readonly Savepoint[]): Promise<ListedSavepoint[]> {
  const listed: ListedSavepoint[] = []
  const newest = new Map<string, Savepoint>()
  for (const savepoint of some) {
    const { id, session, round, commit, tree, at, head } = savepoint
    const before = session === null ? undefined : newest.get(session)
    if (session !== null) newest.set(session, savepoint)
    const changes = before === undefined ? null : await changesOf(savepoints, before.tree, tree)
    listed.push({ id, session, round, commit, tree, at: new Date(at).toISOString(), head, changes })
  }
  return listed
}

async function changesOf(savepoints: Savepoints, before: string, after: string): Promise<ListedSavepoint['changes']> {
  const changes = await savepoints.changes(before, after, 0).catch(() => null)
  return changes === null ? null : { files: changes.files, added: changes.added, removed: changes.removed }
}

function table(listed: readonly ListedSavepoint[]): string {
  const width = Math.max(...listed.map(({ id }) => id.length))
  return listed.map(each => `${rowOf(each, width)}\n`).join('')
}

function rowOf({ id, at, session, round, changes }: ListedSavepoint, width: number): string {
  return `${id.padEnd(width)}  ${formatDayAndTime(Date.parse(at))}  ${inWords(session, round, changes)}`
}

function inWords(session: string | null, round: number, changes: ListedSavepoint['changes']): string {
  if (session === null) return 'as a rewind found it'
  if (round === 0) return 'what the session began with'
  if (changes === null) return ''
  const { files, added, removed } = changes
  return files === 0 ? 'nothing changed' : `${formatCount(files, 'file')}  +${added} -${removed}`
}
