import { cleanText } from './chips.ts'
import { chordOf } from './edit-key.ts'
import { previousBoundary } from './graphemes.ts'
import { type HistorySearch, searchFor, searchOlder } from './history-browser.ts'
import type { Key } from './key.ts'

/** How a search of the history goes on after a key. */
export type SearchStep =
  | { kind: 'searching'; search: HistorySearch }
  | { kind: 'taken'; text: string | null }
  | { kind: 'cancelled' }

const OLDER = new Set(['ctrl+r', 'up', 'ctrl+p'])
const CANCEL = new Set(['escape', 'ctrl+g', 'ctrl+c'])
const TAKE = new Set(['return', 'tab', 'right', 'ctrl+f', 'end', 'ctrl+e'])

/** What a key means while the history is searched, or null for one that means nothing then. */
export function searchKey(search: HistorySearch, key: Key): SearchStep | null {
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

const MOST_SEARCHED = 200

/** The search with more behind its query, of which only the first line counts. */
export function extendQuery(search: HistorySearch, added: string): HistorySearch {
  const [line = ''] = cleanText(added).split('\n')
  return searchFor(search, (search.query + line).slice(0, MOST_SEARCHED).toWellFormed())
}
