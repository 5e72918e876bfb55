import { wrapLine } from '../cells.ts'
import type { PagerSource } from './pager-source.ts'
import type { Search } from './search-text.ts'

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
