import { formatNumber } from '../../../tell/words/numbers.ts'
import { STYLE_SEQUENCES } from '../terminal/theme.ts'

/** Lines to page through: painted and safe for the terminal. */
export interface PagerSource {
  readonly count: number
  /** The line at an index from 0 to below `count`. Lines do not change. */
  line(index: number): string
  /** The rows of a line in `columns` cells, painted; left out: the line is wrapped. `line` is then what is searched and copied. */
  rows?(index: number, columns: number): string[]
  /** Calls the listener after lines were added, with the number of lines dropped at the start. Returns the unsubscribe function. */
  onGrow(listener: (dropped: number) => void): () => void
  /** Whether all lines are there, so that its end is not followed; left out: more may come. */
  readonly isWhole?: boolean
  /** Lays the lines out for another width; they are added again from the first on. Left out: lines do not depend on the width. */
  resize?(columns: number): void
}

/** `render`: the finished lines of an event, may depend on the events before it. `maxChars`: the size of the buffer. */
interface LineBufferOptions<Event> {
  render(event: Event): readonly string[]
  maxChars?: number
}

const MAX_CHARS = 20_000_000
const CHUNK = 1024
/** A longer line is shown as several. */
const LINE_CHARS = 16_384

/** The latest lines of a stream of events, for a pager; when the buffer is full (20 M characters), the oldest are dropped. */
export class LineBuffer<Event> implements PagerSource {
  readonly #options: LineBufferOptions<Event>
  /** All but the last have `CHUNK` lines. */
  readonly #chunks: { lines: string[]; chars: number }[] = []
  readonly #listeners = new Set<(dropped: number) => void>()
  #chars = 0
  #count = 0
  #dropped = 0

  constructor(options: LineBufferOptions<Event>) {
    this.#options = options
  }

  get count(): number {
    return this.#count + this.#notes
  }

