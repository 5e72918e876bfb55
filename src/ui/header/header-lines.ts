import { sessionTokens } from '../../session/session-tokens.ts'
import { elapsedMs } from '../../session/standing.ts'
import type { SessionState } from '../../session/state.ts'
import { widthOf } from '../cells.ts'
import { formatCount } from '../format-count.ts'
import { formatSpan } from '../format-span.ts'
import { shortNumber } from '../format-tokens.ts'
import type { LiveItem } from '../live/live-board.ts'
import { oneLine } from '../safe-text.ts'
import type { TaskBoard } from '../task-board.ts'
import type { Role, Theme } from '../theme.ts'
import { wordsForPart } from '../words-for-build.ts'
import { wordsForTokensUsed } from '../words-for-limits.ts'
import { fitParts, type LinePart } from './fit-parts.ts'
import { formatClock, formatFullClock } from './format-clock.ts'
import { roomBesideDoing } from './room-beside-doing.ts'
import { shortMoment } from './short-moment.ts'
import { taskAtWork } from './task-at-work.ts'
import { titleOf } from './title-of.ts'
import { usedWindow } from './used-window.ts'
import { type Doing, doing } from './words-for-doing.ts'

/** What the header tells of. */
export interface HeaderData {
  state: SessionState
  board: TaskBoard | null
  live: readonly LiveItem[]
  /** How many prompts wait in the queue. */
  queued: number
}

export interface HeaderPlace {
  columns: number
  rows: 1 | 2
  theme: Theme
  /** Unix time, ms. */
  now: number
}

const NAME_CHARS = 120
/** Of the name of a task, before the title is cut. */
const TASK_CELLS = 40

/**
 * The one or two lines that say how things are: which session, task and round, what it does just now, what it has used.
 * Each at most `columns` cells wide: what does not fit is said more shortly, or left out, the least important first.
 */
export function headerLines(data: HeaderData, { columns, rows, theme, now }: HeaderPlace): string[] {
  const place = { columns, theme }
  const { state, board } = data
  const upper = [titlePart(state, board), ...taskParts(state, board), roundPart(state), elapsedPart(state, now)]
  const does = doing(state, data.live, now)
  const lower = [...doingParts(does), ...usedParts(state, now), modelPart(state), queuedPart(data)]
  const fitted = (parts: readonly (LinePart | null)[], columns: number) =>
    fitParts(parts.filter(part => part !== null).map(wordsOnly(theme)), { ...place, columns })
  if (rows === 2) return [fitted(upper, columns), fitted(lower, columns)]
  // In a build much is said of what it works on, and an activity that changes each second must not change how.
  const room = state.build === null ? null : roomBesideDoing(does, columns)
  if (room === null) return [fitted([...upper, ...lower], columns)]
  const separator = theme.paint('dim', theme.symbols ? ' · ' : ', ')
  const begin = fitted(upper, room) + separator
  const end = doingParts({ ...does, words: does.short }, LEAST_DOING)
  return [begin + fitted(end, columns - widthOf(begin))]
}

/** Cells that an activity takes at least before it is cut, as a rule and on a narrow line. */
const ENOUGH_DOING = 24
const LEAST_DOING = 10

/** A screen reader gets words: the forms that are short for the eye are none. */
function wordsOnly({ symbols }: Theme): (part: LinePart) => LinePart {
  return part => (symbols ? part : { ...part, forms: [part.forms[0]] })
}

function titlePart(state: SessionState, board: TaskBoard | null): LinePart | null {
  const title = titleOf(state, board)
  return title === '' ? null : { forms: [title], importance: 60, least: 12, role: 'strong' }
}

function taskParts(state: SessionState, board: TaskBoard | null): LinePart[] {
  const at = board && taskAtWork(board)
  if (!at) return phaseParts(state, null)
  const { task, place, shortPlace, done, total } = at
  if (task === null) {
    const words: LinePart['forms'] = [`${done} of ${formatCount(total, 'task')} done`, `${place} tasks`]
    return [{ forms: words, importance: 70, role: 'accent' }, ...phaseParts(state, null)]
  }
  const label = `Task ${place}`
  const name: LinePart = {
    forms: [`${label}: ${oneLine(task.name, NAME_CHARS)}`, label, shortPlace],
    importance: 70,
    least: 26,
    enough: widthOf(label) + TASK_CELLS,
    role: 'accent',
  }
  return [name, ...phaseParts(state, task.phase)]
}

