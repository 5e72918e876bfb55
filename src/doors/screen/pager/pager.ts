import type { Keymap } from '../../../project/settings/keys.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { formatNumber } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { Key } from '../composer/keys.ts'
import { STYLE_SEQUENCES, type Theme } from '../terminal/theme.ts'
import {
  type FullView,
  fittingHints,
  type Pointer,
  rowsMoved,
  type Stage,
  searchText,
  type ViewFrame,
  viewChord,
} from '../view/full-view.ts'
import { keysOfView } from '../view/key-overlay.ts'
import { compileSearch, type PagerSource, type Search, SearchHits } from './source.ts'

/** A pager: the part of its lines that is shown, and the effect of each key. */
export class Pager implements FullView {
  readonly #options: PagerOptions
  readonly #viewport: Viewport
  #top: Place = { index: 0, row: 0 }
  #isFollowing: boolean
  /** The relative position (0 to 1) to keep while lines are laid out anew; null once a key has moved. */
  #keptPosition: number | null = null
  #height = 1
  #columns = 0
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

  attach(stage: Pick<Stage, 'changed'>): () => void {
    return this.#options.source.onGrow(dropped => {
      this.#dropped(dropped)
      stage.changed()
    })
  }

  /** Whether a search is being typed, so that every key is one of its text. */
  get isTyping(): boolean {
    return this.#typed !== null
  }

  /** Continues a search that is incomplete by one step. */
  workOn(): boolean {
    if (this.#hits?.isComplete !== false) return false
    this.#hits.scan(LINES_PER_STEP)
    return true
  }

  /** The index of the first line that is shown. */
  get top(): number {
    return this.#top.index
  }

  /** Shows a line, at the top where the end is not above. */
  show(index: number): void {
    this.#keptPosition = null
    this.#goTo({ index, row: 0 })
  }

  /** Says something in the status line, until the next key; null: nothing. */
  say(message: string | null): void {
    this.#message = message
  }

  /** Lays all lines out anew: they look otherwise now. */
  redraw(): void {
    this.#viewport.forget()
  }

  #dropped(lines: number): void {
    if (lines === 0) return
    this.#viewport.forget()
    this.#hits?.dropped(lines)
    this.#top = this.#top.index < lines ? { index: 0, row: 0 } : { ...this.#top, index: this.#top.index - lines }
    this.#hit = this.#hit === null || this.#hit < lines ? null : this.#hit - lines
  }

  /** Lays the lines out for another width, where they depend on it. */
  #relay(columns: number): void {
    const before = this.#columns
    this.#columns = columns
    const { source } = this.#options
    if (before === 0 || before === columns || source.resize === undefined) return
    const { count } = source
    this.#keptPosition = this.#isFollowing ? null : (this.#keptPosition ?? this.#top.index / Math.max(1, count))
    this.#viewport.forget()
    this.#hits = null
    this.#hit = null
    source.resize(columns)
  }

  /** The screen: exactly `rows` lines, the last one the status line; `caret`: the cursor's cell, null where none is shown. */
  frame({ columns, rows }: { columns: number; rows: number }): ViewFrame {
    this.#relay(columns)
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

  press(key: Key, stage: Pick<Stage, 'close' | 'copy' | 'open'>): void {
    this.#message = null
    this.#keptPosition = null
    if (this.#typed) {
      this.#edit(key, this.#typed)
      return
    }
    const action = this.#options.keymap.inView('pager', viewChord(key))
    switch (action) {
      case 'close':
      case 'close_log':
        stage.close()
        break
      case 'diff_here':
        this.#options.openDiff?.(stage, this.#hit ?? this.#top.index)
        break
      case 'keys_here':
        stage.open(keysOfView('pager', this.#options))
        break
      case 'copy_here':
        this.#copy(stage)
        break
      case 'find':
      case 'find_back':
        this.#typed = { text: '', step: action === 'find' ? 1 : -1 }
        break
      case 'next_hit':
      case 'previous_hit':
        this.#goToHit(action === 'next_hit' ? this.#step : this.#step === 1 ? -1 : 1)
        break
      case 'start':
        this.#goTo({ index: 0, row: 0 })
        break
      case 'end':
        this.#isFollowing = true
        break
      default: {
        const rows = action === null ? null : rowsMoved(action, this.#height)
        if (rows !== null) this.#move(rows)
      }
    }
  }

  paste(text: string): void {
    if (this.#typed) this.#typed.text = searchText(this.#typed.text + text)
  }

  point(pointer: Pointer): void {
    this.#message = null
    this.#keptPosition = null
    if (pointer.kind === 'wheel') this.#move(pointer.rows)
  }

  #move(rows: number): void {
    const wasFollowing = this.#isFollowing
    this.#goTo(this.#viewport.moved(this.#top, rows))
    // Moving down at the end keeps following.
    if (wasFollowing && rows > 0) this.#isFollowing = true
  }

  /** Copies the line of the last hit, else the first one that is shown. */
  #copy(stage: Pick<Stage, 'copy'>): void {
    const line = this.#options.source.line(this.#hit ?? this.#top.index).replace(STYLE_SEQUENCES, '')
    this.#message = stage.copy(line) ? 'copied' : 'too long for the clipboard of a terminal'
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
    else if (!key.ctrl && !key.meta && key.name === null) typed.text = searchText(typed.text + key.input)
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
    if (isRound) this.#message = step === 1 ? 'continued from the start' : 'continued from the end'
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
    const found = this.#found()
    const isFollowing = this.#isFollowing && this.#options.source.isWhole !== true
    const parts = [this.#message ?? this.#position(last), found, isFollowing ? 'following' : null]
    const said = parts.filter(part => part !== null).join(' · ')
    const title = oneLine(typeof this.#options.title === 'string' ? this.#options.title : this.#options.title(), 80)
    const { keymap } = this.#options
    // Keys of the view's own make room for its title; how to search and go back does not.
    const least = widthOf(this.#options.hints === undefined ? said : `${title} · ${said}`)
    const place = { columns: columns - least - 5, wayOut: keymap.label('close'), between: '  ' }
    const keys = fittingHints(this.#options.hints?.() ?? hintsOf(keymap), place).join('  ')
    const room = columns - widthOf(keys)
    const whole = room - widthOf(said) - 4 > widthOf(title) ? `${title} · ${said}` : said
    // A message is read at once; the place counts less than how to leave, and than what was found.
    const mayCut = this.#message === null && room - 2 >= LEAST_POSITION
    const isLong = mayCut && widthOf(whole) > room - 2
    const left = isLong ? cutLine(found ?? whole, room - 2) : whole
    const line = room > widthOf(left) + 1 ? `${padLine(left, room)}${keys}` : left
    return { line: this.#options.theme.paint('selected', padLine(cutLine(line, columns), columns)), caret: null }
  }

  #position(last: number): string {
    const { count } = this.#options.source
    if (count === 0) return 'nothing yet'
    const percent = last >= count - 1 ? 'end' : `${Math.floor((100 * (last + 1)) / count)} %`
    return `${formatNumber(this.#top.index + 1)}–${formatNumber(last + 1)} of ${formatNumber(count)} · ${percent}`
  }

  #found(): string | null {
    if (!this.#hits) return null
    const { search, count, isComplete } = this.#hits
    const text = oneLine(search.text, 20)
    const ordinal = this.#hit === null ? 0 : this.#hits.ordinal(this.#hit)
    return `${text}: ${ordinal > 0 ? `${formatNumber(ordinal)} of ` : ''}${formatNumber(count)}${isComplete ? '' : '+'}`
  }
}

/** What a pager shows. `at`: where it opens; at the end it follows added lines. */
interface PagerOptions {
  title: string | (() => string)
  source: PagerSource
  theme: Theme
  keymap: Keymap
  at: 'start' | 'end'
  /** Opens what changed, where that is known; left out elsewhere. `line`: the index of the hit, else of the first line shown. */
  openDiff?: (stage: Pick<Stage, 'open'>, line: number) => void
  /** The keys named in the last line, the most important first; left out: how to search and go back. */
  hints?: () => readonly string[]
}

/** The cells of the position that stay beside the way out. */
const LEAST_POSITION = 6

/** Lines that are searched in one step, which takes a few milliseconds. */
const LINES_PER_STEP = 20_000

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
    const rows = this.#laidOut(index)
    this.#wrapped.set(index, rows)
    return rows
  }

  #laidOut(index: number): string[] {
    const columns = Math.max(2, this.#columns)
    const own = this.#source.rows?.(index, columns)
    if (own !== undefined) return own.map(row => this.#search?.mark(row) ?? row)
    const line = this.#source.line(index)
    return wrapLine(this.#search?.mark(line) ?? line, columns)
  }
}

function hintsOf(keymap: Keymap): readonly string[] {
  return [`${keymap.label('find')} search`, `${keymap.label('close')} back`]
}