  line(index: number): string {
    if (index < this.#notes) return `… ${formatNumber(this.#dropped)} earlier lines are not kept.`
    const at = index - this.#notes
    return this.#chunks[Math.floor(at / CHUNK)]?.lines[at % CHUNK] ?? ''
  }

  onGrow(listener: (dropped: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The number of a line among all that were ever added, from 0: its index, if none had been dropped. */
  numberOf(index: number): number {
    return index - this.#notes + this.#dropped
  }

  /** The number that the next line gets. */
  get nextNumber(): number {
    return this.#count + this.#dropped
  }

  /** Adds the lines of one event. */
  add(event: Event): void {
    for (const line of this.#options.render(event)) for (const piece of pieces(line)) this.#push(piece)
    const before = this.count
    const kept = this.#count
    this.#dropOldest()
    // The first dropped line is replaced by the note about it.
    const dropped = kept === this.#count ? 0 : before - this.count
    for (const listener of this.#listeners) listener(dropped)
  }

  /** Adds all events of a stream, until it ends or the signal aborts. */
  async read(events: AsyncIterable<Event>, signal: AbortSignal): Promise<void> {
    for await (const event of events) {
      if (signal.aborted) return
      this.add(event)
    }
  }

  get #notes(): number {
    return this.#dropped > 0 ? 1 : 0
  }

  #push(line: string): void {
    let last = this.#chunks.at(-1)
    if (!last || last.lines.length === CHUNK) {
      last = { lines: [], chars: 0 }
      this.#chunks.push(last)
    }
    last.lines.push(line)
    last.chars += line.length
    this.#chars += line.length
    this.#count++
  }

  #dropOldest(): void {
    const { maxChars = MAX_CHARS } = this.#options
    while (this.#chars > maxChars && this.#chunks.length > 1) {
      const oldest = this.#chunks.shift()
      if (!oldest) return
      this.#chars -= oldest.chars
      this.#count -= oldest.lines.length
      this.#dropped += oldest.lines.length
    }
  }
}

/** A long line in parts that are quick to wrap; neither sequences nor surrogate pairs are split. */
function pieces(line: string): string[] {
  if (line.length <= LINE_CHARS) return [line]
  const found: string[] = []
  for (let from = 0; from < line.length; ) {
    const part = line.slice(from, from + LINE_CHARS)
    const whole = from + part.length < line.length ? part.replace(TORN_END, '') : part
    found.push(whole || part)
    from += (whole || part).length
  }
  return found
}

const ESC = String.fromCharCode(0x1b)
const TORN_END = new RegExp(`(?:[\\uD800-\\uDBFF]|${ESC}(?:\\[[\\d;:]*|\\][^\\u0007${ESC}]*)?)$`)

/** A search for a literal text; case-sensitive only if the text has a capital. */
export interface Search {
  readonly text: string
  /** Whether a painted line contains the text; its sequences do not count. */
  isIn(line: string): boolean
  /** The line with each occurrence in reverse video. */
  mark(line: string): string
}

/** Compiles a search for a text. */
export function compileSearch(text: string): Search {
  const source = text.toWellFormed().replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const flags = /\p{Lu}/u.test(text) ? 'u' : 'iu'
  const [one, all] = [new RegExp(source, flags), new RegExp(source, `${flags}g`)]
  return {
    text,
    isIn: line => one.test(plainOf(line)),
    mark: line => markAll(line, all),
  }
}

/** A line without its sequences. */
function plainOf(line: string): string {
  return line.includes('\x1b') ? line.replace(STYLE_SEQUENCES, '') : line
}

function markAll(line: string, pattern: RegExp): string {
  return markRanges(
    line,
    [...plainOf(line).matchAll(pattern)].flatMap(({ index, 0: found }) => [index, index + found.length]),
  )
}

/**
 * A painted line with parts of it in reverse video.
 * @param edges offsets into the text without its sequences, ascending: begin, end, begin, end, …
 */
export function markRanges(line: string, edges: readonly number[]): string {
  if (edges.length === 0) return line
  let [out, at, passed] = ['', 0, 0]
  const copy = (text: string) => {
    let rest = text
    // An occurrence that begins where this text ends is marked in the next one, behind the sequences in between.
    const isDue = (edge: number) => edge < at + rest.length || (passed % 2 === 1 && edge === at + rest.length)
    for (let edge = edges[passed]; edge !== undefined && isDue(edge); edge = edges[++passed]) {
      out += rest.slice(0, edge - at) + (passed % 2 === 0 ? REVERSE : NOT_REVERSE)
      rest = rest.slice(edge - at)
      at = edge
    }
    out += rest
    at += rest.length
  }
  let from = 0
  for (const { index, 0: sequence } of line.matchAll(STYLE_SEQUENCES)) {
    copy(line.slice(from, index))
    // A reset inside an occurrence must not end the mark.
    out += passed % 2 === 1 ? sequence + REVERSE : sequence
    from = index + sequence.length
  }
  copy(line.slice(from))
  return out
}

const REVERSE = '\x1b[7m'
const NOT_REVERSE = '\x1b[27m'

/** The lines that match a search, found in steps, so that keys are handled in between. */
export class SearchHits {
  readonly search: Search
  readonly #source: PagerSource
  #lines: number[] = []
  #scanned = 0

  constructor(search: Search, source: PagerSource) {
    this.search = search
    this.#source = source
  }

  /** The number of matching lines among those scanned so far. */
  get count(): number {
    return this.#lines.length
  }

  get isComplete(): boolean {
    return this.#scanned >= this.#source.count
  }

  /** The ordinal of a matching line, from 1; 0 if it does not match or has not been scanned. */
  ordinal(index: number): number {
    return this.#lines.indexOf(index) + 1
  }

  /** Scans the next `lines` lines. */
  scan(lines: number): void {
    const end = Math.min(this.#source.count, this.#scanned + lines)
    for (; this.#scanned < end; this.#scanned++) {
      if (this.search.isIn(this.#source.line(this.#scanned))) this.#lines.push(this.#scanned)
    }
  }

  /** The first matching line from `from` on, going round at the end; null if there is none. */
  find(from: number, step: 1 | -1): number | null {
    const { count } = this.#source
    for (let scanned = 0; scanned < count; scanned++) {
      const index = (((from + step * scanned) % count) + count) % count
      if (this.search.isIn(this.#source.line(index))) return index
    }
    return null
  }

  /** The first lines of the source have been dropped. */
  dropped(lines: number): void {
    this.#lines = this.#lines.filter(index => index >= lines).map(index => index - lines)
    this.#scanned = Math.max(0, this.#scanned - lines)
  }
}

/** Lines that are all there. */
export function wholeSource(lines: readonly string[]): PagerSource {
  return { count: lines.length, line: index => lines[index] ?? '', onGrow: () => () => {}, isWhole: true }
}

/** Lines that are drawn anew for another width. */
export function drawnSource(draw: (columns: number) => readonly string[], columns: number): PagerSource {
  const listeners = new Set<(dropped: number) => void>()
  let lines = draw(columns)
  return {
    get count() {
      return lines.length
    },
    line: index => lines[index] ?? '',
    onGrow: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    resize: width => {
      lines = draw(width)
      for (const listener of listeners) listener(0)
    },
  }
}
