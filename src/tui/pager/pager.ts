import { cutLine, padLine, widthOf, wrapLine } from '../../words/cells.ts'
import { oneLine } from '../../words/safe-text.ts'
import type { Key } from '../composer/keys.ts'
import type { Theme } from '../terminal/theme.ts'
import { compileSearch, type PagerSource, type Search, SearchHits } from './source.ts'

/** The state of a pager: the part of its lines that is shown, and the effect of each key. Draws nothing itself. */
export class Pager {
  readonly #options: PagerOptions
  readonly #viewport: Viewport
  #top: Place = { index: 0, row: 0 }
  #isFollowing: boolean
  /** The relative position (0 to 1) to keep while lines are laid out anew; null once a key has moved. */
  #keptPosition: number | null = null
  #height = 1
  #hits: SearchHits | null = null
  /** The line of the hit that was jumped to last. */
  #hit: number | null = null
  #step: 1 | -1 = 1
  #typed: { text: string; step: 1 | -1 } | null = null
  #message: string | null = null

  constructor(options: PagerOptions) {
    this.#options = options
    this.#viewport = new Viewport(options.source)
    this.#isFollowing = options.at === 'end'
  }

  /** Whether the search is incomplete, and `searchOn` is to be called. */
  get isSearching(): boolean {
    return this.#hits?.isComplete === false
  }

  /** Continues the search by one step. */
  searchOn(): void {
    this.#hits?.scan(LINES_PER_STEP)
  }

  /** The first lines of the source have been dropped. */
  dropped(lines: number): void {
    if (lines === 0) return
    this.#viewport.forget()
    this.#hits?.dropped(lines)
    this.#top = this.#top.index < lines ? { index: 0, row: 0 } : { ...this.#top, index: this.#top.index - lines }
    this.#hit = this.#hit === null || this.#hit < lines ? null : this.#hit - lines
  }

  /** All lines of the source are replaced, as they are laid out anew. */
  relaid(): void {
    const { count } = this.#options.source
    this.#keptPosition = this.#isFollowing ? null : (this.#keptPosition ?? this.#top.index / Math.max(1, count))
    this.#viewport.forget()
    this.#hits = null
    this.#hit = null
  }

