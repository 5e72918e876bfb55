import { cutLine, oneLine, padLine, widthOf, wrapLine } from '../../words/cells.ts'
import type { Key } from '../composer/keys.ts'
import type { Theme } from '../terminal/theme.ts'

export interface PagerLook {
  title: string
  source: PagerSource
  theme: Theme
  /** Where it opens: at the end it follows what is added. */
  at: 'start' | 'end'
}

const SEARCH_LENGTH = 200
/** Lines that are searched in one go, a few milliseconds' worth. */
const LOOKED_AT_ONCE = 20_000

/** A pager: which part of its lines is shown, and what each key does. It draws nothing. */
export class Pager {
  readonly #look: PagerLook
  readonly #scroll: Scroll
  #top: Place = { index: 0, row: 0 }
  #isFollowing: boolean
  /** How far down it was in lines that are laid out anew, from 0 to 1, until a key goes elsewhere. */
  #wasAt: number | null = null
  #height = 1
  #hits: Hits | null = null
  /** Line of the hit that was gone to last. */
  #hit: number | null = null
  #step: 1 | -1 = 1
  #typed: { text: string; step: 1 | -1 } | null = null
  #message: string | null = null

  constructor(look: PagerLook) {
    this.#look = look
    this.#scroll = new Scroll(look.source)
    this.#isFollowing = look.at === 'end'
  }

  /** Whether it searches on: `searchOn` has something to do. */
  get isSearching(): boolean {
    return this.#hits?.isComplete === false
  }

  searchOn(): void {
    this.#hits?.lookOn(LOOKED_AT_ONCE)
  }

  /** The first lines of the source have gone. */
  gone(lines: number): void {
    if (lines === 0) return
    this.#scroll.forget()
    this.#hits?.gone(lines)
    this.#top = this.#top.index < lines ? { index: 0, row: 0 } : { ...this.#top, index: this.#top.index - lines }
    this.#hit = this.#hit === null || this.#hit < lines ? null : this.#hit - lines
  }

  /** All lines are laid out anew: they come again, and are others. */
  relaid(): void {
    const { count } = this.#look.source
    this.#wasAt = this.#isFollowing ? null : (this.#wasAt ?? this.#top.index / Math.max(1, count))
    this.#scroll.forget()
    this.#hits = null
    this.#hit = null
  }

