import type { Recorded } from '../../core/events/events.ts'
import { forecastFor } from '../../core/rules/forecast.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import {
  elapsedMs,
  isCall,
  modelNow,
  type SessionState,
  sessionStatusOf,
  sessionTokens,
  tokensOfProviders,
} from '../../core/state/state.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { type RecentPast, readJournal, recentPast } from '../../session/records/journal.ts'
import { openQueue } from '../../session/records/queue.ts'
import type { Records } from '../../session/records/records.ts'
import { askWhoRuns, type Runner } from '../../session/records/run-lock.ts'
import { describeEvent } from '../../tell/words/event.ts'
import { activityOf } from '../../tell/words/outcome.ts'
import { boardNow } from '../../tell/words/plan.ts'
import {
  buildReport,
  decisionReport,
  type PlaceReport,
  proofReport,
  type SessionReport,
  type StatusReport,
  tasksOfBoard,
} from '../../tell/words/status.ts'
import { workReport } from '../../tell/words/work.ts'
import { latestSession, newestSessions, type SessionsPlace } from '../find.ts'
import { redactorOfProject } from '../secrets/redactor.ts'
import { placeInFront } from '../worktrees/find.ts'
import type { World } from '../world.ts'
import { boardPlaceOf, readTaskBoard } from './task-watch.ts'

type StatusWorld = Pick<World, 'clock' | 'env' | 'platform'>

/**
 * Returns what runs in a work directory or its worktrees, each session's progress, and the queue.
 * @param say receives a sentence for each unreadable place
 */
export async function readStatus(
  world: StatusWorld,
  places: readonly SessionsPlace[],
  say: (problem: string) => void,
): Promise<StatusReport> {
  const [own] = places
  const first = places.length < 2 ? own : await placeInFront(places, world)
  if (first === undefined) throw new Error('There is no place.')
  const elsewhere: PlaceReport[] = []
  for (const place of places) if (place !== first) elsewhere.push(await readPlace(world, place, say))
  return { ...(await readPlace(world, first, say)), elsewhere }
}

async function readPlace(
  world: StatusWorld,
  { records, worktree }: SessionsPlace,
  say: (problem: string) => void,
): Promise<PlaceReport> {
  // Read the lock before the journal: a session that ends meanwhile must not look cut off.
  const runner = await askWhoRuns(records.lock, world.platform, say)
  const id = await latestSession(records, say)
  const session = id === null ? null : await readSession(records, id, runner, world)
  if (id !== null && session === null) say(`${records.journal(id)} does not name the goal of ${id}.`)
  const { prompts } = await openQueue(records.queue).list()
  return {
    directory: records.directory,
    worktree,
    runner: runner && (runner === 'unknown' ? runner : { pid: runner.pid, host: runner.host, since: runner.at }),
    session,
    // If there is a session, count the calls too: it is only a number.
    sessions: (id === null ? await newestSessions(records, Number.POSITIVE_INFINITY) : await records.sessions()).length,
    queued: prompts.length,
  }
}

/**
 * Returns a session's progress; null if its journal does not name its goal.
 * @param runner the holder of its directory's lock, by `askWhoRuns`
 */
export async function readSession(
  records: Records,
  id: string,
  runner: Runner,
  { clock, env }: StatusWorld,
): Promise<SessionReport | null> {
  const now = clock.now()
  const { state, last, warnings } = await readToEnd(records, id)
  if (state.createdAt === 0) return null
  const standing = sessionStatusOf(state, runner)
  const isRunning = standing === 'running'
  const { running, waiting, stall } = state
  const board = await taskBoardOf(records, state, isRunning, redactorOfProject({ env, clock }, records))
  const forecast = forecastFor(state, now)
  return {
    id,
    goal: state.goal,
    adopted: state.adopted,
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
    engine: state.login,
    model: modelNow(state),
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
    warnings,
  }
}

/** Returns why a running session waits for a person. */
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

/** More than come between two events that a person sees. */
const RECENT_EVENTS = 100

async function readToEnd(
  records: Records,
  id: string,
): Promise<{ state: SessionState } & Pick<SessionReport, 'last' | 'warnings'>> {
  const { state, events } = await recentPast(records, id, { most: RECENT_EVENTS })
  const warnings = await warningsOf(records.journal(id), events)
  for (const { event } of events.toReversed()) {
    const description = describeEvent(event, state)
    if (description) return { state, warnings, last: { at: event.at, text: description.text } }
  }
  return { state, warnings, last: null }
}

/** After this many events, or an agent's first action, a warning is not from the start. */
const START_EVENTS = 200
const MOST_WARNINGS = 30

/** Returns warnings from a session's start and its last events, each once. Reads only the journal's two ends. */
async function warningsOf(path: string, recent: RecentPast['events']): Promise<string[]> {
  const found = new Set<string>()
  const add = (event: Recorded) => {
    if (event.type === 'warning') for (const message of [event.message, ...(event.more ?? [])]) found.add(message)
  }
  let read = 0
  for await (const event of readJournal(path)) {
    read += 1
    if (event.type === 'item-completed' || read > START_EVENTS) break
    add(event)
  }
  for (const { event } of recent) add(event)
  return [...found].slice(0, MOST_WARNINGS)
}

/**
 * Returns the tasks of `tasks.json` now, for a build as far as codemachine believes it; null: there are none, or it is being
 * written. The current task, from `MAIN.md`, matters only while the session runs.
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