  /** The screen: exactly `rows` lines, the last one the status line; `caret`: the cursor's cell, null where none is shown. */
  frame({ columns, rows }: { columns: number; rows: number }): {
    lines: string[]
    caret: { x: number; y: number } | null
  } {
    this.#height = Math.max(1, rows - 1)
    this.#viewport.use(columns, this.#hits?.search ?? null)
    const { count } = this.#options.source
    if (this.#keptPosition !== null) this.#top = { index: Math.floor(this.#keptPosition * count), row: 0 }
    const lastTop = this.#viewport.lastTop(this.#height)
    if (this.#isFollowing || isBelow(this.#top, lastTop)) this.#top = lastTop
    // The width may have changed since.
    else this.#top = this.#viewport.moved(this.#top, 0)
    const { rows: shown, last } = this.#viewport.from(this.#top, this.#height)
    while (shown.length < this.#height) shown.push('')
    const { line, caret } = this.#status(last, columns)
    return { lines: [...shown, line], caret: caret === null ? null : { x: caret, y: this.#height } }
  }

  /** Handles a key; true if it leaves the pager. */
  press(key: Key): boolean {
    this.#message = null
    this.#keptPosition = null
    if (this.#typed) {
      this.#edit(key, this.#typed)
      return false
    }
    if (key.meta) return false
    if (key.name !== null || key.ctrl) return this.#command(key.name ?? `ctrl+${key.input}`)
    // Characters that are typed quickly arrive together.
    for (const character of key.input) if (this.#command(character)) return true
    return false
  }

  #command(name: string): boolean {
    if (this.#typed) {
      this.#typed.text += name
      return false
    }
    if (LEAVE.has(name)) return true
    if (TO_START.has(name)) this.#goTo({ index: 0, row: 0 })
    else if (TO_END.has(name)) this.#isFollowing = true
    else if (name === '/' || name === '?') this.#typed = { text: '', step: name === '/' ? 1 : -1 }
    else if (name === 'n') this.#goToHit(this.#step)
    else if (name === 'N') this.#goToHit(this.#step === 1 ? -1 : 1)
    else this.#move(name)
    return false
  }

  #move(name: string): void {
    const rows = MOVES.find(([, ...names]) => names.includes(name))?.[0](this.#height)
    if (rows === undefined) return
    const wasFollowing = this.#isFollowing
    this.#goTo(this.#viewport.moved(this.#top, rows))
    // Moving down at the end keeps following.
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
    else if (!key.ctrl && !key.meta && key.name === null) typed.text = oneLine(typed.text + key.input, SEARCH_CHARS)
  }

  /** An empty text repeats the last search. */
  #search({ text, step }: { text: string; step: 1 | -1 }): void {
    this.#typed = null
    this.#step = step
    if (text !== '') {
      this.#hits = new SearchHits(compileSearch(text), this.#options.source)
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

  /** The status line; `caret`: the column of the cursor while a search is typed, else null. `last`: the last line shown. */
  #status(last: number, columns: number): { line: string; caret: number | null } {
    if (this.#typed) {
      // Typing happens at the end.
      let shown = (this.#typed.step === 1 ? '/' : '?') + this.#typed.text
      while (widthOf(shown) > columns - 1) shown = shown.slice(Math.max(1, shown.length - columns))
      return { line: shown, caret: widthOf(shown) }
    }
    const parts = [this.#message ?? this.#position(last), this.#found(), this.#isFollowing ? 'following' : null]
    const said = parts.filter(part => part !== null).join(' · ')
    const room = columns - widthOf(said) - KEYS.length - 4
    const title = oneLine(this.#options.title, 80)
    const left = room > widthOf(title) ? `${title} · ${said}` : said
    const line = columns - widthOf(left) > KEYS.length + 1 ? `${padLine(left, columns - KEYS.length)}${KEYS}` : left
    return { line: this.#options.theme.paint('selected', padLine(cutLine(line, columns), columns)), caret: null }
  }

  #position(last: number): string {
    const { count } = this.#options.source
    if (count === 0) return 'nothing yet'
    const percent = last >= count - 1 ? 'end' : `${Math.floor((100 * (last + 1)) / count)} %`
    return `${grouped(this.#top.index + 1)}–${grouped(last + 1)} of ${grouped(count)} · ${percent}`
  }

  #found(): string | null {
    if (!this.#hits) return null
    const { search, count, isComplete } = this.#hits
    const text = oneLine(search.text, 20)
    const ordinal = this.#hit === null ? 0 : this.#hits.ordinal(this.#hit)
    return `${text}: ${ordinal > 0 ? `${grouped(ordinal)} of ` : ''}${grouped(count)}${isComplete ? '' : '+'}`
  }
}

/** What a pager shows. `at`: where it opens; at the end it follows added lines. */
interface PagerOptions {
  title: string
  source: PagerSource
  theme: Theme
  at: 'start' | 'end'
}

const SEARCH_CHARS = 200
/** Lines that are searched in one step, which takes a few milliseconds. */
const LINES_PER_STEP = 20_000

const LEAVE = new Set(['q', 'escape', 'ctrl+e', 'ctrl+c', 'ctrl+o'])
const TO_START = new Set(['g', '<', 'home'])
const TO_END = new Set(['G', '>', 'end', 'f'])

/** How many rows keys move, on a screen of `height` rows. */
const MOVES: readonly (readonly [rows: (height: number) => number, ...names: string[]])[] = [
  [() => -1, 'up', 'k', 'ctrl+p'],
  [() => 1, 'down', 'j', 'return', 'ctrl+n'],
  [height => -height, 'pageup', 'b', 'ctrl+b'],
  [height => height, 'pagedown', ' ', 'ctrl+f'],
  [height => -Math.ceil(height / 2), 'u', 'ctrl+u'],
  [height => Math.ceil(height / 2), 'd', 'ctrl+d'],
]

function isBelow(place: Place, other: Place): boolean {
  return place.index > other.index || (place.index === other.index && place.row > other.row)
}

function shorter(text: string): string {
  return [...new Intl.Segmenter().segment(text)]
    .slice(0, -1)
    .map(({ segment }) => segment)
    .join('')
}

/** A row: the index of its line, and of the row within the wrapped line. */
interface Place {
  index: number
  row: number
}

/** The number of wrapped lines that are cached: several screens. */
const MOST_WRAPPED = 1_000

/** A window on the lines of a source, wrapped to a width. Wraps only lines that are shown. */
class Viewport {
  readonly #source: PagerSource
  readonly #wrapped = new Map<number, string[]>()
  #columns = 0
  #search: Search | null = null

  constructor(source: PagerSource) {
    this.#source = source
  }

  /** Sets the width, and the search to mark. */
  use(columns: number, search: Search | null): void {
    if (columns === this.#columns && search === this.#search) return
    this.#columns = columns
    this.#search = search
    this.forget()
  }

  /** Forgets the wrapped lines: the indices of the source have changed. */
  forget(): void {
    this.#wrapped.clear()
  }

  /** The place `rows` further down (negative: up), at most the last or the first row. */
  moved({ index, row }: Place, rows: number): Place {
    let [at, target] = [index, row + rows]
    while (target < 0 && at > 0) target += this.#rows(--at).length
    while (at < this.#source.count - 1 && target >= this.#rows(at).length) target -= this.#rows(at++).length
    return { index: at, row: Math.max(0, Math.min(target, this.#rows(at).length - 1)) }
  }

  /** The first row of a screen of `height` rows that ends with the last row. */
  lastTop(height: number): Place {
    const last = Math.max(0, this.#source.count - 1)
    return this.moved({ index: last, row: this.#rows(last).length - 1 }, 1 - height)
  }

  /** Up to `height` rows from a place on, and the index of the line that the last of them belongs to. */
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

const KEYS = '/ search  q back'

/** `12,345` */
function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
