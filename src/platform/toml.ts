import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'
import { truncate } from '../base/text.ts'
import { readBoundedText } from './files.ts'

/** A parsed TOML file: the settings of a person or project, or a file of codex's configuration. */
export interface TomlFile {
  /** The file's name in messages. */
  name: string
  text: string
  program: AST.TOMLProgram
}

/** A statement or a table at the top of a TOML file. */
type TomlStatement = AST.TOMLKeyValue | AST.TOMLTable

/** A TOML file's name in messages, and its advice. */
export interface TomlSource {
  name: string
  /** The end of an error message: `mend it or move it away`. Left out: the message ends with the problem. */
  mend?: string
}

/**
 * Reads and parses a TOML file of at most 1 MiB; null if there is none. Throws a `UserError` with the place if it cannot
 * be read or is not valid TOML.
 */
export async function readToml(path: string, source: TomlSource): Promise<TomlFile | null> {
  const read = await readBoundedText(path, MAX_BYTES)
  if (read === 'missing') return null
  if ('problem' in read) throw new UserError('CM0201', `${source.name} ${read.problem}${endOf(source)}`)
  return parseToml(read.text, source)
}

/** Far above any real settings file. */
const MAX_BYTES = 1024 * 1024

/** Parses the text of a TOML file. Throws a `UserError` with line and column, from 1, if it is not valid. */
export function parseToml(text: string, source: TomlSource): TomlFile {
  const program = tomlProgram(text)
  if (!('problem' in program)) return { name: source.name, text, program }
  const { line, column, problem } = program
  throw new UserError('CM0201', `${source.name}:${line}:${column}: ${problem}${endOf(source)}`)
}

/** Why a text is not TOML: a sentence without its end, and the place from 1. */
interface TomlProblem {
  line: number
  column: number
  problem: string
}

/** Returns the syntax tree of a TOML text, or why there is none. */
export function tomlProgram(text: string): AST.TOMLProgram | TomlProblem {
  try {
    // Without a final line end, the parser gives a one-digit value an empty range.
    return parseTOML(`${text}\n`)
  } catch (error) {
    // The parser's stack overflows for a text above about 125,000 characters, and for thousands of nested lists.
    if (error instanceof RangeError) return { line: 1, column: 1, problem: TOO_LARGE }
    if (!(error instanceof ParseError)) throw error
    const { line, column, problem } = explain(error, text)
    return { line, column, problem: `not valid TOML: ${problem}` }
  }
}

function endOf({ mend }: TomlSource): string {
  return mend === undefined ? '.' : `; ${mend}.`
}

const TOO_LARGE = 'a text in it is longer than 100,000 characters, or its lists are nested too deeply'

