import { join } from 'node:path'
import { findSessionAround, latestSession, newestSessions, placesAround, type SessionsPlace } from '../../app/find.ts'
import { redactorOfProject } from '../../app/secrets/redactor.ts'
import { boardPlaceOf, readTaskBoard } from '../../app/watch/task-watch.ts'
import { placesOf } from '../../app/world.ts'
import { UserError } from '../../base/errors.ts'
import type { Redactor } from '../../base/redactor.ts'
import { forecastFor } from '../../core/rules/forecast.ts'
import { fold } from '../../core/state/fold.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import {
  elapsedMs,
  emptyState,
  isCall,
  type SessionState,
  type SessionStatus,
  sessionStatusOf,
  sessionTokens,
  tokensOfProviders,
} from '../../core/state/state.ts'
import { pathExists } from '../../platform/files.ts'
import {
  foldJournal,
  followJournal,
  hasEvents,
  lastEvents,
  lockOfSession,
  readJournal,
  readSessions,
} from '../../records/journal.ts'
import { openQueue } from '../../records/queue.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { askWhoRuns, type LockHolder } from '../../records/run-lock.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { plainView } from '../../tui/plain-view.ts'
import { describeEvent } from '../../words/event.ts'
import { formatCount, formatDayAndTime, formatDuration, formatTokens } from '../../words/numbers.ts'
import { activityOf, describeOutcome } from '../../words/outcome.ts'
import { boardNow, tasksOfBoard } from '../../words/plan.ts'
import { oneLine, titleLine } from '../../words/safe-text.ts'
import {
  buildReport,
  decisionReport,
  type PlaceReport,
  proofReport,
  type SessionReport,
  type StatusReport,
  statusLines,
} from '../../words/status.ts'
import { workReport } from '../../words/work.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, wantsColour, wantsScreen } from '../flags.ts'
import { inColumns, jsonView, PacedOutput, sayWorktree } from '../output.ts'

const GOAL_CHARS = 80

const IN_WORDS: Record<SessionStatus, string> = {
  running: 'running',
  'cut-off': 'cut off',
  ended: 'ended',
  unknown: 'not ended',
}

/** A session as `list --json` shows it. */
export interface ListedSession
  extends Pick<SessionReport, 'id' | 'goal' | 'standing' | 'activity' | 'outcome' | 'tokens'> {
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
  if (all) return await (await import('../list-all.ts')).listAll(context, flags)
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const say = sayOn(context)
  const places = await placesAround(records, say)
  const sessions: ListedSession[] = []
  for (const place of places) sessions.push(...(await listSessions(place, context)))
  // Of one place they stand by their ids.
  if (places.length > 1) sessions.sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))
  if (flags.json) context.stdout.write(`${JSON.stringify(sessions)}\n`)
  else context.stdout.write(sessions.length === 0 ? await none(records) : sessionRows(sessions))
  return 0
}

/** Sessions in columns, a line each. */
export function sessionRows(sessions: readonly ListedSession[]): string {
  return inColumns(sessions.map(rowOf))
    .map(line => `${line}\n`)
    .join('')
}

async function none(records: Records): Promise<string> {
  return (await records.sessions()).length === 0
    ? `There are no sessions in ${records.directory} yet. Start one with: codemachine "…"\n${await aboutProjects(records)}`
    : `There is no session in ${records.directory} that can be read.\n`
}

function sayOn({ stderr }: CliContext): (problem: string) => void {
  return problem => void stderr.write(`codemachine: ${problem}\n`)
}

/** Where to look in a workspace, whose sessions run in its projects; a line, or nothing. */
async function aboutProjects({ directory }: Pick<Records, 'directory'>): Promise<string> {
  const hasProjects = await pathExists(join(directory, 'projects', '.gitignore'))
  return hasProjects ? 'What teams have made in projects/: codemachine team list\n' : ''
}

