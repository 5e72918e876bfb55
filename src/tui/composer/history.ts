import { chordOf, type Key } from './keys.ts'
import { cleanText, previousBoundary } from './text.ts'

/** A walk through the prompts that were sent before: without duplicates, the newest last. */
export interface HistoryWalk<Draft> {
  readonly texts: readonly string[]
  /** The index of the text that is shown. */
  readonly index: number
  /** The content of the field when the walk began. */
  readonly draft: Draft
}

/** A history without duplicates: each text stands where it was sent last. */
export function withoutDuplicates(entries: readonly string[]): string[] {
  return [...new Set(entries.toReversed())].reverse()
}

/** The index of the nearest older (-1) or newer (1) text that differs from the shown one; null beyond either end. */
export function walkTo(texts: readonly string[], from: number, direction: -1 | 1, shown: string): number | null {
  let index = from + direction
  while (texts[index] === shown) index += direction
  return index >= 0 && index < texts.length ? index : null
}

/** A reverse search through the prompts that were sent before. */
export interface HistorySearch {
  readonly query: string
  readonly texts: readonly string[]
  /** The index of the match that is shown; null for an empty query and where nothing matches. */
  readonly index: number | null
}

const OLDER = new Set(['ctrl+r', 'up', 'ctrl+p'])
const CANCEL = new Set(['escape', 'ctrl+g', 'ctrl+c'])
const TAKE = new Set(['return', 'tab', 'right', 'ctrl+f', 'end', 'ctrl+e'])

/** The search after a key: it goes on, is cancelled, or its match is taken (null: nothing matched). Null for any other key. */
export function searchKey(
  search: HistorySearch,
  key: Key,
):
  | { kind: 'searching'; search: HistorySearch }
  | { kind: 'taken'; text: string | null }
  | { kind: 'cancelled' }
  | null {
  const chord = chordOf(key)
  if (chord === '') return { kind: 'searching', search: extendQuery(search, key.input) }
  if (chord === 'backspace') {
    const { query } = search
    return { kind: 'searching', search: searchFor(search, query.slice(0, previousBoundary(query, query.length))) }
  }
  if (OLDER.has(chord)) return { kind: 'searching', search: searchOlder(search) }
  if (CANCEL.has(chord)) return { kind: 'cancelled' }
  if (!TAKE.has(chord)) return null
  return { kind: 'taken', text: search.index === null ? null : (search.texts[search.index] ?? null) }
}

const QUERY_CHARS = 200

/** The search with a text added to its query; of the text only the first line counts. */
export function extendQuery(search: HistorySearch, added: string): HistorySearch {
  const [line = ''] = cleanText(added).split('\n')
  return searchFor(search, (search.query + line).slice(0, QUERY_CHARS).toWellFormed())
}

/** The search for another query, from the newest text on. */
function searchFor(search: HistorySearch, query: string): HistorySearch {
  return { ...search, query, index: query === '' ? null : findOlder(search.texts, query, search.texts.length) }
}

/** The search at the next older match; unchanged if there is none. */
function searchOlder(search: HistorySearch): HistorySearch {
  if (search.index === null) return search
  return { ...search, index: findOlder(search.texts, search.query, search.index) ?? search.index }
}

function findOlder(texts: readonly string[], query: string, before: number): number | null {
  // Smart case: capitals in the query match only capitals.
  const folded = query === query.toLowerCase()
  for (let index = before - 1; index >= 0; index -= 1) {
    const text = texts[index] ?? ''
    if ((folded ? text.toLowerCase() : text).includes(query)) return index
  }
  return null
}
