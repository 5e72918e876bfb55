import type { LiveItem } from '../../../core/events/live-board.ts'
import type { TaskBoard } from '../../../core/state/plan.ts'
import {
  elapsedMs,
  fromSource,
  modelNow,
  partOf,
  type SessionState,
  sessionTokens,
  sourceInUse,
} from '../../../core/state/state.ts'
import { cutLine, widthOf } from '../../../tell/words/cells.ts'
import { type Doing, doing, factsInShort, titleOf, usedWindow, wordsForRound } from '../../../tell/words/doing.ts'
import { formatClock, formatCost, formatSpan, formatTokens, shortMoment } from '../../../tell/words/numbers.ts'
import { wordsForCost, wordsForTokensUsed } from '../../../tell/words/outcome.ts'
import { wordsForPart } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { type ShownBoard, statusOfWork, titleOfRound } from '../../../tell/words/work.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { estimatedLeft, progressOf } from './tasks.ts'

const NAME_CHARS = 120
/** The cells of a task's name that are shown before less important parts get theirs. */
const TASK_CELLS = 40

/**
 * The status line: state, task, tasks done, round, time and tokens, then what else there is room for. It is at most `columns`
 * cells wide: parts are shortened or left out, the least important first. `now`: Unix ms.
 */
export function statusLineOf(
  data: StatusData,
  { columns, theme, now }: { columns: number; theme: Theme; now: number },
): string {
  const { state, board } = data
  // The rows above show what is at work.
  const does = withSign(doing({ ...state, agents: [] }, null, now), data.sign ?? null)
  const parts = [
    ...doingParts(does),
    ...taskParts(state, board),
    roundPart(state),
    elapsedPart(state, now),
    estimatePart(data, now),
    ...usedParts(state, now),
    modelPart(state),
    queuedPart(data),
  ]
  return fitParts(parts.filter(part => part !== null).map(wordsOnly(theme)), { columns, theme })
}

/** `own`: the board of the template's own; `queued`: the number of prompts in the queue that are not shown. `sign`: stands before what is at work, and moves as long as something comes; null: none. */
interface StatusData {
  state: SessionState
  board: TaskBoard | null
  own?: ShownBoard | null
  queued: number
  sign?: string | null
}

/** The cells to which the state may be cut. */
const ENOUGH_DOING = 24

/** For a screen reader, only the longest form of a part: the shorter ones are abbreviations. */
function wordsOnly({ symbols }: Theme): (part: LinePart) => LinePart {
  return part => (symbols ? part : { ...part, forms: [part.forms[0]] })
}

/** The task at work by its name, of a session without tasks its title; and how many tasks are done. */
function taskParts(state: SessionState, board: TaskBoard | null): LinePart[] {
  const work = statusOfWork(state)
  if (work !== null) {
    return [
      { forms: shorterAndShorter(work), importance: 85, isLate: true, role: 'accent' },
      ...purposeParts(state, null),
    ]
  }
  const tasks = progressOf(board)
  if (tasks === null || board === null) return [...namePart(titleOf(state, board)), ...purposeParts(state, null)]
  const task = board.tasks.find(({ id }) => id === board.current)
  return [
    ...namePart(oneLine(task?.name ?? '', NAME_CHARS)),
    { forms: tasks, importance: 80, role: 'plain' },
    ...purposeParts(state, task?.phase ?? null),
  ]
}

function namePart(name: string): LinePart[] {
  return name === '' ? [] : [{ forms: [name], importance: 85, least: 12, enough: TASK_CELLS, role: 'accent' }]
}

/** A state and its facts (`EXECUTING_TASKS, plan v2, 3 of 9 tasks`), then without the last of them, and at last the state alone. */
function shorterAndShorter(work: string): LinePart['forms'] {
  const facts = oneLine(work, NAME_CHARS).split(', ')
  const [whole, ...shorter] = facts.map((_, left) => facts.slice(0, facts.length - left).join(', '))
  return [whole ?? '', ...shorter]
}

/** The phase of the current task; else the purpose of a round that is not for a task. */
function purposeParts(state: SessionState, phase: string | null): LinePart[] {
  // What a round with a name of its own is for, its name says.
  const part = titleOfRound(state) === null ? (state.running?.part ?? null) : null
  if (part !== null && !partOf(state.kind, part).delegates) {
    return [{ forms: [wordsForPart(state, part)], importance: 82, least: 16, role: 'plain' }]
  }
  const name = oneLine(phase ?? '', NAME_CHARS)
  return name === '' ? [] : [{ forms: [name], importance: 10, least: 8, role: 'dim' }]
}

/** The round that runs, else the last one; null before the first. */
function roundPart(state: SessionState): LinePart | null {
  const own = titleOfRound(state)
  if (own !== null) {
    const forms: LinePart['forms'] = [own.title]
    return { forms, importance: 75, least: 12, enough: TASK_CELLS, role: 'plain' }
  }
  const words = wordsForRound(state)
  return words === null
    ? null
    : { forms: [words, wordsForRound({ ...state, limits: { rounds: null } }) ?? words], importance: 75, role: 'plain' }
}

