import type { AST } from 'toml-eslint-parser'
import { truncate } from '../../../../base/text.ts'
import { keyPath, type TomlProblem, tomlProgram } from '../../../../platform/toml.ts'
import type { At } from '../file.ts'

/** A table, a list or a value of a TOML file, with its place. */
export type TomlNode = TomlTable | TomlList | TomlScalar

/** A table, however it is written: with a header, inline, or by dotted keys. */
export interface TomlTable extends At {
  kind: 'table'
  members: Map<string, { key: At; node: TomlNode }>
}

/** A list of values, or of tables. */
interface TomlList extends At {
  kind: 'list'
  items: TomlNode[]
  /** Cut short where it is long. */
  written: string
}

/** A text, a number, a truth value or a date. */
export interface TomlScalar extends At {
  kind: 'scalar'
  value: unknown
  /** As it stands in the file; cut short where it is long. */
  written: string
  /** Where the character at an index of the text stands in the file. Of a text only. */
  placeOf: (index: number) => Pick<At, 'line' | 'column'>
}

/** The tables of a TOML text as one, or why it is no TOML. */
export function tomlTree(text: string): TomlTable | TomlProblem {
  const program = tomlProgram(text)
  return 'problem' in program ? program : new TreeBuilder(text).build(program)
}

/** The place of a member of a table. */
export function memberPlace(place: string, key: string): string {
  const name = truncate(key, MOST_NAME)
  const shown = /^[\w-]+…?$/.test(name) ? name : JSON.stringify(name)
  return place === '' ? shown : `${place}.${shown}`
}

/** No workflow needs more; what lies deeper is not read. */
const MOST_LEVELS = 12
const MOST_WRITTEN = 60
const MOST_NAME = 100

class TreeBuilder {
  readonly #text: string
  readonly #lineStarts: readonly number[]

  constructor(text: string) {
    this.#text = text
    this.#lineStarts = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)]
  }

  build(program: AST.TOMLProgram): TomlTable {
    const root = tableAt({ place: '', line: 1, column: 1 })
    for (const node of program.body[0].body) {
      const [table, lines] = node.type === 'TOMLTable' ? [this.#tableOf(root, node), node.body] : [root, [node]]
      for (const line of lines) this.#set(table, line, 0)
    }
    return root
  }

  /** The table of a header; those above it are made where they are not there yet. */
  #tableOf(root: TomlTable, { resolvedKey, key, loc }: AST.TOMLTable): TomlTable {
    let table = root
    let depth = -1
    for (const [at, name] of resolvedKey.entries()) {
      if (typeof name === 'number') continue
      depth += 1
      const last = depth === key.keys.length - 1
      const start = this.#at(memberPlace(table.place, name), (last ? loc : (key.keys[depth]?.loc ?? loc)).start)
      const next = resolvedKey[at + 1]
      table = typeof next === 'number' ? itemOf(table, name, start, next) : memberOf(table, name, start)
    }
    return table
  }

  #set(table: TomlTable, line: AST.TOMLKeyValue, level: number): void {
    const { key, value } = line
    const path = keyPath(line)
    let inner = table
    for (const [index, name] of path.entries()) {
      const at = this.#at(memberPlace(inner.place, name), (key.keys[index] ?? key).loc.start)
      if (index < path.length - 1) inner = memberOf(inner, name, at)
      else inner.members.set(name, { key: at, node: this.#node(value, at.place, level) })
    }
  }

  #node(value: AST.TOMLContentNode, place: string, level: number): TomlNode {
    const at = this.#at(place, value.loc.start)
    const isDeep = level >= MOST_LEVELS
    if (value.type === 'TOMLInlineTable') {
      const table = tableAt(at)
      for (const each of isDeep ? [] : value.body) this.#set(table, each, level + 1)
      return table
    }
    const [start, end] = value.range
    const beginning = this.#text.slice(start, Math.min(end, start + 10 * MOST_WRITTEN))
    const written = truncate(beginning.replace(/\s+/g, ' '), MOST_WRITTEN)
    if (value.type === 'TOMLArray') {
      const elements = isDeep ? [] : value.elements
      const items = elements.map((each, index) => this.#node(each, `${place}[${index}]`, level + 1))
      return { kind: 'list', ...at, items, written }
    }
    let offsets: readonly number[] | null = null
    const placeOf = (index: number) => {
      offsets ??= value.kind === 'string' ? this.#offsetsOf(value) : []
      return this.#lineColumn(offsets[index] ?? start)
    }
    return { kind: 'scalar', ...at, value: value.value, written, placeOf }
  }

  /** For each character of a text where it begins in the file, and where the text ends. */
  #offsetsOf({ range: [start, end], style, multiline }: AST.TOMLStringValue): number[] {
    const quotes = multiline ? 3 : 1
    const raw = this.#text.slice(start + quotes, end - quotes)
    const offsets: number[] = []
    // The first line end after three quotes is not part of the text.
    const begin = multiline ? (/^\r?\n/.exec(raw)?.[0].length ?? 0) : 0
    for (const { 0: token, index } of raw.slice(begin).matchAll(style === 'basic' ? BASIC : LITERAL)) {
      for (let n = 0; n < widthOf(token); n++) offsets.push(start + quotes + begin + index)
    }
    return [...offsets, end - quotes]
  }

  #lineColumn(offset: number): Pick<At, 'line' | 'column'> {
    let [low, high] = [0, this.#lineStarts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (this.#lineStarts[low] ?? 0) + 1 }
  }

  #at(place: string, { line, column }: AST.TOMLNode['loc']['start']): At {
    return { place, line, column: column + 1 }
  }
}

/** What stands for one character, or for none, in each kind of text. */
const BASIC = /\\[ \t]*\r?\n\s*|\\x[\dA-Fa-f]{2}|\\u[\dA-Fa-f]{4}|\\U[\dA-Fa-f]{8}|\\.|\r\n|[\s\S]/g
const LITERAL = /\r\n|[\s\S]/g

/** How many UTF-16 units of the text it stands for. */
function widthOf(token: string): number {
  if (token.startsWith('\\U')) return Number.parseInt(token.slice(2), 16) > 0xffff ? 2 : 1
  return token.startsWith('\\') && /^\\\s/.test(token) ? 0 : 1
}

function tableAt(at: At): TomlTable {
  return { kind: 'table', ...at, members: new Map() }
}

/** The table of that name in a table, made where there is none. */
function memberOf(table: TomlTable, name: string, at: At): TomlTable {
  const there = table.members.get(name)?.node
  if (there?.kind === 'table') return there
  const made = tableAt(at)
  table.members.set(name, { key: at, node: made })
  return made
}

/** The table with an index in the list of that name, both made where they are not there. */
function itemOf(table: TomlTable, name: string, at: At, index: number): TomlTable {
  const there = table.members.get(name)?.node
  const list: TomlList =
    there?.kind === 'list' ? there : { kind: 'list', ...at, items: [], written: 'a list of tables' }
  if (list !== there) table.members.set(name, { key: at, node: list })
  const item = list.items[index]
  if (item?.kind === 'table') return item
  const made = tableAt({ ...at, place: `${at.place}[${index}]` })
  list.items[index] = made
  return made
}
