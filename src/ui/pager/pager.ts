import type { Key } from '../composer/key.ts'
import { oneLine } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import { Hits } from './hits.ts'
import type { PagerSource } from './pager-source.ts'
import { type Place, Scroll } from './scroll.ts'
import { searchFor } from './search-text.ts'
import { pagerStatus } from './status-line.ts'

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
