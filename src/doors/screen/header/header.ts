import type { LiveItem } from '../../../core/events/live-board.ts'
import type { TaskBoard } from '../../../core/state/plan.ts'
import {
  elapsedMs,
  modelNow,
  partOf,
  type SessionState,
  sessionTokens,
  sourceInUse,
} from '../../../core/state/state.ts'
import { cutLine, widthOf } from '../../../tell/words/cells.ts'
import { type Doing, doing, taskAtWork, titleOf, usedWindow } from '../../../tell/words/doing.ts'
import {
  formatClock,
  formatCost,
  formatCount,
  formatFullClock,
  formatSpan,
  shortMoment,
  shortNumber,
} from '../../../tell/words/numbers.ts'
import { wordsForCost, wordsForTokensUsed } from '../../../tell/words/outcome.ts'
import { wordsForPart } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { statusOfWork, titleOfRound } from '../../../tell/words/work.ts'
import type { Role, Theme } from '../terminal/theme.ts'

const NAME_CHARS = 120
/** The cells of a task's name that are shown before the title is cut. */
const TASK_CELLS = 40

/**
 * The header on one or two lines: the session, task and round, the current activity, and what was used. Each line is at
 * most `columns` cells wide: parts that do not fit are shortened or left out, the least important first. `now`: Unix ms.
 */
export function headerLines(
  data: HeaderData,
  { columns, rows, theme, now }: { columns: number; rows: 1 | 2; theme: Theme; now: number },
): string[] {
  const { state, board } = data
  const upper = [titlePart(state, board), ...taskParts(state, board), roundPart(state), elapsedPart(state, now)]
  const does = withSign(doing(state, data.live, now), data.sign ?? null)
  const lower = [...doingParts(does), ...usedParts(state, now), modelPart(state), queuedPart(data)]
  const fitted = (parts: readonly (LinePart | null)[], columns: number) =>
    fitParts(parts.filter(part => part !== null).map(wordsOnly(theme)), { columns, theme })
  if (rows === 2) return [fitted(upper, columns), fitted(lower, columns)]
  // With a plan there are many parts, whose wording must not change with an activity that changes each second.
  const room = state.taskPlan === null ? null : roomBesideDoing(does, columns)
  if (room === null) return [fitted([...upper, ...lower], columns)]
  const separator = theme.paint('dim', theme.symbols ? ' · ' : ', ')
  const begin = fitted(upper, room) + separator
  const end = doingParts({ ...does, words: does.short }, LEAST_DOING)
  return [begin + fitted(end, columns - widthOf(begin))]
}

/** `queued`: the number of prompts in the queue. `sign`: stands before what is at work, and moves as long as something comes; null: none. */
interface HeaderData {
  state: SessionState
  board: TaskBoard | null
  live: readonly LiveItem[]
  queued: number
  sign?: string | null
}

/** The cells to which an activity may be cut; the second one on a narrow line. */
const ENOUGH_DOING = 24
const LEAST_DOING = 10

/** For a screen reader, only the longest form of a part: the shorter ones are abbreviations. */
function wordsOnly({ symbols }: Theme): (part: LinePart) => LinePart {
  return part => (symbols ? part : { ...part, forms: [part.forms[0]] })
}

function titlePart(state: SessionState, board: TaskBoard | null): LinePart | null {
  const title = titleOf(state, board)
  return title === '' ? null : { forms: [title], importance: 60, least: 12, role: 'strong' }
}

