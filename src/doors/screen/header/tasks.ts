import type { TaskBoard } from '../../../core/state/plan.ts'
import { elapsedMs, type PlanStep, type SessionState } from '../../../core/state/state.ts'
import type { BoardMark } from '../../../core/view.ts'
import { cutLine } from '../../../tell/words/cells.ts'
import { wordsForTasks } from '../../../tell/words/doing.ts'
import { formatClock, formatNumber, formatSpan } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { ShownBoard } from '../../../tell/words/work.ts'
import type { Role, Theme } from '../terminal/theme.ts'

const NAME_CHARS = 400
const LEAST_STEPS = 4

/** The board of a template's own, at a time (Unix ms). */
interface BoardAt extends ShownBoard {
  now: number
}

/**
 * The tasks as a checklist with their phases as headings, or in their place the rows of the template's own board, scrolled
 * to the current one; below, if there is room, the steps of the agent's own plan. The last line says how many sentences of
 * the contract hold. At most `rows` lines, each at most `columns` cells wide.
 */
export function taskLines(
  { board, plan, own = null, contract = null }: Shown,
  { columns, rows, theme }: { columns: number; rows: number; theme: Theme },
): string[] {
  if (contract !== null && rows > 1) {
    const above = taskLines({ board, plan, own }, { columns, rows: rows - 1, theme })
    return [...above, theme.paint('dim', cutLine(`contract: ${contract}`, columns))]
  }
  const tasks = own === null ? taskEntries(board) : rowEntries(own)
  const steps = stepEntries(plan)
  if (tasks.length === 0 && steps.length === 0) return [cutLine('No tasks yet.', columns)].slice(0, rows)
  const room = Math.min(rows - tasks.length, steps.length)
  // Fewer than four steps of many are not worth the heading.
  const showsSteps = tasks.length === 0 || room >= Math.min(LEAST_STEPS, steps.length)
  const shown = [
    ...scrollToFocus(tasks, Math.min(rows, tasks.length)),
    ...(showsSteps ? scrollToFocus(steps, room) : []),
  ]
  return shown.map(entry => theme.paint(roleOf(entry), cutLine(entryText(entry, theme), columns)))
}

interface Shown {
  board: TaskBoard | null
  plan: readonly PlanStep[]
  own?: BoardAt | null
  /** How many sentences of the contract hold, in words; null: there is none. */
  contract?: string | null
}

/** A line of the checklist: a phase, a task or step, or the number of lines that are scrolled out. */
type Entry = { heading: string } | { progress: BoardMark; name: string } | { more: number; where: 'above' | 'below' }

function taskEntries(board: TaskBoard | null): Entry[] {
  let phase: string | null = null
  return (board?.tasks ?? []).flatMap(task => {
    const isNew = task.phase !== null && task.phase !== phase
    phase = task.phase
    const reason = task.parked === undefined ? '' : ` (parked: ${task.parked})`
    const entry = { progress: markOf(task, board), name: `${task.id}  ${task.name}${reason}` }
    return isNew && task.phase !== null ? [{ heading: task.phase }, entry] : [entry]
  })
}

function rowEntries({ rows, count, now }: BoardAt): Entry[] {
  const entries = rows.map(({ mark, id, text, who, since }): Entry => {
    const by = [...(who === null ? [] : [who]), ...(since === null ? [] : [formatClock(Math.max(0, now - since))])]
    return { progress: mark, name: `${id}  ${text}${by.length === 0 ? '' : `  (${by.join(' ')})`}` }
  })
  return count === rows.length ? entries : [...entries, { heading: `and ${count - rows.length} more` }]
}

function markOf(task: TaskBoard['tasks'][number], board: TaskBoard | null): BoardMark {
  if (task.done) return 'done'
  if (task.parked !== undefined) return 'parked'
  if (task.claimed) return 'claimed'
  return task.id === board?.current ? 'now' : 'to-do'
}

const STEP_PROGRESS = { completed: 'done', 'in-progress': 'now', pending: 'to-do' } as const

function stepEntries(plan: readonly PlanStep[]): Entry[] {
  if (plan.length === 0) return []
  return [
    { heading: 'Plan of this round' },
    ...plan.map(({ step, status }) => ({ progress: STEP_PROGRESS[status], name: step })),
  ]
}

/** `rows` of the entries around the current one; the first and last of them count the tasks that are scrolled out. */
function scrollToFocus(entries: readonly Entry[], rows: number): Entry[] {
  if (entries.length <= rows) return [...entries]
  if (rows <= 0) return []
  const top = Math.max(0, Math.min(entries.length - rows, focusOf(entries) - Math.floor(rows / 2)))
  const shown = entries.slice(top, top + rows)
  if (rows < 4) return shown
  const above = countSteps(entries.slice(0, top + 1))
  const below = countSteps(entries.slice(top + rows - 1))
  if (top > 0) shown[0] = { more: above, where: 'above' }
  if (top + rows < entries.length) shown[rows - 1] = { more: below, where: 'below' }
  return shown
}