/** The sessions of one place that can be read, by their ids. */
export async function listSessions(
  { records, worktree }: SessionsPlace,
  context: CliContext,
): Promise<ListedSession[]> {
  const { platform, clock } = context
  // Before the journals: a session that ends while they are read must not look cut off.
  const say = sayOn(context)
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
  ask: (lock: string) => ReturnType<typeof askWhoRuns>,
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
    inWords(session),
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

function inWords({ outcome, activity, standing }: ListedSession): string {
  if (outcome !== null) return describeOutcome(outcome).short
  if (activity === 'deciding') return 'waits for you'
  return activity === 'paused' ? 'paused' : IN_WORDS[standing]
}

/** `codemachine status`: what runs in a work directory or its worktrees, how far its session is, and what waits. */
export async function status(context: CliContext, flags: LookFlags): Promise<number> {
  const { stdout, clock } = context
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const report = await readStatus(context, await placesAround(records, sayOn(context)))
  if (flags.json) stdout.write(`${JSON.stringify(report)}\n`)
  else stdout.write(`${statusLines(report, clock.now()).join('\n')}\n${await aboutProjects(report)}`)
  return 0
}

async function readStatus(context: CliContext, places: readonly SessionsPlace[]): Promise<StatusReport> {
  const [own] = places
  const first =
    places.length < 2 ? own : await (await import('../../app/worktrees/find.ts')).placeInFront(places, context)
  if (first === undefined) throw new Error('There is no place.')
  const elsewhere: PlaceReport[] = []
  for (const place of places) if (place !== first) elsewhere.push(await readPlace(context, place))
  return { ...(await readPlace(context, first)), elsewhere }
}

async function readPlace(context: CliContext, { records, worktree }: SessionsPlace): Promise<PlaceReport> {
  // Before the journal: a session that ends while it is read must not look cut off.
  const say = sayOn(context)
  const runner = await askWhoRuns(records.lock, context.platform, say)
  const id = await latestSession(records, say)
  const session = id === null ? null : await readSession(records, id, runner, context)
  if (id !== null && session === null) say(`${records.journal(id)} does not say what ${id} is about.`)
  const { prompts } = await openQueue(records.queue).list()
  return {
    directory: records.directory,
    worktree,
    runner: runner && (runner === 'unknown' ? runner : { pid: runner.pid, host: runner.host, since: runner.at }),
    session,
    // Where there is one, the calls beside it are not told apart for a number.
    sessions: (id === null ? await newestSessions(records, Number.POSITIVE_INFINITY) : await records.sessions()).length,
    queued: prompts.length,
  }
}

async function readSession(
  records: Records,
  id: string,
  runner: LockHolder | null | 'unknown',
  { clock, env }: Pick<CliContext, 'clock' | 'env'>,
): Promise<SessionReport | null> {
  const now = clock.now()
  const { state, last } = await readToEnd(records, id)
  if (state.createdAt === 0) return null
  const standing = sessionStatusOf(state, runner)
  const isRunning = standing === 'running'
  const { running, waiting, stall } = state
  const board = await taskBoardOf(records, state, isRunning, redactorOfProject({ env, clock }, records))
  const forecast = forecastFor(state, now)
  return {
    id,
    goal: state.goal,
    isCall: isCall(state),
    standing,
    activity: isRunning ? activityOf(state) : null,
    outcome: state.ended?.outcome ?? null,
    round:
      running === null || !isRunning ? null : { round: running.round, elapsedMs: Math.max(0, now - running.startedAt) },
    roundsUsed: state.roundsUsed,
    limits: state.limits,
    elapsedMs: elapsedMs(state, standing, now),
    tokens: sessionTokens(state),
    cost: state.prices.length === 0 ? null : state.cost,
    providerTokens: tokensOfProviders(state),
    provider: state.providerInUse,
    model: state.modelInUse ?? state.model,
    effort: state.effortInUse ?? state.effort,
    last,
    waiting: waiting && { ...waiting, until: isoTime(waiting.until), since: isoTime(waiting.since) },
    ...(isRunning ? heldReport(state) : { pausedAt: null, hold: null, decision: null }),
    replanAsked: state.replan !== null,
    stopAsked: isRunning && state.stopAsked,
    offlineSince: isRunning && state.offlineSince !== null ? isoTime(state.offlineSince) : null,
    windingDown: isRunning ? state.windingDown : null,
    stall: { idleRounds: stall.idleRounds, sameRefusals: stall.sameRefusals, remedy: stall.remedy },
    keptAwake: isRunning ? state.keptAwake : null,
    plan: state.plan,
    claim: state.claim,
    tasks: board && tasksOfBoard(board, isRunning),
    build: buildReport(state, isRunning),
    work: workReport(state, board, isRunning),
    ...proofReport(state, isRunning),
    forecast: forecast && { ...forecast, until: isoTime(forecast.until) },
    primaryWindow: state.primaryWindow,
    secondaryWindow: state.secondaryWindow,
  }
}

/** What a running session waits for a person in. */
function heldReport({
  pausedAt,
  holdEnd,
  decision,
}: SessionState): Pick<SessionReport, 'pausedAt' | 'hold' | 'decision'> {
  return {
    pausedAt: pausedAt === null ? null : isoTime(pausedAt),
    hold: holdEnd === null ? null : { until: isoTime(holdEnd.at), how: holdEnd.how },
    decision: decision === null ? null : decisionReport(decision),
  }
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}

/** More than come between two events that a person is told of. */
const RECENT_EVENTS = 100

async function readToEnd(records: Records, id: string): Promise<{ state: SessionState; last: SessionReport['last'] }> {
  // Before the state: no event is described by a session that it has yet to come to.
  const recent = await lastEvents(records.journal(id), RECENT_EVENTS)
  const state = (await foldJournal(records, id, 'ends')) ?? emptyState(id)
  for (const event of recent.reverse()) {
    const description = describeEvent(event, state)
    if (description) return { state, last: { at: event.at, text: description.text } }
  }
  return { state, last: null }
}

/**
 * What `tasks.json` says now, of a build as far as codemachine believes it; null if there are none, or it is being written. Which of
 * the tasks is the current one, by `MAIN.md`, is of interest only while somebody runs the session.
 */
async function taskBoardOf(
  records: Records,
  state: SessionState,
  isRunning: boolean,
  redactor: Redactor,
): Promise<TaskBoard | null> {
  const place = boardPlaceOf(records, state.id, redactor, () => state)
  return boardNow(await readTaskBoard(place, isRunning ? 'all' : 'tasks'), state)
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
  const { clock, stdout } = context
  const { records, id } = await sessionHere(context, session, place)
  const path = records.journal(id)
  const isOver = lookout(context, await lockOfSession(records, id))
  if (!(await hasEvents(path)) && (!follow || (await isOver()))) {
    throw new UserError(`${path} holds no session.`)
  }
  using output = new PacedOutput(stdout, context.signal)
  const write = (text: string) => output.write(text)
  const view = json ? jsonView(write) : plainView(write, { colour: wantsColour(context) })
  let state = emptyState(id)
  const following = { clock, signal: output.ended, isOver: async () => state.ended !== null || (await isOver()) }
  const events = follow ? followJournal(path, following) : readJournal(path)
  for await (const event of events) {
    state = fold(state, event, records.templates)
    view.event(event, state)
    await output.ready()
    if (output.ended.aborted) break
  }
  return 0
}

/** Tells whether nobody runs any more. Where that cannot be known it is said, once, and somebody may. */
function lookout({ platform, stderr }: CliContext, lock: string): () => Promise<boolean> {
  let isSaid = false
  const say = (problem: string) => {
    if (!isSaid) stderr.write(`codemachine: ${problem}\n`)
    isSaid = true
  }
  return async () => (await askWhoRuns(lock, platform, say)) === null
}

/** `codemachine watch`: a session that another process runs, as it happens. Without a terminal: in plain lines. */
export async function watch(context: CliContext, session: string | undefined, flags: DirectoryFlags): Promise<number> {
  if (!wantsScreen(context, {})) return await logs(context, session, { ...flags, follow: true })
  const { records, id } = await sessionHere(context, session, flags)
  const { openWatchScreen } = await import('../../tui/host/watch-screen.ts')
  return await openWatchScreen(context, records, id)
}

/** The session that is meant; without a word the latest. That it is one of a worktree is said. */
async function sessionHere(
  context: CliContext,
  session: string | undefined,
  flags: DirectoryFlags,
): Promise<{ records: Records; id: string }> {
  const own = await openRecords(placesOf(context, directoryOf(context, flags)))
  const onProblem = sayOn(context)
  const options = { platform: context.platform, onProblem, replays: 'counted' } as const
  const { records, id, worktree } = await findSessionAround(own, session ?? null, options)
  sayWorktree(context, { records, id, worktree })
  return { records, id }
}
