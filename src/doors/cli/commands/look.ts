import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../../base/errors.ts'
import { PROJECT_FILE } from '../../../core/rules/notices.ts'
import { fold } from '../../../core/state/fold.ts'
import {
  elapsedMs,
  emptyState,
  isCall,
  type SessionState,
  type SessionStatus,
  sessionStatusOf,
  sessionTokens,
} from '../../../core/state/state.ts'
import { isItself, pathExists } from '../../../platform/files.ts'
import type { SessionsPlace } from '../../../project/find.ts'
import { personFile } from '../../../project/settings/settings-file.ts'
import { readStatus } from '../../../project/watch/status.ts'
import { findSessionAround, placesAround } from '../../../project/worktrees/find.ts'
import { placesOf } from '../../../project/world.ts'
import {
  foldJournal,
  followJournal,
  hasEvents,
  lockOfSession,
  readJournal,
  readSessions,
} from '../../../session/records/journal.ts'
import {
  allRecords,
  bySessionId,
  openRecords,
  type Records,
  recordsOf,
  repositoryOfCopy,
} from '../../../session/records/records.ts'
import { askWhoRuns, lookout, type Runner } from '../../../session/records/run-lock.ts'
import {
  formatCount,
  formatDayAndTime,
  formatDuration,
  formatTokens,
  shortNumber,
} from '../../../tell/words/numbers.ts'
import { activityOf } from '../../../tell/words/outcome.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import { type SessionReport, standingInWords, statusLines } from '../../../tell/words/status.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { plainView } from '../../screen/plain-view.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, wantsColour, wantsScreen } from '../flags.ts'
import { inColumns, jsonView, PacedOutput, sayWorktree } from '../output.ts'
import { warnOn } from '../warn-on.ts'

const GOAL_CHARS = 80

/** A session as `list --json` shows it. */
interface ListedSession extends Pick<SessionReport, 'id' | 'goal' | 'standing' | 'activity' | 'outcome' | 'tokens'> {
  directory: string
  /** The worktree of the checkout that it is of; null: none, it is of the directory itself. */
  worktree: string | null
  /** Of a call: the name of its template. */
  template?: string
  rounds: number
  durationMs: number
  /** ISO 8601 in UTC. */
  createdAt: string
}

/**
 * `codemachine list`: the sessions of a work directory and its worktrees, the newest last; those that cannot be read are named on
 * stderr. With `all` those of all directories.
 */