function countSteps(entries: readonly Entry[]): number {
  return entries.filter(entry => 'progress' in entry).length
}

/** The index of the current entry, else of the next one to do, else of the last one. */
function focusOf(entries: readonly Entry[]): number {
  for (const progress of ['now', 'to-do']) {
    const at = entries.findIndex(entry => 'progress' in entry && entry.progress === progress)
    if (at !== -1) return at
  }
  return entries.length - 1
}

const SHOWN: Readonly<Record<BoardMark, { mark: string; word: string; role: Role }>> = {
  done: { mark: '✔', word: 'done:', role: 'dim' },
  claimed: { mark: '◐', word: 'claimed:', role: 'dim' },
  now: { mark: '▸', word: 'now:', role: 'accent' },
  parked: { mark: '✘', word: 'parked:', role: 'warning' },
  failed: { mark: '✖', word: 'failed:', role: 'bad' },
  'to-do': { mark: '○', word: 'to do:', role: 'plain' },
}

function entryText(entry: Entry, theme: Theme): string {
  if ('heading' in entry) return oneLine(entry.heading, NAME_CHARS)
  if ('more' in entry) return `${theme.symbols ? '  … ' : ''}${entry.more} more ${entry.where}`
  const { mark, word } = SHOWN[entry.progress]
  return `${theme.symbols ? `  ${mark}` : word} ${oneLine(entry.name, NAME_CHARS)}`
}

function roleOf(entry: Entry): Role {
  if ('heading' in entry) return 'heading'
  return 'more' in entry ? 'dim' : SHOWN[entry.progress].role
}

const MINUTE = 60_000
/** The rounds that an estimate of the pace needs. */
const ROUNDS_FOR_ESTIMATE = 3

/** How many tasks are done: `7 of 15 tasks (1 claimed)`, and without what is claimed or parked; null without tasks. */
export function progressOf(board: TaskBoard | null): [string, string] | null {
  const { total, done, ...rest } = countTasks(board)
  if (total === 0) return null
  const words = wordsForTasks(done, total)
  const more = Object.entries(rest).flatMap(([word, count]) => (count > 0 ? [`${formatNumber(count)} ${word}`] : []))
  return [more.length === 0 ? words : `${words} (${more.join(', ')})`, words]
}

/** The estimated time for the remaining tasks: `about 2 h 10 min left`; null if there is no basis for one. `now`: Unix ms. */
export function estimatedLeft(
  state: SessionState,
  { board, own }: { board: TaskBoard | null; own: ShownBoard | null },
  now: number,
): string | null {
  const { total, done, claimed, parked, failed } = own === null ? countTasks(board) : countRows(own)
  const left = msLeft(state, { done: done + claimed, total: total - parked - failed }, now)
  return left === null ? null : `${roughly(left)} left`
}

/** The tasks or rows of a board, and how many of them are how far. */
interface Counts {
  total: number
  done: number
  claimed: number
  parked: number
  failed: number
}

function countTasks(board: TaskBoard | null): Counts {
  const tasks = board?.tasks ?? []
  return {
    total: tasks.length,
    done: tasks.filter(task => task.done).length,
    claimed: tasks.filter(task => task.claimed).length,
    parked: tasks.filter(task => task.parked !== undefined).length,
    failed: 0,
  }
}

function countRows({ rows }: ShownBoard): Counts {
  const marked = (mark: BoardMark) => rows.filter(row => row.mark === mark).length
  return {
    total: rows.length,
    done: marked('done'),
    claimed: marked('claimed'),
    parked: marked('parked'),
    failed: marked('failed'),
  }
}

/** The estimated time (ms) for the remaining tasks at the pace so far; null if there is no basis for one. */
function msLeft(state: SessionState, { done, total }: { done: number; total: number }, now: number): number | null {
  if (done === 0 || done === total || state.roundsUsed < ROUNDS_FOR_ESTIMATE) return null
  if (state.ended !== null || state.waiting !== null || state.offlineSince !== null) return null
  const heldMs = state.heldMs + (state.heldSince === null ? 0 : Math.max(0, now - state.heldSince))
  return ((elapsedMs(state, 'running', now) - heldMs) / done) * (total - done)
}

/** A duration rounded to 5 minutes, from 10 hours on to the hour. */
function roughly(ms: number): string {
  const step = ms < 10 * 60 * MINUTE ? 5 * MINUTE : 60 * MINUTE
  return ms < step ? `less than ${formatSpan(step)}` : `about ${formatSpan(Math.round(ms / step) * step)}`
}