  /** The screen: exactly `rows` lines, the last of which tells where one is; and where the cursor is shown, if at all. */
  frame({ columns, rows }: { columns: number; rows: number }): {
    lines: string[]
    caret: { x: number; y: number } | null
  } {
    this.#height = Math.max(1, rows - 1)
    this.#scroll.use(columns, this.#hits?.search ?? null)
    const { count } = this.#look.source
    if (this.#wasAt !== null) this.#top = { index: Math.floor(this.#wasAt * count), row: 0 }
    const lastTop = this.#scroll.lastTop(this.#height)
    if (this.#isFollowing || isBelow(this.#top, lastTop)) this.#top = lastTop
    // The width may have changed since.
    else this.#top = this.#scroll.moved(this.#top, 0)
    const { rows: shown, last } = this.#scroll.from(this.#top, this.#height)
    while (shown.length < this.#height) shown.push('')
    const { title, source, theme } = this.#look
    const status = pagerStatus(
      {
        title,
        first: this.#top.index,
        last,
        count: source.count,
        isFollowing: this.#isFollowing,
        hits: this.#hits,
        hit: this.#hit,
        typed: this.#typed && (this.#typed.step === 1 ? '/' : '?') + this.#typed.text,
        message: this.#message,
      },
      columns,
      theme,
    )
    return {
      lines: [...shown, status.line],
      caret: status.caret === null ? null : { x: status.caret, y: this.#height },
    }
  }

  /** Does what a key says; true if it leaves the pager. */
  press(key: Key): boolean {
    this.#message = null
    this.#wasAt = null
    if (this.#typed) {
      this.#edit(key, this.#typed)
      return false
    }
    if (key.meta) return false
    if (key.name !== null || key.ctrl) return this.#command(key.name ?? `ctrl+${key.input}`)
    // What is typed quickly comes at once.
    for (const character of key.input) if (this.#command(character)) return true
    return false
  }

  #command(name: string): boolean {
    if (this.#typed) {
      this.#typed.text += name
      return false
    }
    switch (name) {
      case 'q':
      case 'escape':
      case 'ctrl+e':
      case 'ctrl+c':
      case 'ctrl+o':
        return true
      case 'g':
      case '<':
      case 'home':
        this.#goTo({ index: 0, row: 0 })
        break
      case 'G':
      case '>':
      case 'end':
      case 'f':
        this.#isFollowing = true
        break
      case '/':
      case '?':
        this.#typed = { text: '', step: name === '/' ? 1 : -1 }
        break
      case 'n':
        this.#goToHit(this.#step)
        break
      case 'N':
        this.#goToHit(this.#step === 1 ? -1 : 1)
        break
      default:
        this.#move(name)
    }
    return false
  }

  #move(name: string): void {
    const rows = ROWS[name]?.(this.#height)
    if (rows === undefined) return
    const wasFollowing = this.#isFollowing
    this.#goTo(this.#scroll.moved(this.#top, rows))
    // At the end there is nothing to go down to: what it did it does on.
    if (wasFollowing && rows > 0) this.#isFollowing = true
  }

  #goTo(place: Place): void {
    this.#isFollowing = false
    this.#top = place
  }

  #edit(key: Key, typed: { text: string; step: 1 | -1 }): void {
    if (key.name === 'return') this.#search(typed)
    else if (key.name === 'escape' || (key.ctrl && key.input === 'c')) this.#typed = null
    else if (key.name === 'backspace') this.#typed = typed.text === '' ? null : { ...typed, text: shorter(typed.text) }
    else if (key.ctrl && key.input === 'u') this.#typed = { ...typed, text: '' }
    else if (!key.ctrl && !key.meta && key.name === null) typed.text = oneLine(typed.text + key.input, SEARCH_LENGTH)
  }

  /** An empty search is the last one again. */
  #search({ text, step }: { text: string; step: 1 | -1 }): void {
    this.#typed = null
    this.#step = step
    if (text !== '') {
      this.#hits = new Hits(searchFor(text), this.#look.source)
      this.#hit = null
    }
    this.#goToHit(step)
  }

  #goToHit(step: 1 | -1): void {
    if (!this.#hits) return
    const from = this.#hit === null ? this.#top.index : this.#hit + step
    const found = this.#hits.find(from, step)
    if (found === null) {
      this.#message = 'not found'
      return
    }
    const isRound = step === 1 ? found < from : found > from
    if (isRound) this.#message = step === 1 ? 'went on from the start' : 'went on from the end'
    this.#hit = found
    this.#goTo({ index: found, row: 0 })
  }
}

/** How far each key goes, of a screen of so many rows. */
const ROWS: Partial<Record<string, (height: number) => number>> = {
  up: () => -1,
  k: () => -1,
  'ctrl+p': () => -1,
  down: () => 1,
  j: () => 1,
  return: () => 1,
  'ctrl+n': () => 1,
  pageup: height => -height,
  b: height => -height,
  'ctrl+b': height => -height,
  pagedown: height => height,
  ' ': height => height,
  'ctrl+f': height => height,
  u: height => -Math.ceil(height / 2),
  'ctrl+u': height => -Math.ceil(height / 2),
  d: height => Math.ceil(height / 2),
  'ctrl+d': height => Math.ceil(height / 2),
}

function isBelow(place: Place, other: Place): boolean {
  return place.index > other.index || (place.index === other.index && place.row > other.row)
}

function shorter(text: string): string {
  return [...new Intl.Segmenter().segment(text)]
    .slice(0, -1)
    .map(({ segment }) => segment)
    .join('')
}

/** The lines that have what is looked for, found bit by bit, so that the keys stay alive. */
export class Hits {
  readonly search: Search
  readonly #source: PagerSource
  #lines: number[] = []
  #looked = 0

