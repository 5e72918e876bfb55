import fuzzysort from 'fuzzysort'
import { nearestName } from '../../../base/text.ts'
import type { KeyActionId, Keymap } from '../../../project/settings/keys.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { formatCount, formatNumber } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { Key } from '../composer/keys.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import {
  type FullView,
  fittingHints,
  type Pointer,
  rowsMoved,
  type Stage,
  searchText,
  type ViewFrame,
  type ViewNotice,
  viewChord,
} from './full-view.ts'
import { keysOfView } from './key-overlay.ts'

/** One column of a list. */
export interface ListColumn<Row> {
  head: string
  /** The cell's text; it is made safe and cut. */
  cell(row: Row): string
  role?: (row: Row) => Role
  /** The widest that it gets, in cells; left out for the one that takes the rest. */
  most?: number
  align?: 'right'
  /** The width of the terminal from which on it is shown. */
  from?: number
}

/** What a list shows, and what its keys do. */
interface ListOptions<Row> {
  title(): string
  theme: Theme
  keymap: Keymap
  /** The rows now, best first. */
  rows(): readonly Row[]
  /** Rows that only a search finds, behind the others; left out: none. */
  alsoFound?: readonly Row[]
  columns: readonly ListColumn<Row>[]
  /** What a row is found by, and what keeps the choice on it while rows come and go. */
  textOf(row: Row): string
  idOf(row: Row): string
  /** What is shown where there are no rows. */
  readonly empty: string
  /** What a row is, in the singular, as rows are counted in the title; left out: they are not. */
  noun?: string
  /** Whether the rows are the answers of a question, whose keys come first; left out: no. */
  isQuestion?: true
  /** Enter. */
  open(row: Row, stage: Stage): void
  /** Other keys, such as `diff_here`; what they answer is shown in the last line. */
  actions?: Partial<Record<KeyActionId, (row: Row | null, stage: Stage) => string | null>>
  /** `typed`: every character searches, as in a palette; `asked`: only once `/` was pressed. */
  search: 'typed' | 'asked'
  /** A kind of views whose keys count here too, behind those of lists; left out: none. */
  also?: 'review'
  /** The keys named in the last line, the most important first; `row`: the one that is chosen, null: there is none. */
  hints(row: Row | null): readonly string[]
  /** Calls the listener when rows have changed; returns what ends that. */
  follow?: (changed: () => void) => () => void
}

/** Rows to choose from, with columns, a search, and a key for each thing that can be done with one. Fills the terminal. */
export class ListView<Row> implements FullView {
  readonly #options: ListOptions<Row>
  #chosen: string | null = null
  /** Where the chosen row was last: the one that stands there is chosen when it has gone. */
  #place = 0
  #top = 0
  #height = 1
  #query = ''
  #isTyping: boolean
  #notice: ViewNotice | null = null
  #searched: { rows: readonly Row[]; query: string; found: readonly Row[] } | null = null

  constructor(options: ListOptions<Row>) {
    this.#options = options
    this.#isTyping = options.search === 'typed'
  }

  attach(stage: Stage): () => void {
    return this.#options.follow?.(() => stage.changed()) ?? (() => {})
  }

