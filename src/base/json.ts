/** The value of a text; else what is wrong with it, a sentence. */
export type ParsedJson = { ok: true; value: unknown } | { ok: false; problem: string }

/** Parses untrusted JSON, with or without a byte order mark. A problem names line and column. */
export function parseJson(text: string): ParsedJson {
  const json = text.replace(/^\uFEFF/, '')
  try {
    return { ok: true, value: JSON.parse(json) }
  } catch {
    const { line, column, found } = locateJsonError(json)
    const what = found === null ? 'the file ends too early' : `${JSON.stringify(found)} is not JSON here`
    const problem = `line ${line}, column ${column}: ${what}; write JSON without comments or trailing commas.`
    return { ok: false, problem }
  }
}

/** The position where a text stops being JSON; line and column count from 1. */
interface JsonPlace {
  line: number
  column: number
  /** The character there; `null` at the end of the text. */
  found: string | null
}

/** Finds where a text that `JSON.parse` has refused stops being JSON, as its messages often name no position. */
function locateJsonError(text: string): JsonPlace {
  const offset = firstErrorOffset(text)
  const before = text.slice(0, offset)
  const codePoint = text.codePointAt(offset)
  return {
    line: before.split('\n').length,
    column: offset - before.lastIndexOf('\n'),
    found: codePoint === undefined ? null : String.fromCodePoint(codePoint),
  }
}

type Kind = '{' | '[' | '}' | ']' | ':' | ',' | 'string' | 'plain'
type Expected = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing'

/** A loop with its own stack, as the nesting is the writer's choice. */
function firstErrorOffset(text: string): number {
  const open: ('{' | '[')[] = []
  let expected: Expected = 'value'
  let at = blanksEnd(text, 0)
  while (at < text.length) {
    const kind = kindOf(text.charAt(at))
    if (!isExpected(kind, expected, open.at(-1))) return at
    const token = tokenAt(text, at, kind)
    if ('error' in token) return token.error
    if (kind === '{' || kind === '[') open.push(kind)
    if (kind === '}' || kind === ']') open.pop()
    expected = expectedAfter(kind, expected, open.at(-1))
    at = blanksEnd(text, token.end)
  }
  return at
}

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