  constructor(search: Search, source: PagerSource) {
    this.search = search
    this.#source = source
  }

  /** How many lines have it, of those that have been looked at. */
  get count(): number {
    return this.#lines.length
  }

  get isComplete(): boolean {
    return this.#looked >= this.#source.count
  }

  /** Which hit a line is, from 1; 0 if it is none, or has not been looked at. */
  ordinal(index: number): number {
    return this.#lines.indexOf(index) + 1
  }

  /** Looks at so many lines more. */
  lookOn(lines: number): void {
    const end = Math.min(this.#source.count, this.#looked + lines)
    for (; this.#looked < end; this.#looked++) {
      if (this.search.isIn(this.#source.line(this.#looked))) this.#lines.push(this.#looked)
    }
  }

  /** The first line that has it, from one on and then from the other end; null if there is none. */
  find(from: number, step: 1 | -1): number | null {
    const { count } = this.#source
    for (let looked = 0; looked < count; looked++) {
      const index = (((from + step * looked) % count) + count) % count
      if (this.search.isIn(this.#source.line(index))) return index
    }
    return null
  }

  /** The first lines of the source have gone. */
  gone(lines: number): void {
    this.#lines = this.#lines.filter(index => index >= lines).map(index => index - lines)
    this.#looked = Math.max(0, this.#looked - lines)
  }
}

/** Lines to page through: finished ones with colours and links, which nothing steers the terminal with. */
export interface PagerSource {
  readonly count: number
  /** The line at an index from 0 to below `count`; it stays the same. */
  line(index: number): string
  /**
   * Tells the listener after lines have been added at the end, and how many of the first ones have gone, so that all
   * others have moved up by so many. Returns what ends it.
   */
  onGrow(listener: (gone: number) => void): () => void
  /** Lays the lines out anew for another width; they come again from the first on. Left out: they are as they are. */
  resize?(columns: number): void
}

/** What is looked for: the text as it stands; capitals count only if it has one. */
export interface Search {
  readonly text: string
  /** Whether a line with colours and links, which do not count, has it. */
  isIn(line: string): boolean
  /** The line with each place marked in reverse video. */
  mark(line: string): string
}

export function searchFor(text: string): Search {
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
  return line.includes(ESC) ? line.replace(SEQUENCE, '') : line
}

function markAll(line: string, pattern: RegExp): string {
  // Each place, as offsets into the plain text: begin, end, begin, end, …
  const edges = [...plainOf(line).matchAll(pattern)].flatMap(({ index, 0: found }) => [index, index + found.length])
  if (edges.length === 0) return line
  let [out, at, passed] = ['', 0, 0]
  const copy = (text: string) => {
    let rest = text
    // What begins where this text ends is marked in the next one, behind the sequences in between.
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
  for (const { index, 0: sequence } of line.matchAll(SEQUENCE)) {
    copy(line.slice(from, index))
    // A reset inside what was found must not end the mark.
    out += passed % 2 === 1 ? sequence + REVERSE : sequence
    from = index + sequence.length
  }
  copy(line.slice(from))
  return out
}

const ESC = String.fromCharCode(0x1b)
const SEQUENCE = new RegExp(`${ESC}\\[[\\d;:]*m|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')
const REVERSE = '\x1b[7m'
const NOT_REVERSE = '\x1b[27m'

/** A row: the line's index, and which of the rows that it takes. */
export interface Place {
  index: number
  row: number
}

/** Lines that are kept wrapped: several screens. */
const MOST_WRAPPED = 1_000

/** The lines of a source as rows of a width. Only what is shown is ever wrapped. */
export class Scroll {
  readonly #source: PagerSource
  readonly #wrapped = new Map<number, string[]>()
  #columns = 0
  #search: Search | null = null

  constructor(source: PagerSource) {
    this.#source = source
  }

  /** How it is shown from now on. */
  use(columns: number, search: Search | null): void {
    if (columns === this.#columns && search === this.#search) return
    this.#columns = columns
    this.#search = search
    this.forget()
  }

  /** The lines of the source have moved. */
  forget(): void {
    this.#wrapped.clear()
  }

  /** The row so many rows further down, or up; at most the last, or the first. */
  moved({ index, row }: Place, rows: number): Place {
    let [at, target] = [index, row + rows]
    while (target < 0 && at > 0) target += this.#rows(--at).length
    while (at < this.#source.count - 1 && target >= this.#rows(at).length) target -= this.#rows(at++).length
    return { index: at, row: Math.max(0, Math.min(target, this.#rows(at).length - 1)) }
  }

  /** The first row of a screen of so many that ends with the last one. */
  lastTop(height: number): Place {
    const last = Math.max(0, this.#source.count - 1)
    return this.moved({ index: last, row: this.#rows(last).length - 1 }, 1 - height)
  }

  /** So many rows from one on; fewer at the end. */
  from({ index, row }: Place, height: number): { rows: string[]; last: number } {
    const rows = this.#rows(index).slice(row, row + height)
    let last = index
    while (rows.length < height && last < this.#source.count - 1) {
      rows.push(...this.#rows(++last).slice(0, height - rows.length))
    }
    return { rows, last }
  }

  #rows(index: number): string[] {
    const known = this.#wrapped.get(index)
    if (known) return known
    if (index >= this.#source.count) return ['']
    if (this.#wrapped.size >= MOST_WRAPPED) this.forget()
    const line = this.#source.line(index)
    const rows = wrapLine(this.#search?.mark(line) ?? line, Math.max(2, this.#columns))
    this.#wrapped.set(index, rows)
    return rows
  }
}

interface PagerStatus {
  title: string
  /** Indices of the first and the last line on the screen. */
  first: number
  last: number
  count: number
  isFollowing: boolean
  hits: Hits | null
  /** Line of the hit that was gone to. */
  hit: number | null
  /** The search that is being typed, with its `/` or `?`. */
  typed: string | null
  message: string | null
}

/** The last line of the pager's screen, and in which column the cursor stands if a search is being typed. */
function pagerStatus(status: PagerStatus, columns: number, theme: Theme): { line: string; caret: number | null } {
  const { typed } = status
  if (typed !== null) {
    // The end is what one types at.
    let shown = typed
    while (widthOf(shown) > columns - 1) shown = shown.slice(Math.max(1, shown.length - columns))
    return { line: shown, caret: widthOf(shown) }
  }
  const parts = status.message === null ? [place(status), found(status)] : [status.message, found(status)]
  const said = [...parts, status.isFollowing ? 'following' : null].filter(part => part !== null).join(' · ')
  const room = columns - widthOf(said) - KEYS.length - 4
  const title = oneLine(status.title, 80)
  const left = room > widthOf(title) ? `${title} · ${said}` : said
  const line = columns - widthOf(left) > KEYS.length + 1 ? `${padLine(left, columns - KEYS.length)}${KEYS}` : left
  return { line: theme.paint('selected', padLine(cutLine(line, columns), columns)), caret: null }
}

const KEYS = '/ search  q back'

function place({ first, last, count }: PagerStatus): string {
  if (count === 0) return 'nothing yet'
  const percent = last >= count - 1 ? 'end' : `${Math.floor((100 * (last + 1)) / count)} %`
  return `${grouped(first + 1)}–${grouped(last + 1)} of ${grouped(count)} · ${percent}`
}

function found({ hits, hit }: PagerStatus): string | null {
  if (!hits) return null
  const text = oneLine(hits.search.text, 20)
  const ordinal = hit === null ? 0 : hits.ordinal(hit)
  return `${text}: ${ordinal > 0 ? `${grouped(ordinal)} of ` : ''}${grouped(hits.count)}${hits.isComplete ? '' : '+'}`
}

/** `12,345` */
function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