export async function list(context: CliContext, { all, ...flags }: LookFlags & { all?: true }): Promise<number> {
  if (all) return await listAll(context, flags)
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const say = warnOn(context)
  const places = await placesAround(records, say)
  const sessions: ListedSession[] = []
  for (const place of places) sessions.push(...(await listSessions(place, context)))
  // Of one place they stand by their ids.
  if (places.length > 1) sessions.sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))
  if (flags.json) context.stdout.write(`${JSON.stringify(sessions)}\n`)
  else context.stdout.write(sessions.length === 0 ? await none(records) : await sessionRows(context, sessions))
  return 0
}

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
async function listAll(context: CliContext, { json = false }: { json?: boolean }): Promise<number> {
  const { stdout, signal } = context
  const say = warnOn(context)
  const found = await directoriesWithSessions(context, say)
  const shown = found.slice(-MOST_DIRECTORIES)
  const listed: ListedDirectory[] = []
  for (const { records, ids } of shown) {
    if (signal.aborted) return 130
    const each = await orProblem(records.folder, say, () => readDirectory(context, records, ids, say))
    if (each === null) continue
    listed.push(each)
    if (!json) stdout.write(`${listed.length === 1 ? '' : '\n'}${await directoryInWords(context, each)}`)
  }
  const left = found.length - shown.length
  if (left > 0) say(`${left} more with older sessions are not shown.`)
  if (json) stdout.write(`${JSON.stringify(listed)}\n`)
  else if (listed.length === 0) stdout.write('No sessions yet. Start one with: codemachine "…"\n')
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
  const { directoryOfRecords } = await import('../../../project/environment/directory-of-records.ts')
  const directory = await directoryOfRecords(found, newest, context.platform)
  if (directory === null) {
    say(`${found.folder} has sessions, but none of the newest names its directory.`)
    return null
  }
  // Where nobody follows the fleet just now, nothing here says how its session stands: `fleet list` does.
  if (repositoryOfCopy({ directory }) !== null) return null
  const records = { ...recordsOf(found, directory), sessions: async () => [...newest] }
  const sessions = await listSessions({ records, worktree: null }, context)
  const gone = !isItself(directory, await realpath(directory).catch(() => null))
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

async function directoryInWords(
  context: CliContext,
  { directory, gone, sessions, older }: ListedDirectory,
): Promise<string> {
  const left = older === 0 ? '' : `  and ${formatCount(older, 'older one')}\n`
  const rows = sessions.length === 0 ? '' : await sessionRows(context, sessions, '  ')
  const where = `${oneLine(directory, 1000)}${gone ? ' (it is gone)' : ''}`
  const head = wantsColour(context) ? (await import('../styled.ts')).headed(context, where, 'strong') : where
  return `${head}\n${left}${rows}`
}

/** Sessions in columns, a line each, behind `indent`; with heads where stdout is coloured. */
async function sessionRows(context: CliContext, sessions: readonly ListedSession[], indent = ''): Promise<string> {
  if (wantsColour(context)) {
    const [{ tableLines }, { roleOfStanding }] = await Promise.all([
      import('../styled.ts'),
      import('../../screen/blocks/layout.ts'),
    ])
    const cells = sessions.map(session => {
      const [id = '', begun = '', state = ''] = rowOf(session)
      const { rounds, tokens, durationMs } = session
      const numbers = [String(rounds), shortNumber(tokens), formatDuration(durationMs)]
      return [
        [id, 'accent'],
        // The year stands in the name of the session.
        [begun.slice('2026-'.length), 'dim'],
        [state, roleOfStanding(session)],
        ...numbers.map(text => [text, 'plain'] as const),
        [oneLine(titleOf(session), MOST_TITLE), 'plain'],
      ] as const
    })
    return tableLines(context, HEADS, cells, indent)
  }
  return inColumns(sessions.map(rowOf))
    .map(line => `${indent}${line}\n`)
    .join('')
}

const HEADS = [
  { head: 'session' },
  { head: 'begun' },
  { head: 'state' },
  { head: 'rounds', isNumber: true, isSpare: true },
  { head: 'tokens', isNumber: true, isSpare: true },
  { head: 'time', isNumber: true, isSpare: true },
  { head: 'about' },
] as const

/** Of what a terminal cuts to its own width. */
const MOST_TITLE = 500

async function none(records: Records): Promise<string> {
  return (await records.sessions()).length === 0
    ? `No sessions in ${oneLine(records.directory, 500)} yet. Start one with: codemachine "…"\n${await aboutProjects(records)}`
    : `No session in ${records.directory} can be read.\n`
}

/** Where to look in a workspace, whose sessions run in its projects; a line, or nothing. */
async function aboutProjects({ directory }: Pick<Records, 'directory'>): Promise<string> {
  const hasProjects = await pathExists(join(directory, 'projects', '.gitignore'))
  return hasProjects ? 'Projects of teams in projects/: codemachine team list\n' : ''
}

/** The sessions of one place that can be read, by their ids. */
async function listSessions({ records, worktree }: SessionsPlace, context: CliContext): Promise<ListedSession[]> {
  const { platform, clock } = context
  // Before the journals: a session that ends while they are read must not look cut off.
  const say = warnOn(context)
  const runner = await askWhoRuns(records.lock, platform, say)
  const { sessions, problems } = await readSessions(records)
  for (const problem of problems) say(problem)
  const listed = sessions.map(async begun => {
    const { state, standing } = isCall(begun)
      ? await callNow(records, begun, (path: string) => askWhoRuns(path, platform, say))
      : { state: begun, standing: sessionStatusOf(begun, runner) }
    return {
      id: state.id,
      directory: records.directory,
      worktree,
      ...(isCall(state) ? { template: state.template } : {}),
      goal: state.goal,
      standing,
      activity: standing === 'running' ? activityOf(state) : null,
      outcome: state.ended?.outcome ?? null,
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      durationMs: elapsedMs(state, standing, clock.now()),
      createdAt: new Date(state.createdAt).toISOString(),
    }
  })
  return await Promise.all(listed)
}

/** A call, and whether it runs; it may have come to its end since it was read. */
async function callNow(
  records: Records,
  begun: SessionState,
  ask: (lock: string) => Promise<Runner>,
): Promise<{ state: SessionState; standing: SessionStatus }> {
  if (begun.ended !== null) return { state: begun, standing: 'ended' }
  const runner = await ask(records.callLock(begun.id))
  const state = runner === null ? ((await foldJournal(records, begun.id, 'ends')) ?? begun) : begun
  return { state, standing: sessionStatusOf(state, runner) }
}

function rowOf(session: ListedSession): string[] {
  return [
    session.worktree === null ? session.id : `${session.worktree}:${session.id}`,
    formatDayAndTime(Date.parse(session.createdAt)),
    standingInWords(session),
    formatCount(session.rounds, 'round'),
    formatTokens(session.tokens),
    formatDuration(session.durationMs),
    oneLine(titleOf(session), GOAL_CHARS),
  ]
}

/** A call is told from sessions by the name of its template. */
function titleOf({ goal, template }: ListedSession): string {
  const title = titleLine(goal, GOAL_CHARS)
  return template === undefined ? title : `${template}: ${title}`
}

/** `codemachine status`: what runs in a work directory or its worktrees, how far its session is, and what waits. */
export async function status(context: CliContext, flags: LookFlags): Promise<number> {
  const { stdout, clock } = context
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const say = warnOn(context)
  const report = await readStatus(context, await placesAround(records, say), say)
  if (flags.json) stdout.write(`${JSON.stringify(report)}\n`)
  else {
    const plain = statusLines(report, clock.now())
    const lines = wantsColour(context) ? (await import('../styled.ts')).paintedStatus(context, plain, report) : plain
    stdout.write(`${lines.join('\n')}\n${await aboutSettings(context, records)}${await aboutProjects(report)}`)
  }
  return 0
}

/** What is wrong with the settings that a run would begin with here, a line; empty if nothing is. */
async function aboutSettings(context: CliContext, { directory }: Records): Promise<string> {
  const files = [personFile(context), join(directory, PROJECT_FILE)]
  if (!files.some(file => existsSync(file))) return ''
  const { settingsOf } = await import('../../../project/open-run.ts')
  try {
    await settingsOf(context, directory, {})
    return ''
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return `  settings ${error.message}\n`
  }
}

export interface LogsFlags extends LookFlags {
  /** Go on until the session ends, or nobody runs it any more. */
  follow?: boolean
}

/** `codemachine logs`: what happened in a session, through the same views as while it runs. */
export async function logs(
  context: CliContext,
  session: string | undefined,
  { follow = false, json = false, ...place }: LogsFlags,
): Promise<number> {
  const { records, id } = await sessionHere(context, session, place)
  const path = records.journal(id)
  const { platform, clock } = context
  const look = lookout(await lockOfSession(records, id), { platform, clock, onProblem: warnOn(context) })
  const isLeft = async () => (await look()) === null
  if (!(await hasEvents(path)) && (!follow || (await isLeft()))) {
    throw new UserError('CM0607', `${path} has no session.`)
  }
  const isOver = follow ? async ({ ended }: SessionState) => ended !== null || (await isLeft()) : null
  await showEvents(context, { records, id }, { json, isOver })
  return 0
}

/**
 * Writes what happened in a session, or happens until it is over.
 * @param isOver whether nothing more comes of a session that has come to this; null: what is written is all that is wanted
 */
export async function showEvents(
  context: CliContext,
  { records, id }: { records: Pick<Records, 'journal' | 'templates'>; id: string },
  { json, isOver }: { json: boolean; isOver: ((state: SessionState) => Promise<boolean>) | null },
): Promise<void> {
  const { clock, stdout } = context
  const path = records.journal(id)
  using output = new PacedOutput(stdout, context.signal)
  const write = (text: string) => output.write(text)
  const view = json ? jsonView(write) : plainView(write, { colour: wantsColour(context) })
  let state = emptyState(id)
  const events =
    isOver === null
      ? readJournal(path)
      : followJournal(path, { clock, signal: output.ended, isOver: () => isOver(state) })
  for await (const event of events) {
    state = fold(state, event, records.templates)
    view.event(event, state)
    await output.ready()
    if (output.ended.aborted) break
  }
}

/** `codemachine watch`: a session that another process runs, as it happens. Without a terminal: in plain lines. */
export async function watch(context: CliContext, session: string | undefined, flags: DirectoryFlags): Promise<number> {
  if (!wantsScreen(context, {})) return await logs(context, session, { ...flags, follow: true })
  const { records, id } = await sessionHere(context, session, flags)
  const { openWatchScreen } = await import('../../screen/host/watch-screen.ts')
  return await openWatchScreen(context, records, id)
}

/** The session that is meant; without a word the latest. That it is one of a worktree is said. */
async function sessionHere(
  context: CliContext,
  session: string | undefined,
  flags: DirectoryFlags,
): Promise<{ records: Records; id: string }> {
  const own = await openRecords(placesOf(context, directoryOf(context, flags)))
  const onProblem = warnOn(context)
  const options = { platform: context.platform, onProblem, replays: 'counted' } as const
  const { records, id, worktree } = await findSessionAround(own, session ?? null, options)
  sayWorktree(context, { records, id, worktree })
  return { records, id }
}