/** Moves an error to the line that lacks something at its end; the parser reports a later line. */
function explain(error: ParseError, text: string): TomlProblem {
  const before = text.slice(0, error.index)
  const trimmed = before.trimEnd()
  const lines = trimmed.split('\n')
  const end = { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
  const here = { line: error.lineNumber, column: error.column + 1 }
  const told = error.message.charAt(0).toLowerCase() + error.message.slice(1)
  const isForeign = /^[^\p{ASCII}]/u.test(text.slice(error.index))
  const mend = isForeign ? IN_QUOTES : MENDS.find(([beginning]) => told.startsWith(beginning))?.[1]
  const problem = mend === undefined ? told : `${told}; ${mend}`
  const isLater = before.indexOf('\n', trimmed.length) !== -1
  if (trimmed.endsWith('=') && isLater) return { ...end, problem: 'there is no value after "="' }
  if (trimmed.endsWith('=')) return { ...here, problem: `${problem}; put a text in quotes` }
  const isOfEnd = isLater && /^(?:expected equal|unspecified)/.test(told)
  return { ...(isOfEnd || /same line|nterminated/.test(error.message) ? end : here), problem }
}

/** Advice about a character that TOML allows only in texts. */
const IN_QUOTES = 'put a name or text with letters other than a to z in quotes'

/** Advice by the start of the parser's message. */
const MENDS = [
  ['unterminated string', 'close it with its quotes'],
  ['unterminated table-key', 'close it with "]"'],
  ['unterminated array', 'close it with "]"'],
  ['unterminated inline table', 'close it with "}"'],
  ['expected equal', 'write name = value, and a text in quotes'],
  ['unspecified values', 'write a value, or close the list with "]"'],
  ['defining a key multiple times', 'leave one of them out'],
] as const

/** Returns the statements before the first table, and the tables, in file order. */
export function topLevel({ program }: Pick<TomlFile, 'program'>): readonly TomlStatement[] {
  return program.body[0].body
}

/** Returns the path of a key or of a table's name: `['screen', 'theme']` for `screen.theme`. */
export function keyPath({ key }: Pick<TomlStatement, 'key'>): readonly string[] {
  return key.keys.map(each => (each.type === 'TOMLBare' ? each.name : each.value))
}

/** A place in a TOML file, from 1. */
export interface TomlSpot {
  line: number
  column: number
}

/** A table, a list or a value of a TOML file. */
export interface TomlNode extends TomlSpot {
  /** Path: `workflow.steps[2].output.path`, counted from 0; empty: the file. */
  path: string
  /** Position of its name. */
  key: TomlSpot
  /** A table (by member names), a list, or a text, number, boolean or date. */
  content: Map<string, TomlNode> | TomlNode[] | string | number | bigint | boolean | Date
  /** Name of its file, if it was included; else left out. */
  file?: string
  /** Its text in the file, shortened; for a table: its kind. */
  written: string
  /** Left out: the file, or a table with a header. */
  source?: AST.TOMLContentNode
}

/** Returns all tables of a TOML file as one tree. */
export function tomlTree({ text, program }: Pick<TomlFile, 'text' | 'program'>): TomlNode {
  const root = tableAt('', { line: 1, column: 1 })
  for (const node of topLevel({ program })) {
    const [table, lines] = node.type === 'TOMLTable' ? [tableOf(root, node), node.body] : [root, [node]]
    for (const line of lines) addLine(text, table, line, 0)
  }
  return root
}

/** Returns the table of a header; creates missing parents. */
function tableOf(root: TomlNode, { resolvedKey, key, loc }: AST.TOMLTable): TomlNode {
  let table = root
  let depth = -1
  for (const [at, name] of resolvedKey.entries()) {
    if (typeof name === 'number') continue
    depth += 1
    const spot = spotOf(depth === key.keys.length - 1 ? loc : (key.keys[depth]?.loc ?? loc))
    const index = resolvedKey[at + 1]
    table = typeof index === 'number' ? itemOf(table, name, spot, index) : memberOf(table, name, spot)
  }
  return table
}

function addLine(text: string, table: TomlNode, { key, value }: AST.TOMLKeyValue, level: number): void {
  const path = keyPath({ key })
  let inner = table
  for (const [index, name] of path.entries()) {
    const spot = spotOf((key.keys[index] ?? key).loc)
    if (index < path.length - 1) inner = memberOf(inner, name, spot)
    else membersOf(inner).set(name, nodeOf(text, value, memberPath(inner.path, name), spot, level))
  }
}

/** Deeper levels are not read; no file needs them. */
const MOST_LEVELS = 12
const MOST_WRITTEN = 60
const MOST_NAME = 100

function nodeOf(text: string, source: AST.TOMLContentNode, path: string, key: TomlSpot, level: number): TomlNode {
  const spot = spotOf(source.loc)
  if (source.type === 'TOMLInlineTable') {
    const table = { ...tableAt(path, spot), key, source }
    for (const line of level < MOST_LEVELS ? source.body : []) addLine(text, table, line, level + 1)
    return table
  }
  const [start, end] = source.range
  const beginning = text.slice(start, Math.min(end, start + 10 * MOST_WRITTEN))
  const node = { path, key, ...spot, source, written: truncate(beginning.replace(/\s+/g, ' '), MOST_WRITTEN) }
  if (source.type === 'TOMLValue') return { ...node, content: source.value }
  const elements = level < MOST_LEVELS ? source.elements : []
  const content = elements.map((each, index) => nodeOf(text, each, `${path}[${index}]`, spotOf(each.loc), level + 1))
  return { ...node, content }
}

/** Returns the path of a table's member. */
export function memberPath(path: string, name: string): string {
  const short = truncate(name, MOST_NAME)
  const shown = /^[\w-]+…?$/.test(short) ? short : JSON.stringify(short)
  return path === '' ? shown : `${path}.${shown}`
}

function tableAt(path: string, spot: TomlSpot): TomlNode {
  return { path, key: spot, ...spot, content: new Map(), written: 'a table' }
}

function membersOf({ content }: TomlNode): Map<string, TomlNode> {
  return content instanceof Map ? content : new Map()
}

/** Returns a table's member table; creates it if missing. */
function memberOf(table: TomlNode, name: string, spot: TomlSpot): TomlNode {
  const there = membersOf(table).get(name)
  if (there?.content instanceof Map) return there
  const made = tableAt(memberPath(table.path, name), spot)
  membersOf(table).set(name, made)
  return made
}

/** Returns a table in a list by index; creates both if missing. */
function itemOf(table: TomlNode, name: string, spot: TomlSpot, index: number): TomlNode {
  const path = memberPath(table.path, name)
  const there = membersOf(table).get(name)
  const items = Array.isArray(there?.content) ? there.content : []
  if (items !== there?.content) {
    membersOf(table).set(name, { path, key: spot, ...spot, content: items, written: 'a list of tables' })
  }
  items[index] ??= tableAt(`${path}[${index}]`, spot)
  return items[index]
}

function spotOf({ start: { line, column } }: AST.TOMLNode['loc']): TomlSpot {
  return { line, column: column + 1 }
}

/** Returns the file position of each character of a node's text, and of its end. `text`: the whole file. */
export function textSpots(text: string, { source, line, column }: TomlNode): readonly TomlSpot[] {
  if (source?.type !== 'TOMLValue' || source.kind !== 'string') return []
  const quotes = source.multiline ? 3 : 1
  const raw = text.slice(source.range[0], source.range[1] - quotes)
  // The first line end after three quotes is not part of the text.
  const begin = quotes + (source.multiline ? (/^\r?\n/.exec(raw.slice(quotes))?.[0].length ?? 0) : 0)
  const spots: TomlSpot[] = []
  let spot = after({ line, column }, raw.slice(0, begin))
  for (const [token] of raw.slice(begin).matchAll(source.style === 'basic' ? BASIC : LITERAL)) {
    for (let n = 0; n < widthOf(token); n++) spots.push(spot)
    spot = after(spot, token)
  }
  return [...spots, spot]
}

/** Tokens for one character, or none, in each kind of text. */
const BASIC = /\\[ \t]*\r?\n\s*|\\x[\dA-Fa-f]{2}|\\u[\dA-Fa-f]{4}|\\U[\dA-Fa-f]{8}|\\.|\r\n|[\s\S]/g
const LITERAL = /\r\n|[\s\S]/g

/** Returns the number of UTF-16 units that a token means. */
function widthOf(token: string): number {
  if (token.startsWith('\\U')) return Number.parseInt(token.slice(2), 16) > 0xffff ? 2 : 1
  return token.startsWith('\\') && /^\\\s/.test(token) ? 0 : 1
}

function after({ line, column }: TomlSpot, passed: string): TomlSpot {
  const lines = passed.split('\n')
  const last = lines.at(-1)?.length ?? 0
  return lines.length === 1 ? { line, column: column + last } : { line: line + lines.length - 1, column: last + 1 }
}

/** Returns the node at a path below a node; null: none. */
export function tomlNodeAt(node: TomlNode, path: readonly (string | number)[]): TomlNode | null {
  const [name, ...rest] = path
  if (name === undefined) return node
  const { content } = node
  const found =
    content instanceof Map ? content.get(String(name)) : Array.isArray(content) ? content[Number(name)] : null
  return found ? tomlNodeAt(found, rest) : null
}

/**
 * Returns a node's value in JavaScript: text, number, list, object; for a file, the object of its tables. A key `__proto__`
 * is an ordinary one.
 */
export function tomlValue({ content }: TomlNode): unknown {
  if (Array.isArray(content)) return content.map(tomlValue)
  if (!(content instanceof Map)) return content
  return Object.fromEntries([...content].map(([name, node]) => [name, tomlValue(node)]))
}

/** Returns a text as a quoted TOML basic string. */
export function tomlString(text: string): string {
  // A JSON string is a TOML basic string, except for one control character that JSON does not escape.
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007f')
}

/** Returns a value of `tomlValue` on one line, with inline tables and lists. */
export function tomlInline(value: unknown): string {
  if (typeof value === 'string') return tomlString(value)
  if (Array.isArray(value)) return `[${value.map(tomlInline).join(', ')}]`
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).map(([key, member]) => `${tomlString(key)} = ${tomlInline(member)}`)
  return `{${members.join(', ')}}`
}
