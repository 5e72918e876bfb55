import type { LiveItem } from '../core/events/live-board.ts'
import type { AgentAtWork } from '../core/state/plan.ts'
import type { SessionState } from '../core/state/state.ts'
import { cutLine, padLine, widthOf } from '../words/cells.ts'
import { wordsForItem } from '../words/doing.ts'
import { formatClock } from '../words/numbers.ts'
import { agentOf, idsOf, isDelegation } from '../words/plan.ts'
import { finishedPart } from './blocks/layout.ts'
import { liveItemLines } from './blocks/item-lines.ts'
import type { Theme } from './terminal/theme.ts'

/** The last part of a message: `isAgain` if it is the whole once more, for it came out otherwise than it was streamed. */
export interface MessageEnd {
  markdown: string
  isAgain: boolean
}

/** One message of the agent on its way into the scrollback: what of it is finished is printed, once; the rest is live. */
export class MessageStream {
  #text = ''
  #printed = 0

  /** What is not printed yet. */
  get rest(): string {
    return this.#text.slice(this.#printed)
  }

  /**
   * The markdown blocks that have become whole, to be printed now; empty if none.
   * @param text the message so far; it begins with what it was before
   */
  advance(text: string): string {
    if (text.length === this.#text.length) return ''
    this.#text = text
    const rest = this.rest
    const finished = rest.slice(0, finishedPart(rest))
    this.#printed += finished.length
    return finished
  }

  /** What is still to be printed of the message as it is in the end. */
  end(text: string): MessageEnd {
    const printed = this.#text.slice(0, this.#printed)
    if (text.startsWith(printed)) return { markdown: text.slice(printed.length), isAgain: false }
    const words = printed.trimEnd()
    // The white space after a block may come out otherwise than it was streamed.
    const isPrinted = text.startsWith(words) && /^(?:\s|$)/.test(text.slice(words.length))
    return isPrinted ? { markdown: text.slice(words.length), isAgain: false } : { markdown: text, isAgain: true }
  }
}

/** A place for the lines of what runs. */
export interface LiveLinesPlace {
  columns: number
  /** The most lines. */
  rows: number
  theme: Theme
  /** Unix time, ms. */
  now: number
}

/** Rows that what is not looked at most gets, if it wants them: what it is, and its last line. */
const MODEST_ROWS = 2

/**
 * What codex does just now, the latest last, in at most `rows` lines: each has a line if there are enough, and the
 * latest message or command gets the most of them.
 */
export function liveLines(items: readonly LiveItem[], { columns, rows, theme, now }: LiveLinesPlace): string[] {
  if (rows <= 0) return []
  const linesOf = (live: LiveItem, most: number) => liveItemLines(live, { columns, theme, rows: most, now })
  // More than one line for each would only push another out.
  const looked = items.slice(-rows).map(live => ({ live, lines: linesOf(live, rows) }))
  const seen = looked.filter(({ lines }) => lines.length > 0)
  const isCut = items.length > looked.length && rows > 2
  const shares = sharesOf(seen, isCut ? rows - 1 : rows)
  const shown = seen.flatMap(({ live, lines }, i) => {
    const share = shares[i] ?? 0
    if (lines.length <= share) return lines
    return share === 0 ? [] : linesOf(live, share).slice(0, share)
  })
  if (!isCut) return shown
  const left = items.length - shares.filter(share => share > 0).length
  return [theme.paint('dim', cutLine(`${theme.symbols ? '… ' : ''}${left} more running`, columns)), ...shown]
}

interface Seen {
  live: LiveItem
  lines: readonly string[]
}

/** How many rows each gets. */
function sharesOf(seen: readonly Seen[], rows: number): number[] {
  const shares = seen.map(() => 0)
  let left = rows
  const give = (at: number, most: number) => {
    const more = Math.max(0, Math.min(left, Math.min(most, seen[at]?.lines.length ?? 0) - (shares[at] ?? 0)))
    shares[at] = (shares[at] ?? 0) + more
    left -= more
  }
  const latestFirst = seen.map((_, at) => at).reverse()
  const main = seen.findLastIndex(({ live }) => live.item.kind === 'agent-message' || live.item.kind === 'command')
  for (const at of latestFirst) give(at, 1)
  give(main, Math.ceil(rows / 2))
  for (const at of latestFirst) give(at, MODEST_ROWS)
  give(main, rows)
  for (const at of latestFirst) give(at, rows)
  return shares
}

const MOST_ROWS = 6
/** From so many columns on, two agents stand side by side. */
const COLUMNS_FOR_TWO = 100
/** From so many cells on, what they do stands below each other. */
const CELLS_FOR_ALIGNED = 44
const GAP = 2
const MOST_NAME = 22
const MOST_IDS = 12

/**
 * Who is at work because another agent has given it a task, and on what: `● frontend-dev  T2  running npm test 0:12`. At
 * most six lines, and at most `rows`; two agents on a line where there is room.
 */
export function agentLines(
  agents: readonly AgentAtWork[],
  live: readonly LiveItem[],
  { columns, rows, theme, now }: LiveLinesPlace,
): string[] {
  const most = Math.min(MOST_ROWS, rows)
  if (agents.length === 0 || most < 1) return []
  const onLine = columns >= COLUMNS_FOR_TWO && agents.length > 1 ? 2 : 1
  const cells = Math.floor((columns - (onLine - 1) * GAP) / onLine)
  const room = most * onLine
  const shown = agents.slice(0, agents.length <= room ? room : room - 1)
  const left = agents.length - shown.length
  const words = shown.length === 0 ? `${left} agents at work` : `+${left} more`
  const drawn = [
    ...drawAgents(shown, live, { cells, theme, now }),
    ...(left === 0 ? [] : [theme.paint('dim', cutLine(words, cells))]),
  ]
  return onLine === 1 ? drawn : sideBySide(drawn, cells)
}

function drawAgents(
  agents: readonly AgentAtWork[],
  live: readonly LiveItem[],
  { cells, theme, now }: { cells: number; theme: Theme; now: number },
): string[] {
  const named = agents.map(agent => ({ agent, name: agentOf(agent.instance), ids: idsOf(agent.tasks) }))
  const widest = (of: readonly string[], most: number) => Math.min(most, Math.max(...of.map(widthOf)))
  const isAligned = cells >= CELLS_FOR_ALIGNED
  const nameCells = widest(
    named.map(({ name }) => name),
    MOST_NAME,
  )
  const idCells = widest(
    named.map(({ ids }) => ids),
    MOST_IDS,
  )
  return named.map(({ agent, name, ids }) => {
    const { words, time } = workOf(agent, live, now)
    const head = [
      theme.symbols ? theme.paint('accent', '●') : '',
      theme.paint('strong', isAligned ? padLine(name, nameCells) : cutLine(name, nameCells)),
      theme.paint('accent', isAligned ? padLine(ids, idCells) : cutLine(ids, idCells)),
    ].filter(part => widthOf(part) > 0)
    const begin = `${head[0]} ${head.slice(1).join(isAligned ? '  ' : ' ')}  `
    const end = time === null ? '' : ` ${time}`
    const room = cells - widthOf(begin) - widthOf(end)
    return room < LEAST_WORDS ? cutLine(begin.trimEnd(), cells) : begin + cutLine(words, room) + theme.paint('dim', end)
  })
}

const LEAST_WORDS = 6

/** What an agent does just now, and since when if that is worth saying. */
function workOf(
  { instance }: AgentAtWork,
  live: readonly LiveItem[],
  now: number,
): { words: string; time: string | null } {
  const latest = live.findLast(each => each.instance === instance)
  if (latest === undefined) return { words: 'thinking', time: null }
  const { words, isTimed } = wordsForItem(latest.item)
  return { words, time: isTimed ? formatClock(now - latest.startedAt) : null }
}

function sideBySide(drawn: readonly string[], cells: number): string[] {
  const lines: string[] = []
  for (let at = 0; at < drawn.length; at += 2) {
    const [left = '', right] = [drawn[at], drawn[at + 1]]
    lines.push(right === undefined ? left : padLine(left, cells) + ' '.repeat(GAP) + right)
  }
  return lines
}

/**
 * All that is done just now, in at most `rows` lines: what the round's own agent does, and below it who else is at work.
 * Those take at most half of the lines where there are few.
 */
export function workLines(
  { agents }: Pick<SessionState, 'agents'>,
  live: readonly LiveItem[],
  place: LiveLinesPlace,
): string[] {
  const { rows } = place
  const own = live.filter(({ item, instance }) => instance === undefined && !isDelegation(item))
  const half = own.length === 0 ? rows : Math.max(1, Math.floor(rows / 2))
  const others = agentLines(agents, live, { ...place, rows: Math.min(rows, half) })
  return [...liveLines(own, { ...place, rows: rows - others.length }), ...others]
}

/** How much of it is shown moves on at this pace at least, in characters a second: what a quick reader follows. */
const CALM_PACE = 120
/** What has arrived is shown after this time at the latest, ms. */
const MOST_LAG_MS = 800

/**
 * A text that grows, revealed at a calm typing pace: faster the more of it waits, so that nothing waits for more than
 * 0.8 s, whatever arrives. Cuts between characters as a reader sees them. Has no timer: `step` says what time it is.
 */
export class TypedText {
  readonly #atOnce: boolean
  #text = ''
  /** Characters of it (UTF-16) that are shown. */
  #shown = 0
  /** How many had arrived at the last step. */
  #seen = 0
  /** Characters a millisecond; it does not sink while anything waits, so that what came first is not held up. */
  #pace = 0
  #steppedAt = 0
  /** What a step was too short for; characters. */
  #rest = 0
  #isComplete = false

