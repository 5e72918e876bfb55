import type { Shortened } from './shortened.ts'

/** A list that keeps its beginning and its end, and counts what lies between. */
export class FirstAndLast<T> {
  readonly #first: T[] = []
  readonly #last: T[] = []
  readonly #most: { first: number; last: number }
  readonly #onLeftOut: (entry: T) => void
  #leftOut = 0

  constructor(most: { first: number; last: number }, onLeftOut: (entry: T) => void = () => {}) {
    this.#most = most
    this.#onLeftOut = onLeftOut
  }

  add(entry: T): void {
    if (this.#first.length < this.#most.first) {
      this.#first.push(entry)
      return
    }
    this.#last.push(entry)
    if (this.#last.length <= this.#most.last) return
    const dropped = this.#last.shift()
    this.#leftOut += 1
    if (dropped !== undefined) this.#onLeftOut(dropped)
  }

  shortened(): Shortened<T> {
    const entries = [...this.#first, ...this.#last]
    return {
      entries,
      count: entries.length + this.#leftOut,
      leftOut: this.#leftOut,
      leftOutAfter: this.#leftOut === 0 ? 0 : this.#first.length,
    }
  }
}