/** The phase of the task at work: of a build, `Building Phase`, or what the round is for if it is not for a task. */
function phaseParts({ build, running }: SessionState, phase: string | null): LinePart[] {
  const name = oneLine(phase ?? '', NAME_CHARS)
  if (build === null) return name === '' ? [] : [{ forms: [name], importance: 10, least: 8, role: 'dim' }]
  const part = running?.part ?? null
  const isOfTask = part === null || part === 'orchestration'
  if (!isOfTask || name === '') return part === null || isOfTask ? [] : [phasePart(capital(wordsForPart(part)))]
  return [phasePart(`${name} Phase`, name)]
}

function phasePart(...forms: LinePart['forms']): LinePart {
  return { forms, importance: 65, least: 16, role: 'plain' }
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function roundPart({ running, roundsUsed, limits }: SessionState): LinePart {
  const most = limits.rounds
  const [of, ofShort] = most === null ? ['', ''] : [` of ${most}`, `/${most}`]
  const words = running === null ? wordsForRounds(roundsUsed, most) : `round ${running.round}${of}`
  return { forms: [words, `R${running?.round ?? roundsUsed}${ofShort}`], importance: 80, role: 'plain' }
}

function wordsForRounds(used: number, most: number | null): string {
  return most === null ? formatCount(used, 'round') : `${used} of ${formatCount(most, 'round')}`
}

function elapsedPart(state: SessionState, now: number): LinePart {
  const elapsed = elapsedMs(state, 'running', now)
  const isBuild = state.build !== null
  const clock = isBuild ? formatFullClock(elapsed) : formatClock(elapsed)
  const { timeMs } = state.limits
  const full = `${isBuild ? 'Time ' : ''}${clock}${timeMs === null ? '' : ` of ${formatSpan(timeMs)}`}`
  return { forms: isBuild ? [full, clock, formatClock(elapsed)] : [full, clock], importance: 75, role: 'plain' }
}

const DOING_ROLES: Readonly<Record<Doing['kind'], Role>> = {
  'at-work': 'accent',
  waiting: 'warning',
  held: 'warning',
  done: 'good',
  ended: 'bad',
}

function doingParts({ kind, words, short, time, next }: Doing, least = ENOUGH_DOING): LinePart[] {
  const now: LinePart = { forms: [words, short], importance: 100, least, tail: time, role: DOING_ROLES[kind] }
  return next === null ? [now] : [now, { forms: [next, next.split(' ', 1)[0] ?? ''], importance: 90, role: 'warning' }]
}

function usedParts(state: SessionState, now: number): LinePart[] {
  const tokens = sessionTokens(state)
  const context = contextPercent(state)
  return [
    {
      forms: [wordsForTokensUsed(tokens, state.limits), `${shortNumber(tokens)} tok`],
      importance: 30,
      role: 'dim',
    },
    ...(context === null ? [] : [contextPart(context)]),
    ...windowParts(state, now),
  ]
}

function contextPart(percent: number): LinePart {
  const role = percent >= 85 ? 'warning' : 'dim'
  return { forms: [`context ${percent} %`, `ctx ${percent}%`], importance: 40, role }
}

/** How full the context of the running round is; null if codex has not said it of this one. */
function contextPercent({ running, threadTokens, contextTokens, contextWindow }: SessionState): number | null {
  const isReported = running !== null && running.thread !== null && Object.hasOwn(threadTokens, running.thread)
  if (!isReported || contextTokens === null || !contextWindow) return null
  return Math.min(100, Math.round((contextTokens / contextWindow) * 100))
}

function windowParts(state: SessionState, now: number): LinePart[] {
  const window = usedWindow(state, now)
  if (window === null) return []
  const percent = Math.round(window.usedPercent)
  const span = window.windowMinutes === null ? '' : ` of ${formatSpan(window.windowMinutes * 60_000)}`
  const resets = window.resetsAt === null ? '' : `, resets ${shortMoment(window.resetsAt, now)}`
  return [
    {
      forms: [`usage ${percent} %${span}${resets}`, `usage ${percent} %${resets}`, `${percent} %${resets}`],
      importance: 50,
      role: percent >= 85 ? 'warning' : 'dim',
    },
  ]
}

function modelPart({ model, effort, modelInUse, effortInUse }: SessionState): LinePart | null {
  const words = [modelInUse ?? model, effortInUse ?? effort]
    .filter(word => word !== null)
    .map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? null : { forms: [words.join(' ')], importance: 20, least: 10, role: 'dim' }
}

function queuedPart({ queued }: HeaderData): LinePart | null {
  return queued === 0 ? null : { forms: [`${queued} queued`], importance: 45, role: 'dim' }
}
