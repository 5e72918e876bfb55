/** A walk through what was sent before; the texts are without duplicates, the newest last. */
export interface HistoryWalk<Draft> {
  readonly texts: readonly string[]
  /** Which text is shown. */
  readonly index: number
  /** What was in the field when the walk began. */
  readonly draft: Draft
}

/** A search backwards through what was sent before. */
export interface HistorySearch {
  readonly query: string
  readonly texts: readonly string[]
  /** Which text is shown, or null before anything was typed and where nothing matches. */
  readonly index: number | null
}

/** The texts of a history, each where it was sent last. */
export function withoutDuplicates(entries: readonly string[]): string[] {
  return [...new Set(entries.toReversed())].reverse()
}

/** The nearest older text (-1) or newer one (1) that differs from what is shown; null beyond either end. */
export function walkTo(texts: readonly string[], from: number, direction: -1 | 1, shown: string): number | null {
  let index = from + direction
  while (texts[index] === shown) index += direction
  return index >= 0 && index < texts.length ? index : null
}

/** The search for another query, from the newest on. */
export function searchFor(search: HistorySearch, query: string): HistorySearch {
  return { ...search, query, index: query === '' ? null : findOlder(search.texts, query, search.texts.length) }
}

/** The next older match; stays where there is none. */
export function searchOlder(search: HistorySearch): HistorySearch {
  if (search.index === null) return search
  return { ...search, index: findOlder(search.texts, search.query, search.index) ?? search.index }
}

function findOlder(texts: readonly string[], query: string, before: number): number | null {
  // As in readline's smart relatives: capitals in the query mean capitals.
  const folded = query === query.toLowerCase()
  for (let index = before - 1; index >= 0; index -= 1) {
    const text = texts[index] ?? ''
    if ((folded ? text.toLowerCase() : text).includes(query)) return index
  }
  return null
}
