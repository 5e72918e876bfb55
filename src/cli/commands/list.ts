import type { SessionOutcome } from '../../session/outcome.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { askWhoRuns } from '../../session/run-lock.ts'
import { sessionTokens } from '../../session/session-tokens.ts'
import { elapsedMs, type Standing, standingOf } from '../../session/standing.ts'
import { type Activity, activityOf } from '../../ui/activity.ts'
import { describeOutcome } from '../../ui/describe-outcome.ts'
import { formatCount } from '../../ui/format-count.ts'
import { formatDuration } from '../../ui/format-duration.ts'
import { formatDayAndTime } from '../../ui/format-time.ts'
import { formatTokens } from '../../ui/format-tokens.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { CliContext } from '../context.ts'
import { readSessions } from '../read-sessions.ts'

const GOAL_CHARS = 80

const IN_WORDS: Record<Standing, string> = {
  running: 'running',
  'cut-off': 'cut off',
  ended: 'ended',
  unknown: 'not ended',
}

/** A session as `list --json` shows it. */
interface ListedSession {
  id: string
  goal: string
  standing: Standing
  /** What it is doing, as `status --json` says it; null if it does not run. */
  activity: Activity | null
  outcome: SessionOutcome | null
  rounds: number
  tokens: number
  durationMs: number
  /** ISO 8601 in UTC. */
  createdAt: string
}

/** `codemachine list`: the sessions of a work directory, the newest last; those that cannot be read are named on stderr. */
export async function list(context: CliContext, options: { directory: string; json: boolean }): Promise<number> {
  const records = await openRecords({ ...context, directory: options.directory })
  const sessions = await listSessions(records, context)
  if (options.json) context.stdout.write(`${JSON.stringify(sessions)}\n`)
  else if (sessions.length === 0) context.stdout.write(await none(records))
  else context.stdout.write(table(sessions.map(rowOf)))
  return 0
}

async function none(records: Records): Promise<string> {
  return (await records.sessions()).length === 0
    ? `There are no sessions in ${records.directory} yet. Start one with: codemachine "…"\n`
    : `There is no session in ${records.directory} that can be read.\n`
}

async function listSessions(records: Records, { platform, clock, stderr }: CliContext): Promise<ListedSession[]> {
  // Before the journals: a session that ends while they are read must not look cut off.
  const say = (problem: string) => stderr.write(`codemachine: ${problem}\n`)
  const runner = await askWhoRuns(records.lock, platform, say)
  const { sessions, problems } = await readSessions(records)
  for (const problem of problems) say(problem)
  return sessions.map(state => {
    const standing = standingOf(state, runner)
    return {
      id: state.id,
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
}

function rowOf(session: ListedSession): string[] {
  return [
    session.id,
    formatDayAndTime(Date.parse(session.createdAt)),
    inWords(session),
    formatCount(session.rounds, 'round'),
    formatTokens(session.tokens),
    formatDuration(session.durationMs),
    oneLine(session.goal.trim().split('\n', 1)[0] ?? '', GOAL_CHARS),
  ]
}

function inWords({ outcome, activity, standing }: ListedSession): string {
  if (outcome !== null) return describeOutcome(outcome).short
  return activity === 'paused' ? 'paused' : IN_WORDS[standing]
}

/** Rows in columns of even width, the last of which may be of any. */
function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map(row => `${line(row).trimEnd()}\n`).join('')
}