  frame({ columns, rows }: { columns: number; rows: number }): ViewFrame {
    const { theme, title } = this.#options
    const found = this.#found()
    const at = this.#index(found)
    const hasHead = rows >= 5
    this.#height = Math.max(1, rows - (hasHead ? 3 : 1))
    if (at < this.#top) this.#top = at
    if (at >= this.#top + this.#height) this.#top = at - this.#height + 1
    this.#top = Math.max(0, Math.min(this.#top, found.length - this.#height))
    const widths = this.#widths(found.slice(this.#top, this.#top + this.#height), columns)
    const shown = found.slice(this.#top, this.#top + this.#height).map((row, index) => {
      const isChosen = this.#top + index === at
      const mark = isChosen ? (theme.symbols ? '› ' : '> ') : '  '
      const cells = this.#cells(row, widths, !isChosen)
      return isChosen
        ? theme.paint('selected', padLine(cutLine(mark + cells, columns), columns))
        : cutLine(mark + cells, columns)
    })
    if (found.length === 0) {
      const words = this.#query === '' ? this.#options.empty : 'No match.'
      shown.push(...wrapLine(words, Math.max(2, columns - 2)).map(line => theme.paint('dim', `  ${line}`)))
    }
    while (shown.length < this.#height) shown.push('')
    const head = hasHead
      ? [
          theme.paint('strong', cutLine(oneLine(`${title()}${this.#count(found.length)}`, 300), columns)),
          theme.paint('dim', cutLine(`  ${this.#heads(widths)}`, columns)),
        ]
      : []
    const { line, caret } = this.#lastLine(columns, found.length - this.#top - this.#height)
    return {
      lines: [...head, ...shown.slice(0, this.#height), line].slice(-rows),
      caret: caret === null ? null : { x: caret, y: rows - 1 },
    }
  }

  /** How many rows there are, for the title; where there are none, `empty` says why. */
  #count(found: number): string {
    const { noun, rows } = this.#options
    if (noun === undefined || rows().length === 0) return ''
    const searched = this.#query === '' ? '' : `${formatNumber(found)} of `
    return ` · ${searched}${formatCount(rows().length, noun)}`
  }

  press(key: Key, stage: Stage): void {
    this.#notice = null
    const chord = viewChord(key)
    if (this.#isTyping && this.#typed(key, chord, stage)) return
    const { keymap, also, isQuestion = false } = this.#options
    const answer = isQuestion ? keymap.inView('question', chord) : null
    const action = answer ?? keymap.inView('list', chord) ?? (also === undefined ? null : keymap.inView(also, chord))
    switch (action) {
      case null:
        break
      case 'close':
      case 'back':
        this.#back(stage)
        break
      case 'find':
        this.#isTyping = true
        break
      case 'keys_here':
        stage.open(keysOfView(also ?? 'list', this.#options))
        break
      case 'open':
        this.#open(stage)
        break
      case 'start':
        this.#move(-Number.MAX_SAFE_INTEGER)
        break
      case 'end':
        this.#move(Number.MAX_SAFE_INTEGER)
        break
      default: {
        const rows = rowsMoved(action, this.#height)
        if (rows === null) this.#act(action, stage)
        else this.#move(rows)
      }
    }
  }

  /** The rows that are shown: those that have what was searched. */
  get shown(): readonly Row[] {
    return this.#found()
  }

  /** Says something in the last line, until the next key. */
  say(notice: ViewNotice): void {
    this.#notice = notice
  }

  /** Chooses the row with this id. */
  choose(id: string): void {
    this.#chosen = id
  }

  paste(text: string): void {
    if (this.#isTyping) this.#search(this.#query + text)
  }

  point(pointer: Pointer, stage: Stage): void {
    if (pointer.kind === 'wheel') {
      this.#move(pointer.rows)
      return
    }
    const head = this.#height > 1 ? 2 : 0
    const row = this.#found()[this.#top + pointer.y - head]
    if (pointer.y < head || row === undefined) return
    const wasChosen = this.#chosen === this.#options.idOf(row)
    this.#chosen = this.#options.idOf(row)
    if (wasChosen) this.#open(stage)
  }

  /** A key while the search is typed; false if it is one of the list. */
  #typed(key: Key, chord: string, stage: Stage): boolean {
    if (chord === 'return' && this.#options.search === 'asked') this.#isTyping = false
    else if (chord === 'escape' || chord === 'ctrl+c') {
      // Where everything is typed, the last line says that it closes.
      if (this.#options.search === 'typed') stage.close()
      this.#isTyping = this.#options.search === 'typed'
      this.#search('')
    } else if (chord === 'backspace') this.#search([...this.#query].slice(0, -1).join(''))
    else if (chord === 'ctrl+u' || chord === 'ctrl+w') this.#search('')
    else if (key.name === null && !key.ctrl && !key.meta) this.#search(this.#query + key.input)
    else return false
    return true
  }

  #search(query: string): void {
    this.#query = searchText(query)
    this.#chosen = null
    this.#top = 0
  }

  #back(stage: Stage): void {
    if (this.#query === '') stage.close()
    else this.#search('')
  }

  #open(stage: Stage): void {
    const row = this.#row()
    if (row !== null) this.#options.open(row, stage)
  }

  #act(action: KeyActionId, stage: Stage): void {
    const said = this.#options.actions?.[action]?.(this.#row(), stage)
    if (typeof said === 'string') this.#notice = { text: said, role: 'accent' }
  }

  /** The chosen row; null if there is none. */
  #row(): Row | null {
    const found = this.#found()
    return found[this.#index(found)] ?? null
  }

  #move(rows: number): void {
    const found = this.#found()
    const to = Math.max(0, Math.min(found.length - 1, this.#index(found) + rows))
    const row = found[to]
    this.#chosen = row === undefined ? null : this.#options.idOf(row)
  }

  #index(found: readonly Row[]): number {
    if (this.#chosen === null) return 0
    const at = found.findIndex(row => this.#options.idOf(row) === this.#chosen)
    if (at !== -1) this.#place = at
    return Math.max(0, Math.min(this.#place, found.length - 1))
  }

  /** The rows that have what was typed, best first. */
  #found(): readonly Row[] {
    const rows = this.#options.rows()
    if (this.#query.trim() === '') return rows
    if (this.#searched?.rows === rows && this.#searched.query === this.#query) return this.#searched.found
    const { alsoFound = [] } = this.#options
    const texts = [...rows, ...alsoFound].map(row => ({ row, text: this.#options.textOf(row) }))
    const having = (query: string) => {
      const found = fuzzysort.go(query, texts, { key: 'text', threshold: 0.3 }).map(({ obj }) => obj.row)
      return found.toSorted((a, b) => Number(alsoFound.includes(a)) - Number(alsoFound.includes(b)))
    }
    // Where everything that is typed searches, a slash is that of a command, and a slip finds what was meant.
    const isTyped = this.#options.search === 'typed'
    const query = isTyped ? this.#query.trim().replace(/^\/(?=.)/, '') : this.#query
    const exact = having(query)
    const found = exact.length > 0 || !isTyped ? exact : having(meantBy(query, texts))
    this.#searched = { rows, query: this.#query, found }
    return found
  }

  /** The width of each column; 0 for one that is not shown. */
  #widths(rows: readonly Row[], columns: number): number[] {
    const shown = this.#options.columns
    const natural = shown.map(column => {
      if (columns < (column.from ?? 0)) return 0
      if (column.most === undefined) return -1
      return Math.min(
        column.most,
        Math.max(widthOf(column.head), ...rows.map(row => widthOf(oneLine(column.cell(row), MOST_CELL)))),
      )
    })
    const taken = natural.reduce((sum, width) => sum + (width > 0 ? width + GAP : 0), 2)
    return natural.map(width => (width === -1 ? Math.max(MIN_REST, columns - taken) : width))
  }

  #cells(row: Row, widths: readonly number[], isPainted: boolean): string {
    const cells = this.#options.columns.map((column, at) => {
      const width = widths[at] ?? 0
      if (width === 0) return null
      const text = cutLine(oneLine(column.cell(row), MOST_CELL), width)
      const padded =
        column.align === 'right' ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : padLine(text, width)
      return isPainted ? this.#options.theme.paint(column.role?.(row) ?? 'plain', padded) : padded
    })
    return cells.filter(cell => cell !== null).join(' '.repeat(GAP))
  }

  #heads(widths: readonly number[]): string {
    const heads = this.#options.columns.map(({ head, align }, at) => {
      const width = widths[at] ?? 0
      if (width === 0) return null
      const text = cutLine(head, width)
      return align === 'right' ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : padLine(text, width)
    })
    return heads.filter(head => head !== null).join(' '.repeat(GAP))
  }

  /** @param below the number of rows that are below what is shown */
  #lastLine(columns: number, below: number): { line: string; caret: number | null } {
    const { theme, hints } = this.#options
    const more = below > 0 ? [`${formatNumber(below)} more below`] : []
    if (this.#isTyping) {
      const mark = this.#options.search === 'asked' ? '/' : theme.symbols ? '› ' : '> '
      let shown = mark + this.#query
      while (widthOf(shown) > columns - 1) shown = shown.slice(Math.max(1, shown.length - columns))
      const search = this.#query === '' ? ['type to search'] : []
      const all =
        this.#options.search === 'typed' ? ['Enter confirms', 'Esc closes'] : ['Enter keeps it', 'Esc shows all']
      const fitting = fittingHints([...more, ...search, ...all], {
        columns: columns - widthOf(shown) - 4,
        wayOut: 'Esc',
      })
      const keys = `   ${fitting.join(' · ')}`
      const line = widthOf(shown + keys) < columns ? shown + theme.paint('dim', keys) : shown
      return { line, caret: widthOf(shown) }
    }
    if (this.#notice !== null)
      return { line: theme.paint(this.#notice.role, cutLine(oneLine(this.#notice.text, 300), columns)), caret: null }
    const keys = fittingHints([...more, ...hints(this.#row())], {
      columns,
      wayOut: this.#options.keymap.label('close'),
    }).join(' · ')
    return { line: theme.paint('dim', cutLine(keys, columns)), caret: null }
  }
}

/** A query with each word replaced by the nearest one that the texts have; a word without a near one stays. */
function meantBy(query: string, texts: readonly { text: string }[]): string {
  const words = texts.flatMap(({ text }) => text.split(/[^\p{L}]+/u)).filter(word => word.length >= LEAST_MEANT)
  const known = [...new Set(words.map(word => word.toLowerCase()))]
  return query
    .split(/\s+/)
    .map(word => (word.length < LEAST_MEANT ? word : (nearestName(word, known) ?? word)))
    .join(' ')
}

/** Shorter words are near to too many others. */
const LEAST_MEANT = 4
const MOST_CELL = 400
const GAP = 2
/** The least width of the column that takes the rest. */
const MIN_REST = 8
