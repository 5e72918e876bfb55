import { STYLE_SEQUENCES } from '../terminal/theme.ts'
import type { PagerSource } from './pager.ts'

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
  // The occurrences as offsets into the plain text: begin, end, begin, end, …
  const edges = [...plainOf(line).matchAll(pattern)].flatMap(({ index, 0: found }) => [index, index + found.length])
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