  constructor({ motion }: { motion: 'full' | 'reduced' }) {
    this.#atOnce = motion === 'reduced'
  }

  /** What is shown of it. */
  get shown(): string {
    return this.#text.slice(0, this.#shown)
  }

  /** Whether some of it waits to be shown. */
  get isBehind(): boolean {
    return this.#shown < this.#end()
  }

  /** @param text the whole of it so far; it begins with what it was before */
  arrive(text: string): void {
    this.#text = text
  }

  /** No more will arrive: the next step shows all of it. */
  complete(): void {
    this.#isComplete = true
  }

  /** Shows as much as is due at the time `now` (ms, of any clock); whether that is more than before. */
  step(now: number): boolean {
    const before = this.#shown
    const waiting = this.#end() - this.#shown
    if (waiting <= 0) {
      this.#pace = 0
      return false
    }
    this.#shown += this.#atOnce || this.#isComplete ? waiting : this.#due(waiting, now)
    return this.#shown > before
  }

  #due(waiting: number, now: number): number {
    const isStart = this.#pace === 0
    if (isStart || this.#end() > this.#seen) {
      this.#pace = Math.max(this.#pace, waiting / MOST_LAG_MS, CALM_PACE / 1000)
      this.#seen = this.#end()
    }
    const due = isStart ? 1 : this.#rest + Math.max(0, now - this.#steppedAt) * this.#pace
    this.#steppedAt = now
    const whole = due >= waiting ? waiting : this.#wholeCharacters(due)
    this.#rest = Math.max(0, due - whole)
    return whole
  }

  /** The length of the characters that are due, up to the end of the last one that is reached wholly. */
  #wholeCharacters(due: number): number {
    const window = this.#text.slice(this.#shown, this.#shown + Math.ceil(due) + LONGEST_CHARACTER)
    const reached = GRAPHEMES.segment(window).containing(Math.floor(due))
    if (reached === undefined) return window.length
    // A character that is longer than what is due so far comes whole, or it would be waited for again and again.
    return reached.index === 0 && due >= 1 ? reached.segment.length : reached.index
  }

  /** What ends in the middle of a character waits for the rest of it. */
  #end(): number {
    const { length } = this.#text
    return this.#isComplete || !isUnfinished(this.#text.charCodeAt(length - 1)) ? length : length - 1
  }
}

/** Whether a character has to go on after this: half a surrogate pair, or what joins two characters. */
function isUnfinished(code: number): boolean {
  return (code >= 0xd800 && code <= 0xdbff) || code === 0x200d
}

const GRAPHEMES = new Intl.Segmenter()
/** Families and flags are shorter; what is longer is cut. */
const LONGEST_CHARACTER = 64
