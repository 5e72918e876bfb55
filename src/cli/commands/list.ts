import { join } from 'node:path'
import { foldJournal } from '../../session/fold-journal.ts'
import type { SessionOutcome } from '../../session/outcome.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import { elapsedMs, type Standing, standingOf } from '../../session/standing.ts'
import { sessionTokens } from '../../session/state.ts'
import { describeOutcome } from '../../ui/describe-outcome.ts'
import { formatCount } from '../../ui/format-count.ts'
import { formatDuration } from '../../ui/format-duration.ts'
import { formatDayAndTime } from '../../ui/format-time.ts'
import { formatTokens } from '../../ui/format-tokens.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { CliContext } from '../context.ts'

const GOAL_CHARS = 80

/** A session as `list --json` shows it. */
interface ListedSession {
  id: string
  goal: string
  standing: Standing
  outcome: SessionOutcome | null
  rounds: number
  tokens: number
  durationMs: number
  /** ISO 8601 in UTC. */
  createdAt: string
}

/** `codemachine list`: the sessions of a work directory, the newest last. */
export async function list(context: CliContext, options: { directory: string; json: boolean }): Promise<number> {
  const records = await openRecords({ ...context, directory: options.directory })
  const sessions = await readSessions(records, context)
  if (options.json) context.stdout.write(`${JSON.stringify(sessions)}\n`)
  else if (sessions.length === 0) {
    context.stdout.write(`There are no sessions in ${records.directory} yet. Start one with: codemachine "…"\n`)
  } else context.stdout.write(table(sessions.map(rowOf)))
  return 0
}

async function readSessions(records: Records, { platform, clock }: CliContext): Promise<ListedSession[]> {
  // Before the journals: a session that ends while they are read must not look cut off.
  const runner = await readRunner(records.lock, platform)
  const sessions: ListedSession[] = []
  for (const id of await records.sessions()) {
    const state = await foldJournal(join(records.sessionFolder(id), 'journal.ndjson'), id)
    if (state === null) continue
    const standing = standingOf(state, runner)
    sessions.push({
      id,
      goal: state.goal,
      standing,
      outcome: state.ended?.outcome ?? null,
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      durationMs: elapsedMs(state, standing, clock.now()),
      createdAt: new Date(state.createdAt).toISOString(),
    })
  }
  return sessions
}

function rowOf(session: ListedSession): string[] {
  return [
    session.id,
    formatDayAndTime(Date.parse(session.createdAt)),
    session.outcome === null ? session.standing.replace('-', ' ') : describeOutcome(session.outcome).short,
    formatCount(session.rounds, 'round'),
    formatTokens(session.tokens),
    formatDuration(session.durationMs),
    oneLine(session.goal.trim().split('\n', 1)[0] ?? '', GOAL_CHARS),
  ]
}

/** Rows in columns of even width, the last of which may be of any. */
function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map(row => `${line(row).trimEnd()}\n`).join('')
}
