import type { TaskBoard } from '../../core/state/plan.ts'
import { elapsedMs, type PlanStep, type SessionState } from '../../core/state/state.ts'
import { cutLine, oneLine, widthOf } from '../../words/cells.ts'
import { formatCount, formatSpan } from '../../words/numbers.ts'
import type { Role, Theme } from '../terminal/theme.ts'

const NAME_CHARS = 400
const LEAST_STEPS = 4

/** A place for lines. */
export interface TaskLinesPlace {
  columns: number
  rows: number
  theme: Theme
}

/**
 * The tasks as a checklist with their phases as headings, scrolled to the one at work; below, if there is room, the
 * steps of the agent's own plan. At most `rows` lines, each at most `columns` cells wide.
 */
export function taskLines(
  { board, plan }: { board: TaskBoard | null; plan: readonly PlanStep[] },
  { columns, rows, theme }: TaskLinesPlace,
): string[] {
  const tasks = taskEntries(board)
  const steps = stepEntries(plan)
  if (tasks.length === 0 && steps.length === 0) return [cutLine('There are no tasks yet.', columns)].slice(0, rows)
  const room = Math.min(rows - tasks.length, steps.length)
  // A heading and a few steps, or it is not worth the heading.
  const isWorth = tasks.length === 0 || room >= Math.min(LEAST_STEPS, steps.length)
  const shown = [...scrolled(tasks, Math.min(rows, tasks.length)), ...(isWorth ? scrolled(steps, room) : [])]
  return shown.map(entry => theme.paint(roleOf(entry), cutLine(wordsFor(entry, theme), columns)))
}

type Progress = 'done' | 'claimed' | 'now' | 'parked' | 'to-do'

/** A line, before it is text. */
type Entry = { heading: string } | { progress: Progress; name: string } | { more: number; where: 'above' | 'below' }

function taskEntries(board: TaskBoard | null): Entry[] {
  let phase: string | null = null
  return (board?.tasks ?? []).flatMap(task => {
    const isNew = task.phase !== null && task.phase !== phase
    phase = task.phase
    const why = task.parked === undefined ? '' : ` (parked: ${task.parked})`
    const entry = { progress: progressOf(task, board), name: `${task.id}  ${task.name}${why}` }
    return isNew && task.phase !== null ? [{ heading: task.phase }, entry] : [entry]
  })
}

function progressOf(task: TaskBoard['tasks'][number], board: TaskBoard | null): Progress {
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

/** So many of the entries, with what is at work in the middle; what is left out is counted where it would be. */
function scrolled(entries: readonly Entry[], rows: number): Entry[] {
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

/** Where to look: at what is at work, else at what comes next, else at the end. */
function focusOf(entries: readonly Entry[]): number {
  for (const progress of ['now', 'to-do']) {
    const at = entries.findIndex(entry => 'progress' in entry && entry.progress === progress)
    if (at !== -1) return at
  }
  return entries.length - 1
}

const MARKS: Readonly<Record<Progress, string>> = { done: '✔', claimed: '◐', now: '▸', parked: '✘', 'to-do': '○' }
const WORDS: Readonly<Record<Progress, string>> = {
  done: 'done:',
  claimed: 'said to be done:',
  now: 'now:',
  parked: 'parked:',
  'to-do': 'to do:',
}

function wordsFor(entry: Entry, theme: Theme): string {
  if ('heading' in entry) return oneLine(entry.heading, NAME_CHARS)
  if ('more' in entry) return `${theme.symbols ? '  … ' : ''}${entry.more} more ${entry.where}`
  const name = oneLine(entry.name, NAME_CHARS)
  return theme.symbols ? `  ${MARKS[entry.progress]} ${name}` : `${WORDS[entry.progress]} ${name}`
}

const ROLES: Readonly<Record<Progress, Role>> = {
  done: 'dim',
  claimed: 'dim',
  now: 'accent',
  parked: 'warning',
  'to-do': 'plain',
}

function roleOf(entry: Entry): Role {
  if ('heading' in entry) return 'heading'
  return 'more' in entry ? 'dim' : ROLES[entry.progress]
}

const MINUTE = 60_000
/** Before so many rounds have counted nothing can be told of the pace. */
const ROUNDS_TO_KNOW = 3
const MOST_BAR = 20
const LEAST_BAR = 5

/**
 * How far the tasks are, of a build those too that are only said to be done or are parked, and for how long it will go on at the pace so far: `▓▓▓░░ 7/15 tasks · about 2 h 10 min left`;
 * null if there are none. At most `columns` cells wide.
 */
export function progressLine(
  { state, board }: { state: SessionState; board: TaskBoard | null },
  { columns, theme, now }: { columns: number; theme: Theme; now: number },
): string | null {
  const total = board?.tasks.length ?? 0
  if (board === null || total === 0) return null
  const done = board.tasks.filter(task => task.done).length
  const parked = board.tasks.filter(task => task.parked !== undefined).length
  const claimed = board.tasks.filter(task => task.claimed).length
  const left = msLeft(state, { done: done + claimed, total: total - parked }, now)
  const estimate = left === null ? null : `${roughly(left)} left`
  if (!theme.symbols) {
    const words = `${done} of ${formatCount(total, 'task')} done${also(', ', claimed, parked)}`
    return cutLine(estimate === null ? words : `${words}, ${estimate}`, columns)
  }
  const counted = `${done}/${formatCount(total, 'task')}${also(' · ', claimed, parked)}`
  const words = estimate === null ? counted : `${counted} · ${estimate}`
  const fitting = widthOf(words) + LEAST_BAR + 1 <= columns ? words : counted
  const room = Math.min(MOST_BAR, columns - widthOf(fitting) - 1)
  return room < LEAST_BAR
    ? cutLine(counted, columns)
    : `${bar({ done: done / total, claimed: claimed / total }, room, theme)} ${fitting}`
}

/** The time (ms) that what is left will take if it goes on as before; null if it cannot be told. */
function msLeft(state: SessionState, { done, total }: { done: number; total: number }, now: number): number | null {
  if (done === 0 || done === total || state.roundsUsed < ROUNDS_TO_KNOW) return null
  if (state.ended !== null || state.waiting !== null || state.offlineSince !== null) return null
  return (elapsedMs(state, 'running', now) / done) * (total - done)
}

/** To 5 minutes, and from 10 hours on to the hour: it is no better known. */
function roughly(ms: number): string {
  const step = ms < 10 * 60 * MINUTE ? 5 * MINUTE : 60 * MINUTE
  return ms < step ? `less than ${formatSpan(step)}` : `about ${formatSpan(Math.round(ms / step) * step)}`
}

/** What of a build is neither done nor just open. */
function also(before: string, claimed: number, parked: number): string {
  return `${claimed === 0 ? '' : `${before}${claimed} claimed`}${parked === 0 ? '' : `${before}${parked} parked`}`
}

function bar(share: { done: number; claimed: number }, width: number, theme: Theme): string {
  const cells = (part: number) => (part === 1 ? width : Math.min(width - 1, Math.round(part * width)))
  const done = cells(share.done)
  const claimed = cells(share.done + share.claimed) - done
  const rest = theme.paint('dim', '░'.repeat(width - done - claimed))
  return theme.paint('good', '▓'.repeat(done)) + theme.paint('good', '▒'.repeat(claimed)) + rest
}
