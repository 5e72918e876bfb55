import { join } from 'node:path'
import type { Recorded } from '../../session/events.ts'
import { fold } from '../../session/fold.ts'
import { readJournal } from '../../session/journal.ts'
import { openQueue } from '../../session/queue.ts'
import { openRecords, type Records } from '../../session/records.ts'
import type { LockHolder } from '../../session/run-lock.ts'
import { askWhoRuns } from '../../session/run-lock.ts'
import { sessionTokens } from '../../session/session-tokens.ts'
import { elapsedMs, standingOf } from '../../session/standing.ts'
import { emptyState, type SessionState } from '../../session/state.ts'
import { activityOf } from '../../ui/activity.ts'
import { boardNow } from '../../ui/build-board.ts'
import { buildReport } from '../../ui/build-report.ts'
import { describeEvent } from '../../ui/describe-event.ts'
import { proofReport } from '../../ui/proof-report.ts'
import { statusLines } from '../../ui/status-lines.ts'
import type { SessionReport, StatusReport } from '../../ui/status-report.ts'
import { tasksOfBoard } from '../../ui/tasks-of-board.ts'
import type { CliContext } from '../context.ts'
import { latestSession } from '../find-session.ts'

/** `codemachine status`: what runs in a work directory, how far its session is, and what waits. */
export async function status(context: CliContext, options: { directory: string; json: boolean }): Promise<number> {
  const { stdout, clock } = context
  const report = await readStatus(context, options.directory)
  stdout.write(options.json ? `${JSON.stringify(report)}\n` : `${statusLines(report, clock.now()).join('\n')}\n`)
  return 0
}

async function readStatus(context: CliContext, directory: string): Promise<StatusReport> {
  const records = await openRecords({ ...context, directory })
  // Before the journal: a session that ends while it is read must not look cut off.
  const say = (problem: string) => context.stderr.write(`codemachine: ${problem}\n`)
  const runner = await askWhoRuns(records.lock, context.platform, say)
  const id = await latestSession(records, say)
  const session = id === null ? null : await readSession(records, id, runner, context.clock.now())
  if (id !== null && session === null) say(`${records.journal(id)} does not say what ${id} is about.`)
  const { prompts } = await openQueue(records.queue).list()
  return {
    directory: records.directory,
    runner: runner && (runner === 'unknown' ? runner : { pid: runner.pid, host: runner.host, since: runner.at }),
    session,
    sessions: (await records.sessions()).length,
    queued: prompts.length,
  }
}

async function readSession(
  records: Records,
  id: string,
  runner: LockHolder | null | 'unknown',
  now: number,
): Promise<SessionReport | null> {
  const { state, last } = await readToEnd(join(records.sessionFolder(id), 'journal.ndjson'), id)
  if (state.createdAt === 0) return null
  const standing = standingOf(state, runner)
  const isRunning = standing === 'running'
  const { running, waiting, stall } = state
  return {
    id,
    goal: state.goal,
    standing,
    activity: isRunning ? activityOf(state) : null,
    outcome: state.ended?.outcome ?? null,
    round:
      running === null || !isRunning ? null : { round: running.round, elapsedMs: Math.max(0, now - running.startedAt) },
    roundsUsed: state.roundsUsed,
    limits: state.limits,
    elapsedMs: elapsedMs(state, standing, now),
    tokens: sessionTokens(state),
    model: state.modelInUse ?? state.model,
    effort: state.effortInUse ?? state.effort,
    last,
    waiting: waiting && { until: isoTime(waiting.until), since: isoTime(waiting.since), cause: waiting.cause },
    pausedAt: isRunning && state.pausedAt !== null ? isoTime(state.pausedAt) : null,
    replanAsked: state.replan !== null,
    stopAsked: isRunning && state.stopAsked,
    offlineSince: isRunning && state.offlineSince !== null ? isoTime(state.offlineSince) : null,
    windingDown: isRunning ? state.windingDown : null,
    stall: { idleRounds: stall.idleRounds, sameRefusals: stall.sameRefusals, remedy: stall.remedy },
    keptAwake: isRunning ? state.keptAwake : null,
    plan: state.plan,
    claim: state.claim,
    tasks: await countTasks(records, state, isRunning),
    build: buildReport(state, isRunning),
    ...proofReport(state, isRunning),
    primaryWindow: state.primaryWindow,
    secondaryWindow: state.secondaryWindow,
  }
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}

/** More than come between two events that a person is told of. */
const RECENT_EVENTS = 100

async function readToEnd(path: string, id: string): Promise<{ state: SessionState; last: SessionReport['last'] }> {
  let state = emptyState(id)
  const recent: Recorded[] = []
  for await (const event of readJournal(path)) {
    state = fold(state, event)
    recent.push(event)
    if (recent.length > RECENT_EVENTS) recent.shift()
  }
  for (const event of recent.reverse()) {
    const description = describeEvent(event, state)
    if (description) return { state, last: { at: event.at, text: description.text } }
  }
  return { state, last: null }
}

/** What `tasks.json` says now, of a build as far as codemachine believes it; null if there are none, or it is being written. */
async function countTasks(records: Records, state: SessionState, isRunning: boolean): Promise<SessionReport['tasks']> {
  // Loaded only where there is a session: it brings all that reads YAML.
  const { boardPlaceOf, readTaskBoard } = await import('../screen/task-watch.ts')
  const board = boardNow(await readTaskBoard(boardPlaceOf(records, state.id, () => state)), state)
  return board && tasksOfBoard(board, isRunning)
}
