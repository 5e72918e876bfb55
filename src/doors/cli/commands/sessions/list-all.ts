import { realpath } from 'node:fs/promises'
import { messageOf, systemErrorCode, UserError } from '../../../../base/errors.ts'
import { directoryOfRecords } from '../../../../project/environment/directory-of-records.ts'
import {
  allRecords,
  bySessionId,
  type Records,
  recordsOf,
  repositoryOfCopy,
} from '../../../../session/records/records.ts'
import { formatCount } from '../../../../tell/words/numbers.ts'
import { oneLine } from '../../../../tell/words/safe-text.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { wantsColour } from '../../flags.ts'
import { type ListedSession, listSessions, sessionRows } from '../look.ts'

/** How many sessions of each directory are shown, and of how many directories. */
const NEWEST = 5
const MOST_DIRECTORIES = 100

/** A directory as `list --all --json` shows it. */
interface ListedDirectory {
  /** The real path that it had when its newest session began. */
  directory: string
  /** Whether there is no such directory any more. */
  gone: boolean
  /** The newest, the oldest of them first. */
  sessions: readonly ListedSession[]
  /** How many older ones there are. */
  older: number
}

/**
 * `codemachine list --all`: the newest sessions of every directory of this person's on this machine, that with the newest last.
 * What cannot be read is named on stderr, and hides nothing else.
 */
export async function listAll(context: CliContext, { json = false }: { json?: boolean }): Promise<number> {
  const { stdout, stderr, signal } = context
  const say = (problem: string) => void stderr.write(`codemachine: ${oneLine(problem, 2000)}\n`)
  const found = await directoriesWithSessions(context, say)
  const shown = found.slice(-MOST_DIRECTORIES)
  const listed: ListedDirectory[] = []
  for (const { records, ids } of shown) {
    if (signal.aborted) return 130
    const each = await orProblem(records.folder, say, () => readDirectory(context, records, ids, say))
    if (each === null) continue
    listed.push(each)
    if (!json) stdout.write(`${listed.length === 1 ? '' : '\n'}${await inWords(context, each)}`)
  }
  const left = found.length - shown.length
  if (left > 0) say(`${left} more, whose sessions are older, are not shown.`)
  if (json) stdout.write(`${JSON.stringify(listed)}\n`)
  else if (listed.length === 0) stdout.write('There are no sessions yet. Start one with: codemachine "…"\n')
  return 0
}

type Found = { records: Omit<Records, 'directory'>; ids: readonly string[] }

/** The records that have sessions, those with the newest last. */
async function directoriesWithSessions(context: CliContext, say: (problem: string) => void): Promise<Found[]> {
  const found: Found[] = []
  for (const records of await allRecords(context)) {
    const ids = await orProblem(records.folder, say, () => records.sessions())
    if (ids !== null && ids.length > 0) found.push({ records, ids })
  }
  return found.sort((a, b) => bySessionId(a.ids.at(-1) ?? '', b.ids.at(-1) ?? ''))
}

async function readDirectory(
  context: CliContext,
  found: Omit<Records, 'directory'>,
  ids: readonly string[],
  say: (problem: string) => void,
): Promise<ListedDirectory | null> {
  const newest = ids.slice(-NEWEST)
  const directory = await directoryOfRecords(found, newest, context.platform)
  if (directory === null) {
    say(`${found.folder} has sessions, and none of the newest says which directory they are of.`)
    return null
  }
  // Where nobody follows the fleet just now, nothing here says how its session stands: `fleet list` does.
  if (repositoryOfCopy({ directory }) !== null) return null
  const records = { ...recordsOf(found, directory), sessions: async () => [...newest] }
  const sessions = await listSessions({ records, worktree: null }, context)
  const gone = (await realpath(directory).catch(() => null)) !== directory
  return { directory, gone, sessions, older: ids.length - newest.length }
}

/** Null, and a sentence, where the system refuses. */
async function orProblem<T>(folder: string, say: (problem: string) => void, read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
    // A file that lies there is no records of anything.
    if (systemErrorCode(error) !== 'ENOTDIR') say(`${folder} cannot be read: ${messageOf(error)}`)
    return null
  }
}

async function inWords(context: CliContext, { directory, gone, sessions, older }: ListedDirectory): Promise<string> {
  const left = older === 0 ? '' : `  and ${formatCount(older, 'older one')}\n`
  const rows = sessions.length === 0 ? '' : await sessionRows(context, sessions, '  ')
  const where = `${oneLine(directory, 1000)}${gone ? ' (it is gone)' : ''}`
  const head = wantsColour(context) ? (await import('../../styled.ts')).headed(context, where, 'strong') : where
  return `${head}\n${left}${rows}`
}
