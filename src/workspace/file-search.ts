import { go, prepare } from 'fuzzysort'

/** Paths of files, ordered and folded for search: the shallow ones first, of these the short ones. */
export interface SearchableFiles {
  paths: readonly string[]
  /** The same in lower case. */
  lower: readonly string[]
}

/** Takes the paths of a listing (each with a NUL after it), at most 300,000. */
export function searchableFiles(listing: string): SearchableFiles {
  const paths = listing.split('\0', MOST_PATHS)
  const lower = listing.toLowerCase().split('\0', MOST_PATHS)
  if (paths.at(-1) === '') paths.pop()
  const order = Float64Array.from(paths, (path, index) => rankOf(path) * INDEXES + index).sort()
  const inOrder = (texts: readonly string[]) => Array.from(order, key => texts[key % INDEXES] ?? '')
  return { paths: inOrder(paths), lower: inOrder(lower) }
}

/**
 * The paths that match best. First come those in whose file name the query stands, then those in whose path it stands,
 * then those that have its letters in their order; among them fuzzysort decides. Of very many the shallow ones are
 * looked at. Words may stand in any order.
 */
export function searchFiles({ paths, lower }: SearchableFiles, query: string, limit: number): string[] {
  const wanted = query.trim().toLowerCase().slice(0, QUERY_CHARS)
  if (wanted === '') return paths.slice(0, limit)
  const words = wanted.split(/\s+/)
  const tiers: string[][] = [[], [], []]
  for (const [index, path] of lower.entries()) {
    const tier = tiers[tierOf(path, wanted, words)]
    if (tier !== undefined && tier.length < MOST_RANKED) tier.push(paths[index] ?? '')
    if (tiers[0]?.length === MOST_RANKED) break
  }
  const found: string[] = []
  for (const tier of tiers) {
    if (found.length >= limit) break
    const ranked = go(wanted, tier.map(prepare), { limit: limit - found.length, threshold: 0 })
    found.push(...ranked.map(({ target }) => target))
  }
  return found
}

const MOST_PATHS = 300_000
/** More than there are paths; a rank (depth and length) times it still is a whole number. */
const INDEXES = 2 ** 20
const MOST_RANKED = 2_000
const QUERY_CHARS = 200

function rankOf(path: string): number {
  let depth = 0
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) depth += 1
  return Math.min(depth, 4095) * 4096 + Math.min(path.length, 4095)
}

function tierOf(path: string, wanted: string, words: readonly string[]): number {
  const at = path.lastIndexOf(wanted)
  if (at !== -1) return at > path.lastIndexOf('/') ? 0 : 1
  return words.every(word => hasInOrder(path, word)) ? 2 : -1
}

function hasInOrder(path: string, word: string): boolean {
  let at = 0
  for (const character of word) {
    at = path.indexOf(character, at) + character.length
    if (at < character.length) return false
  }
  return true
}