function elapsedPart(state: SessionState, now: number): LinePart {
  const clock = formatClock(elapsedMs(state, 'running', now))
  const { timeMs } = state.limits
  const forms: LinePart['forms'] = timeMs === null ? [clock] : [`${clock} of ${formatSpan(timeMs)}`, clock]
  return { forms, importance: 70, role: 'plain' }
}

function estimatePart({ state, board, own = null }: StatusData, now: number): LinePart | null {
  const left = estimatedLeft(state, { board, own }, now)
  return left === null ? null : { forms: [left], importance: 55, role: 'dim' }
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

function doingParts({ kind, words, short, time, next }: Doing): LinePart[] {
  const now: LinePart = {
    forms: [words, short],
    importance: 100,
    least: ENOUGH_DOING,
    tail: time,
    role: DOINGS[kind].role,
  }
  return next === null ? [now] : [now, { forms: [next, next.split(' ', 1)[0] ?? ''], importance: 90, role: 'warning' }]
}

function usedParts(state: SessionState, now: number): LinePart[] {
  const tokens = sessionTokens(state)
  const context = contextPercent(state)
  return [
    { forms: [wordsForTokensUsed(tokens, state.limits), formatTokens(tokens)], importance: 60, role: 'dim' },
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
  return { forms: [`context ${percent} %`], importance: 40, role: percent >= 85 ? 'warning' : 'dim' }
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
      forms: [`usage ${percent} %${span}${resets}`, `usage ${percent} %${resets}`, `usage ${percent} %`],
      importance: 50,
      role: percent >= 85 ? 'warning' : 'dim',
    },
  ]
}

function modelPart(state: SessionState): LinePart | null {
  const { effort, effortInUse } = state
  const model = modelNow(state)
  const words = [model, effortInUse ?? effort, fromSource(model, sourceInUse(state))]
    .filter(word => word !== null)
    .map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? null : { forms: [words.join(' ')], importance: 20, least: 10, role: 'dim' }
}

function queuedPart({ queued }: StatusData): LinePart | null {
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
  const kept = withRoom(parts, columns, separator).map(inShortestForm)
  let room = columns - widthOfAll(kept, separator)
  while (room < 0 && kept.length > 1) {
    kept.splice(leastImportant(kept), 1)
    room = columns - widthOfAll(kept, separator)
  }
  const byImportance = kept.toSorted((a, b) => b.part.importance - a.part.importance)
  for (const fitted of byImportance) {
    if (fitted.part.isLate) continue
    room -= takeLongestForm(fitted, room)
    room -= widen(fitted, room, fitted.part.enough)
  }
  for (const fitted of byImportance) if (fitted.part.isLate) room -= takeLongestForm(fitted, room)
  for (const fitted of byImportance) room -= widen(fitted, room)
  const texts = kept.map(fitted => theme.paint(fitted.part.role, textOf(fitted)))
  return cutLine(texts.join(theme.paint('dim', separator)), columns)
}

/** The parts without those of little importance for which another would be shortened, the least important first. */
function withRoom(parts: readonly LinePart[], columns: number, separator: string): LinePart[] {
  const kept = parts.toSorted((a, b) => b.importance - a.importance)
  for (let least = kept.at(-1); least !== undefined && least.importance < NEEDED; least = kept.at(-1)) {
    const isSpare = least.importance < USUAL
    const width = kept.reduce((sum, part) => sum + usualWidth(part, isSpare) + separator.length, -separator.length)
    if (width <= columns) break
    kept.pop()
  }
  return parts.filter(part => kept.includes(part))
}

/** From this importance on a part is rather cut than left out; below the other it never has another shortened. */
const NEEDED = 65
const USUAL = 60

/** The cells of a name, or of any part in its longest form; else in its shortest one. */
function usualWidth(part: LinePart, isLongest: boolean): number {
  const { forms, least, enough = Number.POSITIVE_INFINITY } = part
  const form = forms[isLongest || least !== undefined ? 0 : forms.length - 1] ?? ''
  return Math.min(widthOf(form), enough) + tailWidth(part)
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

const TITLE_CELLS = 80
const DOING_CELLS = 36
const PLACE_CELLS = 24

/**
 * The title of the terminal's window: `▸ npm test · 1 of 15 tasks · round 4 of 20 — linkcheck`. One line without control
 * characters, at most 80 cells wide; no signs if `symbols` is false. Contains no running time, so that it changes rarely. `now`: Unix ms.
 */
export function windowTitle(
  { state, board, live }: Pick<StatusData, 'state' | 'board'> & { live: readonly LiveItem[] },
  { symbols, now }: { symbols: boolean; now: number },
): string {
  const { kind, words, short } = doing(state, live, now)
  const facts = [
    cutLine(symbols ? short : words, DOING_CELLS),
    ...(state.ended === null ? factsInShort(state, board, PLACE_CELLS) : []),
  ]
  const title = titleOf(state, board)
  const line = `${symbols ? DOINGS[kind].symbol : ''}${facts.join(symbols ? ' · ' : ', ')}${title === '' ? '' : ` — ${title}`}`
  return cutLine(line, TITLE_CELLS)
}
