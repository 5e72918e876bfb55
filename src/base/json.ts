import { truncate } from './text.ts'

/** The parsed value, or the problem, a sentence. */
type ParsedJson = { ok: true; value: unknown } | { ok: false; problem: string }

/** Parses untrusted JSON, with or without a byte order mark; rejects duplicate keys. A problem names line and column. */
export function parseJson(text: string): ParsedJson {
  const json = text.replace(/^\uFEFF/, '')
  try {
    const value: unknown = JSON.parse(json)
    const problem = repeatedKeyProblem(json, value)
    return problem === null ? { ok: true, value } : { ok: false, problem }
  } catch {
    const { end } = walk(json)
    const codePoint = json.codePointAt(end)
    const found = codePoint === undefined ? null : String.fromCodePoint(codePoint)
    const what = found === null ? 'the file ends too early' : `${JSON.stringify(found)} is not JSON here`
    return { ok: false, problem: `${placeAt(json, end)}: ${what}; write JSON without comments or trailing commas.` }
  }
}

/** Returns the value of a JSON text; null: invalid. */
export function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Returns true for an object that is not a list. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an own member of any value; undefined: none of this name. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined
}

/** Returns true if two JSON values are equal, in any key order. Not recursive: they may be deep. */
export function isSameJson(a: unknown, b: unknown): boolean {
  const pairs: [unknown, unknown][] = [[a, b]]
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [one, other] = pair
    if (one === other) continue
    if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false
    const keys = Object.keys(one)
    if (keys.length !== Object.keys(other).length) return false
    for (const key of keys) {
      if (!Object.hasOwn(other, key)) return false
      pairs.push([one[key], other[key]])
    }
  }
  return true
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/**
 * Returns the problem of valid JSON with a duplicate key, of which `JSON.parse` uses the last; null: none.
 * @param value result of `JSON.parse`
 */
export function repeatedKeyProblem(json: string, value: unknown): string | null {
  // Counting takes a fifth of the walk's time, and suffices for most texts.
  if (countKeysIn(json) === countKeysOf(value)) return null
  const { repeated } = walk(json)
  if (repeated === null) return null
  const { at, key } = repeated
  return `${placeAt(json, at)}: ${truncate(JSON.stringify(key), 60)} occurs twice in the same object; write every key once.`
}

/** Counts the keys in valid JSON: a colon follows each, and there are no other colons outside of strings. */
function countKeysIn(json: string): number {
  // Two steps without backtracking: a string may have millions of escapes.
  const colons = json.replace(/\\./g, '').replace(/"[^"]*"|[^":]+/g, '')
  return colons.length
}

/** Counts the keys of all objects in a value. Uses its own stack: the writer chooses the depth. */
function countKeysOf(value: unknown): number {
  let count = 0
  const left = [value]
  while (left.length > 0) {
    const each = left.pop()
    if (typeof each !== 'object' || each === null) continue
    const inner: readonly unknown[] = Object.values(each)
    if (!Array.isArray(each)) count += inner.length
    for (const one of inner) left.push(one)
  }
  return count
}

/** Returns line and column, from 1. */
function placeAt(text: string, offset: number): string {
  const before = text.slice(0, offset)
  return `line ${before.split('\n').length}, column ${offset - before.lastIndexOf('\n')}`
}

/** Scan of a JSON text: the offset of the first error (its length: none), and the first duplicate key. */
interface Walked {
  end: number
  repeated: { at: number; key: string } | null
}

/** An open object is stored as the set of its keys so far. */
function kindOfOpen(open: Set<string> | '[' | undefined): '{' | '[' | undefined {
  return open instanceof Set ? '{' : open
}

/** A loop with its own stack: the writer chooses the depth. Messages of `JSON.parse` often lack a position. */
function walk(text: string): Walked {
  const open: (Set<string> | '[')[] = []
  let repeated: Walked['repeated'] = null
  let expected: Expected = 'value'
  let at = blanksEnd(text, 0)
  while (at < text.length) {
    const kind = kindOf(text.charAt(at))
    const inside = open.at(-1)
    if (!isExpected(kind, expected, kindOfOpen(inside))) return { end: at, repeated }
    const token = tokenAt(text, at, kind)
    if ('error' in token) return { end: token.error, repeated }
    if (inside instanceof Set && (expected === 'key' || expected === 'key-or-end') && kind === 'string') {
      const key = JSON.parse(text.slice(at, token.end)) as string
      if (inside.has(key)) repeated ??= { at, key }
      inside.add(key)
    }
    if (kind === '[') open.push(kind)
    if (kind === '{') open.push(new Set())
    if (kind === '}' || kind === ']') open.pop()
    expected = expectedAfter(kind, expected, kindOfOpen(open.at(-1)))
    at = blanksEnd(text, token.end)
  }
  return { end: at, repeated }
}

type Kind = '{' | '[' | '}' | ']' | ':' | ',' | 'string' | 'plain'
type Expected = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing'

function kindOf(first: string): Kind {
  if (first === '{' || first === '[' || first === '}' || first === ']' || first === ':' || first === ',') return first
  return first === '"' ? 'string' : 'plain'
}

function isExpected(kind: Kind, expected: Expected, open: '{' | '[' | undefined): boolean {
  if (kind === ':') return expected === 'colon'
  if (kind === ',') return expected === 'comma-or-end'
  if (kind === '}') return open === '{' && (expected === 'key-or-end' || expected === 'comma-or-end')
  if (kind === ']') return open === '[' && (expected === 'value-or-end' || expected === 'comma-or-end')
  if (expected === 'key' || expected === 'key-or-end') return kind === 'string'
  return expected === 'value' || expected === 'value-or-end'
}

function expectedAfter(kind: Kind, expected: Expected, open: '{' | '[' | undefined): Expected {
  if (kind === '{') return 'key-or-end'
  if (kind === '[') return 'value-or-end'
  if (kind === ':') return 'value'
  if (kind === ',') return open === '{' ? 'key' : 'value'
  if (expected === 'key' || (expected === 'key-or-end' && kind === 'string')) return 'colon'
  return open === undefined ? 'nothing' : 'comma-or-end'
}

type Token = { end: number } | { error: number }

function tokenAt(text: string, start: number, kind: Kind): Token {
  if (kind === 'string') return stringAt(text, start)
  return kind === 'plain' ? plainAt(text, start) : { end: start + 1 }
}

function stringAt(text: string, start: number): Token {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character < ' ') return { error: at }
    if (character === '"') return { end: at + 1 }
    if (character !== '\\') continue
    const escaped = /^(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(text.slice(at + 1, at + 6))
    if (escaped === null) return { error: at }
    at += escaped[0].length
  }
  return { error: text.length }
}

/** A number or one of the three words. */
function plainAt(text: string, start: number): Token {
  const plain = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
  plain.lastIndex = start
  return plain.test(text) ? { end: plain.lastIndex } : { error: start }
}

function blanksEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at += 1
  return at
}

/** An object whose undefined members are left out. */
export type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** Returns a copy without the members that are undefined. */
export function withoutUndefined<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
}
