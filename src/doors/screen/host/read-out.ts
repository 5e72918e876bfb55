import { UserError, withCode } from '../../../base/errors.ts'
import type { LiveItem } from '../../../core/events/live-board.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { OpenComparison, statesTyped } from '../../../project/diff/comparison.ts'
import { SessionsTable } from '../../../project/watch/sessions-table.ts'
import type { World } from '../../../project/world.ts'
import type { Records } from '../../../session/records/records.ts'
import { formatCount, formatNumber } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { agentRows } from '../agents/agent-rows.ts'
import { sessionInWords } from '../sessions/session-list.ts'

// What a screen reader is read in the place of a table that fills the terminal: a row of it is a sentence.

/** How many rows are read out: of more, it is said how many there are. */
const MOST_ROWS = 40
const ROW_CHARS = 400

/** The agents of the running round. `now`: Unix time, ms. */
export function agentsReadOut(state: SessionState, live: readonly LiveItem[], now: number): string[] {
  return agentRows(state, live, now).map(({ name, tasks, activity, time, tokens }) =>
    sentence([name, tasks, activity, time, tokens === null ? '' : formatCount(tokens, 'token')]),
  )
}

/** The sessions of a directory and its worktrees, the newest first, once all have been read; none if the signal aborts before. */
export async function sessionsReadOut(
  world: Pick<World, 'platform' | 'clock' | 'env' | 'home' | 'templates'>,
  records: Records,
  signal: AbortSignal,
): Promise<string[]> {
  const whole = new AbortController()
  const problems: string[] = []
  const table = new SessionsTable({
    world,
    records,
    scope: 'here',
    signal: AbortSignal.any([signal, whole.signal]),
    onChange: () => {
      if (table.isWhole) whole.abort()
    },
    onProblem: problem => problems.push(problem),
  })
  await table.follow().catch((error: unknown) => {
    if (!whole.signal.aborted && !signal.aborted) throw error
  })
  const rows = table.rows.map(row => sentence(sessionInWords(row)))
  return [...problems, ...(rows.length === 0 ? ['No sessions yet.'] : firstOf(rows, 'codemachine list'))]
}

/** The files that differ between two states, as they stand behind `/diff`, with the lines of each. */
export async function changesReadOut(
  world: World,
  records: Records,
  { typed, session, onWarning }: { typed: string; session: string | null; onWarning(warning: string): void },
): Promise<string[]> {
  await using source = new OpenComparison(world, records, statesTyped(typed, session), onWarning)
  const read = await source.read(world.signal).catch((error: unknown) => {
    if (error instanceof UserError) return withCode(error)
    throw error
  })
  if (typeof read === 'string') return [read]
  const counts = `${formatNumber(read.added)} lines added, ${formatNumber(read.removed)} removed`
  const rows = read.files.map(({ path, from, added, removed }) =>
    sentence([
      from === null ? path : `${path}, which was ${from}`,
      added === null || removed === null
        ? 'not a text'
        : `${formatNumber(added)} added, ${formatNumber(removed)} removed`,
    ]),
  )
  const title = `${formatCount(read.count, 'file')} changed from ${read.from} to ${read.to}: ${counts}.`
  return [oneLine(title, ROW_CHARS), ...firstOf(rows, 'codemachine diff --no-pager')]
}

function sentence(parts: readonly string[]): string {
  return `${oneLine(parts.filter(part => part !== '').join('; '), ROW_CHARS)}.`
}

/** @param command what says all of them */
function firstOf(rows: readonly string[], command: string): string[] {
  const left = rows.length - MOST_ROWS
  return left > 0 ? [...rows.slice(0, MOST_ROWS), `And ${formatNumber(left)} more: ${command} shows all.`] : [...rows]
}
