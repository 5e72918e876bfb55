import * as v from 'valibot'
import { nearestName, parseDuration, truncate } from '../../../../base/text.ts'
import type { At, Placed } from '../file.ts'
import type { Mistake } from '../plan.ts'
import { firstReference } from '../references.ts'
import { memberPlace, type TomlNode, type TomlScalar, type TomlTable } from './toml-tree.ts'

/** So many mistakes of one file are told; a last one says how many there are beside them. */
const MOST_MISTAKES = 200
/** So many names are looked through for the nearest one. */
const MOST_COMPARED = 200

/** The mistakes of one file, as they are found. */
export class Mistakes {
  readonly #file: string
  readonly #found: Mistake[] = []
  #beyond = 0

  constructor(file: string) {
    this.#file = file
  }

  /** The name of those that was most likely meant; null: none is like it, or no more mistakes are told. */
  nearest(written: string, known: readonly string[]): string | null {
    return this.#isFull ? null : nearestName(written, known.slice(0, MOST_COMPARED))
  }

  /** `problem`: what is wrong, and the mend: a sentence without its end. */
  add({ place, line, column }: At, problem: string): void {
    if (this.#isFull) this.#beyond += 1
    else this.#found.push({ file: this.#file, line, column, place, problem })
  }

  get #isFull(): boolean {
    return this.#found.length >= MOST_MISTAKES
  }

  /** In the order of the file. */
  sorted(): readonly Mistake[] {
    const inOrder = this.#found.toSorted((a, b) => a.line - b.line || a.column - b.column)
    const last = inOrder.at(-1)
    if (this.#beyond === 0 || last === undefined) return inOrder
    const problem = `there are ${this.#beyond} more mistakes; mend these first`
    return [...inOrder, { file: this.#file, line: last.line, column: last.column, place: '', problem }]
  }
}

/** What a value may be. Its description completes `use …`. */
export type ValueType<T> = v.GenericSchema<unknown, T>

/** One line that is not blank. */
export const line = (description: string, most = 500): ValueType<string> =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^\P{Cc}*$/u), v.regex(/\S/), v.description(description))

/** Any text without control characters but tabs and line ends. */
export const text = (description: string, most: number): ValueType<string> =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^[\P{Cc}\t\r\n]*$/u), v.description(description))

/** A line for a shell. */
export const command = line('a command on one line, such as "npm test"', 4000)

/** The path of a file, as it is written. */
export const filePath = (example: string) => line(`a path on one line, such as ${JSON.stringify(example)}`, 1000)

export const trueOrFalse: ValueType<boolean> = v.pipe(v.boolean(), v.description('true or false'))

export const wholeNumber = (min: number, max: number): ValueType<number> =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

/** One of some names. */
export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names): ValueType<Names[number]> =>
  v.pipe(
    v.picklist(names),
    v.description(names.length === 1 ? `"${names[0]}"` : `one of ${names.map(name => `"${name}"`).join(', ')}`),
  )

const DAY_MS = 24 * 60 * 60 * 1000

/** From a second to a day, written with its unit; ms once it is parsed. */
export const duration: ValueType<number> = v.pipe(
  v.string(),
  v.transform(parseDuration),
  v.number(),
  v.minValue(1000),
  v.maxValue(DAY_MS),
  v.description('a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"'),
)

/** Reads the keys of one table. What is wrong becomes a mistake, and is null as if it were not there. */
export class TableReader {
  readonly at: At
  readonly #table: TomlTable
  readonly #mistakes: Mistakes
  readonly #known = new Set<string>()
  readonly #hints = new Map<string, string>()

  constructor(table: TomlTable, mistakes: Mistakes) {
    this.at = { place: table.place, line: table.line, column: table.column }
    this.#table = table
    this.#mistakes = mistakes
  }

