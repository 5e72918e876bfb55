import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'

/** Place in the code of a name from a request. */
export interface SymbolPlace {
  symbol: string
  path: string
  /** From 1. */
  line: number
  /** Whether the line seems to define the name; otherwise it only uses it. */
  isDefinition: boolean
}

const MOST_LOOKED_AT = 30_000
const MOST_BYTES = 64 * 1024 * 1024
const MOST_BYTES_EACH = 256 * 1024
/** Most files for one name. */
const MOST_DEFINITIONS = 3
const MOST_USES = 2
const FILES_AT_ONCE = 100

/**
 * Searches names in a project's source files, nearest to the top first: at most 30,000 files, 64 MiB. For each name it
 * returns the defining files; without one, a few that use it. `left`: number of unread source files.
 * @param root real path of the work directory
 */
export async function findSymbols(
  root: string,
  symbols: readonly string[],
  paths: readonly string[],
  signal: AbortSignal,
): Promise<{ places: SymbolPlace[]; left: number }> {
  if (symbols.length === 0) return { places: [], left: 0 }
  const sources = sourceFiles(paths)
  const found = new Map(
    symbols.map(symbol => [symbol, { definitions: [] as SymbolPlace[], uses: [] as SymbolPlace[] }]),
  )
  const bytes = Buffer.allocUnsafe(MOST_BYTES_EACH)
  let room = MOST_BYTES
  let looked = 0
  for (const path of sources.slice(0, MOST_LOOKED_AT)) {
    if (looked % FILES_AT_ONCE === FILES_AT_ONCE - 1) {
      await setImmediate()
      signal.throwIfAborted()
    }
    const text = textOf(`${root}/${path}`, bytes)
    room -= text.length
    if (room < 0) break
    looked += 1
    for (const [symbol, { definitions, uses }] of found) {
      const place = placeIn(text, symbol)
      if (place?.isDefinition) definitions.push({ symbol, path, ...place })
      else if (place !== null) uses.push({ symbol, path, ...place })
    }
  }
  const places = [...found.values()].flatMap(({ definitions, uses }) =>
    definitions.length > 0 ? definitions.slice(0, MOST_DEFINITIONS) : uses.slice(0, MOST_USES),
  )
  return { places, left: sources.length - looked }
}

function sourceFiles(paths: readonly string[]): string[] {
  const sources = paths.filter(path => SOURCE.test(path))
  const depth = new Map(sources.map(path => [path, path.split('/').length]))
  return sources.sort((a, b) => (depth.get(a) ?? 0) - (depth.get(b) ?? 0))
}

const SOURCE =
  /\.(?:[cm]?[jt]sx?|vue|svelte|py|rb|php|go|rs|java|kts?|scala|groovy|cs|fs|vb|swift|m|mm|c|h|cc|cpp|cxx|hpp|hh|zig|nim|dart|ex|exs|erl|clj|cljs|hs|ml|elm|lua|pl|pm|r|jl|sh|bash|sql|proto|graphql|tf)$/i

/**
 * Returns the text; empty if it is no file of that size. Synchronous, because there may be thousands; never blocks on a
 * pipe.
 * @param room for the bytes of one file, used again for the next
 */
function textOf(path: string, room: Buffer): string {
  let file: number | null = null
  try {
    file = openSync(path, READ_ONLY)
    const stat = fstatSync(file)
    if (!stat.isFile() || stat.size > room.length) return ''
    return room.toString('latin1', 0, readSync(file, room, 0, stat.size, 0))
  } catch {
    return ''
  } finally {
    if (file !== null) closeSync(file)
  }
}

// Windows lacks the other two.
const READ_ONLY = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)

/** Returns the first line that defines the name, else the first one that contains it; null: none. */
function placeIn(text: string, symbol: string): { line: number; isDefinition: boolean } | null {
  let first: number | null = null
  let looked = 0
  for (
    let at = text.indexOf(symbol);
    at !== -1 && looked < MOST_OCCURRENCES;
    at = text.indexOf(symbol, at + symbol.length)
  ) {
    if (isPartOfWord(text[at - 1]) || isPartOfWord(text[at + symbol.length])) continue
    looked += 1
    first ??= at
    const start = text.lastIndexOf('\n', at) + 1
    const end = text.indexOf('\n', at)
    const before = text.slice(Math.max(start, at - 200), at)
    const after = text.slice(at + symbol.length, Math.min(end === -1 ? text.length : end, at + symbol.length + 200))
    if (definesAt(before, after)) return { line: lineOf(text, at), isDefinition: true }
  }
  return first === null ? null : { line: lineOf(text, first), isDefinition: false }
}

const MOST_OCCURRENCES = 50

function isPartOfWord(character: string | undefined): boolean {
  return character !== undefined && /[\w$]/.test(character)
}

/** Decides by the line's text before and after the name. */
function definesAt(before: string, after: string): boolean {
  if (KEYWORD.test(before)) return true
  // A method, or a function in a language without a keyword for it: `int add(int a) {`, `login(user) {`.
  return (
    /^\s*(?:[\w<>[\],.*&:]+\s+){0,6}[*&]*$/.test(before) &&
    !CALLS.test(before) &&
    /^\s*(?:<[^<>]{0,60}>)?\([^;]{0,150}(?:\{|=>|:\s*$)/.test(after)
  )
}

const KEYWORD =
  /(?:^|[^\w$.])(?:function\*?|class|interface|type|const|let|var|val|def|defp|defmodule|fn|func|fun|struct|enum|trait|module|object|record|namespace|mod|sub|proc|message|table|macro_rules!|static|typedef|#define)\s+(?:\([^()]{0,80}\)\s*|self\.|\w{1,40}[.:]{1,2})?$/i
const CALLS = /\b(?:return|await|new|throw|yield|else|case|in|of|if|while|for)\s/
function lineOf(text: string, at: number): number {
  let line = 1
  for (let index = text.indexOf('\n'); index !== -1 && index < at; index = text.indexOf('\n', index + 1)) line += 1
  return line
}
