import type { PagerSource } from './pager-source.ts'
import type { Search } from './search-text.ts'

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