  /** The keys, in the order of the file. */
  get keys(): readonly string[] {
    return [...this.#table.members.keys()]
  }

  /** Whether there is such a key, whatever its value; it is known from then on. */
  has(key: string): boolean {
    this.#known.add(key)
    return this.#table.members.has(key)
  }

  /** Where a key stands; where the table begins, if there is none. */
  atKey(key: string): At {
    return this.#table.members.get(key)?.key ?? { ...this.at, place: memberPlace(this.at.place, key) }
  }

  value<T>(key: string, type: ValueType<T>): Placed<T> | null {
    const node = this.#node(key)
    return node === null ? null : this.#parsed(node, type)
  }

  /** As `value`, of a text in which `{{name}}` would be taken for a value that is put in. */
  verbatim(key: string, type: ValueType<string>): Placed<string> | null {
    const placed = this.value(key, type)
    return placed === null || this.#refusedReference(placed) ? null : placed
  }

  /** The values of a list, without those that are wrong; empty where there is none. */
  verbatimList(key: string, type: ValueType<string>, most: number): Placed<string>[] {
    const placed = this.list(key, type, most)
    return placed.filter(each => !this.#refusedReference(each))
  }

  list<T>(key: string, type: ValueType<T>, most: number): Placed<T>[] {
    const node = this.#node(key)
    if (node === null) return []
    const use = `use a list of at most ${most}, each ${v.getDescription(type)}`
    if (node.kind !== 'list' || node.items.length > most) {
      this.#mistakes.add(node, `${node.kind === 'list' ? `has ${node.items.length} values` : isWhat(node)}; ${use}`)
      return []
    }
    return node.items.flatMap(item => this.#parsed(item, type) ?? [])
  }

  /** A text as it stands in the file, by whose characters places can be told. */
  scalarText(key: string, type: ValueType<string>): TomlScalar | null {
    const node = this.#node(key)
    return node !== null && this.#parsed(node, type) !== null && node.kind === 'scalar' ? node : null
  }

  /** `header`: how such a table is begun. */
  table(key: string, header: string): TableReader | null {
    const node = this.#node(key)
    return node === null ? null : this.#tableIn(node, header)
  }

  /** Every member as a table, by its name. `header`: how one of them is begun. */
  tables(header: string): { name: string; reader: TableReader }[] {
    return this.keys.flatMap(name => {
      const reader = this.table(name, header)
      return reader === null ? [] : [{ name, reader }]
    })
  }

  /** Every table of a list of tables. `header`: how one of them is begun. */
  listOfTables(key: string, header: string): TableReader[] {
    const node = this.#node(key)
    if (node === null) return []
    if (node.kind !== 'list') {
      this.#mistakes.add(this.atKey(key), `is no list; begin each of its tables with a line ${header}`)
      return []
    }
    return node.items.flatMap(item => this.#tableIn(item, header) ?? [])
  }

  /** A member as it is, whatever it is. */
  node(key: string): TomlNode | null {
    return this.#node(key)
  }

  /** What is said of a key that does not belong here but elsewhere: the mend. */
  hint(keys: readonly string[], mend: string): void {
    for (const key of keys) this.#hints.set(key, mend)
  }

  /** Makes every key that was not asked for a mistake. */
  refuseOthers(): void {
    const known = [...this.#known]
    for (const [key, { key: at }] of this.#table.members) {
      if (this.#known.has(key)) continue
      const near = this.#mistakes.nearest(key, known)
      const mend =
        this.#hints.get(key) ?? (near === null ? `the known ones are ${known.join(', ')}` : `the nearest is "${near}"`)
      this.#mistakes.add(at, `unknown key ${named(key)}; ${mend}`)
    }
  }

  #node(key: string): TomlNode | null {
    return this.has(key) ? (this.#table.members.get(key)?.node ?? null) : null
  }

  #tableIn(node: TomlNode, header: string): TableReader | null {
    if (node.kind === 'table') return new TableReader(node, this.#mistakes)
    this.#mistakes.add(node, `${isWhat(node)}; it is a table, begun with a line ${header}`)
    return null
  }

  #parsed<T>(node: TomlNode, type: ValueType<T>): Placed<T> | null {
    const { place, line, column } = node
    const parsed = node.kind === 'scalar' ? v.safeParse(type, node.value, { abortPipeEarly: true }) : null
    if (parsed?.success) return { value: parsed.output, place, line, column }
    this.#mistakes.add(node, `${isWhat(node)}; use ${v.getDescription(type)}`)
    return null
  }

  #refusedReference(placed: Placed<string>): boolean {
    const reference = firstReference(placed.value)
    if (reference === null) return false
    this.#mistakes.add(
      placed,
      `nothing is put in for ${reference} here; use it in the template of an input or in when, and write the value itself here`,
    )
    return true
  }
}

/** A name in quotes, cut short where it is long. */
export function named(name: string): string {
  return JSON.stringify(truncate(name, 60))
}

function isWhat(node: TomlNode): string {
  return `is ${node.kind === 'table' ? 'a table' : node.written}`
}
