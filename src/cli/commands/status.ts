import { join, relative } from 'node:path'
import type { Recorded } from '../../session/events.ts'
import { readJournal } from '../../session/journal.ts'
import { openQueue } from '../../session/queue.ts'
import { openRecords, type Records } from '../../session/records.ts'
import type { LockHolder } from '../../session/run-lock.ts'
import { readRunner } from '../../session/run-lock.ts'
import { elapsedMs, standingOf } from '../../session/standing.ts'
import { emptyState, fold, type SessionState, sessionTokens } from '../../session/state.ts'
import { describeEvent } from '../../ui/describe-event.ts'
import { type SessionReport, type StatusReport, statusLines } from '../../ui/status-lines.ts'
import { findObstacle } from '../../workspace/inside-directory.ts'
import { readTextFile } from '../../workspace/read-text-file.ts'
import { sessionFolder } from '../../workspace/session-folder.ts'
import { parseTasksFile } from '../../workspace/tasks-file.ts'
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
  const runner = await readRunner(records.lock, context.platform)
  const id = await latestSession(records)
  const { prompts } = await openQueue(records.queue).list()
  return {
    directory: records.directory,
    runner: runner && { pid: runner.pid, host: runner.host, since: runner.at },
    session: id === null ? null : await readSession(records, id, runner, context.clock.now()),
    queued: prompts.length,
  }
}

async function readSession(
  records: Records,
  id: string,
  runner: LockHolder | null,
  now: number,
): Promise<SessionReport | null> {
  const { state, last } = await readToEnd(join(records.sessionFolder(id), 'journal.ndjson'), id)
  if (state.createdAt === 0) return null
  const standing = standingOf(state, runner)
  const { running, waitingUntil } = state
  return {
    id,
    goal: state.goal,
    standing,
    outcome: state.ended?.outcome ?? null,
    round:
      running === null || standing !== 'running'
        ? null
        : { round: running.round, elapsedMs: Math.max(0, now - running.startedAt) },
    roundsUsed: state.roundsUsed,
    maxRounds: state.maxRounds,
    elapsedMs: elapsedMs(state, standing, now),
    tokens: sessionTokens(state),
    last,
    waitingUntil: waitingUntil === null || standing !== 'running' ? null : new Date(waitingUntil).toISOString(),
    plan: state.plan,
    claim: state.claim,
    tasks: await countTasks(records, id),
    primaryWindow: state.primaryWindow,
    secondaryWindow: state.secondaryWindow,
  }
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

const TASKS_BYTES = 4 * 1024 * 1024

/** What `tasks.json` says now; null if there are none, or it is being written. */
async function countTasks(records: Records, id: string): Promise<{ done: number; total: number } | null> {
  const { directory } = records
  const { folder, tasks } = sessionFolder({ directory, id, records: records.sessionFolder(id) })
  if (await findObstacle(directory, relative(directory, folder))) return null
  const file = await readTextFile(tasks, TASKS_BYTES)
  const parsed = file.kind === 'text' ? parseTasksFile(file.text) : null
  if (!parsed?.ok || parsed.value.length === 0) return null
  return { done: parsed.value.filter(task => task.done).length, total: parsed.value.length }
}