function taskParts(state: SessionState, board: TaskBoard | null): LinePart[] {
  const work = statusOfWork(state)
  if (work !== null) {
    return [
      { forms: shorterAndShorter(work), importance: 70, isLate: true, role: 'accent' },
      ...phaseParts(state, null),
    ]
  }
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

/** A state and its facts (`EXECUTING_TASKS, plan v2, 3/9 done`), then without the last of them, and at last the state alone. */
function shorterAndShorter(work: string): LinePart['forms'] {
  const facts = oneLine(work, NAME_CHARS).split(', ')
  const [whole, ...shorter] = facts.map((_, left) => facts.slice(0, facts.length - left).join(', '))
  return [whole ?? '', ...shorter]
}

/** The phase of the current task, of a plan as `Building Phase`; else the purpose of a round that is not for a task. */
function phaseParts(state: SessionState, phase: string | null): LinePart[] {
  const { kind, taskPlan, running } = state
  const name = oneLine(phase ?? '', NAME_CHARS)
  if (taskPlan === null && name !== '') return [{ forms: [name], importance: 10, least: 8, role: 'dim' }]
  // What a round with a name of its own is for, its name says.
  const part = titleOfRound(state) === null ? (running?.part ?? null) : null
  const isOfTask = part === null || partOf(kind, part).delegates
  if (!isOfTask || name === '')
    return part === null || isOfTask ? [] : [phasePart(capital(wordsForPart({ kind }, part)))]
  return [phasePart(`${name} Phase`, name)]
}

function phasePart(...forms: LinePart['forms']): LinePart {
  return { forms, importance: 65, least: 16, role: 'plain' }
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function roundPart(state: SessionState): LinePart {
  const own = titleOfRound(state)
  if (own !== null) {
    const forms: LinePart['forms'] = [own.title]
    return { forms, importance: 80, least: 12, enough: TASK_CELLS, role: 'plain' }
  }
  const { running, roundsUsed, limits } = state
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
  const hasPlan = state.taskPlan !== null
  const clock = hasPlan ? formatFullClock(elapsed) : formatClock(elapsed)
  const { timeMs } = state.limits
  const full = `${hasPlan ? 'Time ' : ''}${clock}${timeMs === null ? '' : ` of ${formatSpan(timeMs)}`}`
  return { forms: hasPlan ? [full, clock, formatClock(elapsed)] : [full, clock], importance: 75, role: 'plain' }
}

const DOINGS: Readonly<Record<Doing['kind'], { role: Role; symbol: string }>> = {
  'at-work': { role: 'accent', symbol: '▸ ' },
  waiting: { role: 'warning', symbol: '⏳ ' },
  held: { role: 'warning', symbol: '⏸ ' },
  done: { role: 'good', symbol: '✔ ' },
  ended: { role: 'bad', symbol: '✖ ' },
}

function withSign(does: Doing, sign: string | null): Doing {
  const { kind, words, short } = does
  return sign === null || kind !== 'at-work' ? does : { ...does, words: `${sign} ${words}`, short: `${sign} ${short}` }
}

function doingParts({ kind, words, short, time, next }: Doing, least = ENOUGH_DOING): LinePart[] {
  const now: LinePart = { forms: [words, short], importance: 100, least, tail: time, role: DOINGS[kind].role }
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
    ...costParts(state),
    ...(context === null ? [] : [contextPart(context)]),
    ...windowParts(state, now),
  ]
}

/** What the session has cost, where there are prices. */
function costParts({ prices, cost, limits }: SessionState): LinePart[] {
  if (prices.length === 0) return []
  const forms: LinePart['forms'] = [wordsForCost(cost, limits), `cost ${formatCost(cost.amount)}`]
  return [{ forms, importance: 35, role: 'dim' }]
}

function contextPart(percent: number): LinePart {
  const role = percent >= 85 ? 'warning' : 'dim'
  return { forms: [`context ${percent} %`, `ctx ${percent}%`], importance: 40, role }
}

/** How full the context of the running round is, in percent; null if codex has not reported it yet. */
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

function modelPart(state: SessionState): LinePart | null {
  const { effort, effortInUse } = state
  const source = sourceInUse(state)
  const words = [modelNow(state), effortInUse ?? effort, source === null ? null : `of ${source}`]
    .filter(word => word !== null)
    .map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? null : { forms: [words.join(' ')], importance: 20, least: 10, role: 'dim' }
}

function queuedPart({ queued }: HeaderData): LinePart | null {
  return queued === 0 ? null : { forms: [`${queued} queued`], importance: 45, role: 'dim' }
}

/** One part of a header line. */
interface LinePart {
  /** The wordings, the longest first. */
  forms: readonly [string, ...string[]]
  /** Parts that do not fit in their shortest form are left out, the least important first; spare room goes to the most important. */
  importance: number
  /** The cells to which a form may be cut; left out: it is not cut. */
  least?: number
  /** The cells beyond which it grows only when every other part has all the room it can use. */
  enough?: number
  /** A longer form is only taken of the room that is left once more important parts have enough. */
  isLate?: true
  /** A suffix of each form that is never cut: `0:42`. */
  tail?: string | null
  role: Role
}

/** A line of at most `columns` cells with the parts that fit, in their order. */
function fitParts(parts: readonly LinePart[], { columns, theme }: { columns: number; theme: Theme }): string {
  const separator = theme.symbols ? ' · ' : ', '
  const kept = parts.map(inShortestForm)
  let room = columns - widthOfAll(kept, separator)
  while (room < 0 && kept.length > 1) {
    kept.splice(leastImportant(kept), 1)
    room = columns - widthOfAll(kept, separator)
  }
  const byImportance = kept.toSorted((a, b) => b.part.importance - a.part.importance)
  for (const fitted of byImportance) if (!fitted.part.isLate) room -= takeLongestForm(fitted, room)
  for (const fitted of byImportance) {
    room -= fitted.part.isLate ? takeLongestForm(fitted, room) : widen(fitted, room, fitted.part.enough)
  }
  for (const fitted of byImportance) room -= widen(fitted, room)
  const texts = kept.map(fitted => theme.paint(fitted.part.role, textOf(fitted)))
  return cutLine(texts.join(theme.paint('dim', separator)), columns)
}

/** A part in one of its forms, cut to `width` cells. */
interface Fitted {
  part: LinePart
  text: string
  width: number
}

function inShortestForm(part: LinePart): Fitted {
  const form = part.forms.length - 1
  return { part, text: part.forms[form] ?? '', width: leastWidth(part, form) }
}

function leastWidth({ forms, least }: LinePart, form: number): number {
  const width = widthOf(forms[form] ?? '')
  return Math.min(width, least ?? width)
}

function widthOfAll(all: readonly Fitted[], separator: string): number {
  return all.reduce((sum, { part, width }) => sum + width + tailWidth(part), (all.length - 1) * separator.length)
}

function tailWidth({ tail }: LinePart): number {
  return tail ? widthOf(tail) + 1 : 0
}

function leastImportant(all: readonly Fitted[]): number {
  const importances = all.map(({ part }) => part.importance)
  return importances.lastIndexOf(Math.min(...importances))
}

/** Switches to the longest form that fits; returns the cells it takes of the room. */
function takeLongestForm(fitted: Fitted, room: number): number {
  const { part, width } = fitted
  for (const [form, text] of part.forms.entries()) {
    const more = leastWidth(part, form) - width
    if (more > room || more < 0) continue
    fitted.text = text
    fitted.width += more
    return more
  }
  return 0
}

/** Widens a form that is cut, to at most `enough` cells, or narrows it if `room` is negative; returns the cells it takes. */
function widen(fitted: Fitted, room: number, enough = Number.POSITIVE_INFINITY): number {
  const most = Math.min(widthOf(fitted.text), Math.max(enough, fitted.width))
  const more = Math.max(-fitted.width, Math.min(most - fitted.width, room))
  fitted.width += more
  return more
}

function textOf({ part, text, width }: Fitted): string {
  const cut = cutLine(text, width)
  return part.tail ? `${cut} ${part.tail}` : cut
}

/** Below this width one line has no room for all parts in words. */
const NARROW_COLUMNS = 60
const SEPARATOR_CELLS = 3
/** The cells reserved for an activity and its time, which change while it works: `npm run tes… 0:12`. */
const ACTIVITY_CELLS = 17
/** The largest share of the line that is reserved for it. */
const MOST_SHARE = 0.6
/** The cells of `T2/8 · R2/20`. */
const LEAST_REST = 14

/** The cells beside the activity on a narrow line, constant while a session works. Null if the line is wide, or too narrow. */
function roomBesideDoing({ kind, short, time, next }: Doing, columns: number): number | null {
  if (columns >= NARROW_COLUMNS) return null
  const still = widthOf(short) + (time === null ? 0 : widthOf(time) + 1)
  const then = next === null ? 0 : widthOf(next.split(' ', 1)[0] ?? '') + SEPARATOR_CELLS
  const now = Math.min((kind === 'at-work' ? ACTIVITY_CELLS : still) + then, Math.ceil(columns * MOST_SHARE))
  const room = columns - now - SEPARATOR_CELLS
  return room < LEAST_REST ? null : room
}

const TITLE_CELLS = 80
const DOING_CELLS = 36
const PLACE_CELLS = 24

/**
 * The title of the terminal's window: `▸ R4 T2/15 npm test — linkcheck`. One line without control characters, at most 80
 * cells wide; words alone if `symbols` is false. Contains no running time, so that it changes rarely. `now`: Unix ms.
 */
export function windowTitle(
  { state, board, live }: Omit<HeaderData, 'queued' | 'sign'>,
  { symbols, now }: { symbols: boolean; now: number },
): string {
  const { kind, words, short } = doing(state, live, now)
  const place = state.ended === null ? placeOf(state, board) : null
  const facts = [
    ...(state.running === null ? [] : [roundOf(state, state.running.round, symbols)]),
    ...(place === null ? [] : [place]),
    cutLine(symbols ? short : words, DOING_CELLS),
  ]
  const title = titleOf(state, board)
  const line = `${symbols ? DOINGS[kind].symbol : ''}${facts.join(' ')}${title === '' ? '' : ` — ${title}`}`
  return cutLine(line, TITLE_CELLS)
}

function roundOf(state: SessionState, round: number, symbols: boolean): string {
  const own = titleOfRound(state)
  if (own !== null) return cutLine(own.title, PLACE_CELLS)
  return symbols ? `R${round}` : `round ${round}`
}

/** How far the work is, in short: in the template's own words, or `T2/15`; null if there is nothing to say. */
function placeOf(state: SessionState, board: TaskBoard | null): string | null {
  const work = statusOfWork(state)
  return work === null
    ? ((board && taskAtWork(board)?.shortPlace) ?? null)
    : cutLine(oneLine(work, NAME_CHARS), PLACE_CELLS)
}
