import { realpath } from 'node:fs/promises'
import { messageOf, systemErrorCode, UserError } from '../base/errors.ts'
import { readJournal } from '../records/journal.ts'
import { allRecords, type Records, recordsOf } from '../records/records.ts'
import { readRunLock } from '../records/run-lock.ts'
import type { CliContext } from '../tui/cli-context.ts'
import { formatCount } from '../words/numbers.ts'
import { oneLine } from '../words/safe-text.ts'
import { type ListedSession, listSessions, sessionRows } from './commands/look.ts'

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
    if (!json) stdout.write(`${listed.length === 1 ? '' : '\n'}${inWords(each)}`)
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
  const newest = ({ ids }: Found) => ids.at(-1)?.split('_').map(Number) ?? []
  return found.sort((a, b) => {
    const [[dayA = 0, nA = 0], [dayB = 0, nB = 0]] = [newest(a), newest(b)]
    return dayA - dayB || nA - nB
  })
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
  const records = { ...recordsOf(found, directory), sessions: async () => [...newest] }
  const sessions = await listSessions({ records, worktree: null }, context)
  const gone = (await realpath(directory).catch(() => null)) !== directory
  return { directory, gone, sessions, older: ids.length - newest.length }
}

/** What the lock, or the beginning of one of these journals, says, if the records are those of that directory. */
async function directoryOfRecords(
  records: Omit<Records, 'directory'>,
  ids: readonly string[],
  platform: NodeJS.Platform,
): Promise<string | null> {
  const isOf = (directory: string | undefined): directory is string =>
    directory !== undefined && recordsOf(records, directory).key === records.key
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
    for await (const event of readJournal(journal)) {
      return event.type === 'session-created' ? event.directory : undefined
    }
  } catch (error) {
    // It is named where the sessions are listed.
    if (!(error instanceof UserError)) throw error
  }
  return undefined
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

function inWords({ directory, gone, sessions, older }: ListedDirectory): string {
  const left = older === 0 ? '' : `  and ${formatCount(older, 'older one')}\n`
  const rows = sessionRows(sessions).replace(/^(?=.)/gm, '  ')
  return `${oneLine(directory, 1000)}${gone ? ' (it is gone)' : ''}\n${left}${rows}`
}
