import * as v from 'valibot'
import { nearestName, truncate } from '../base/text.ts'
import { memberPath, type TomlNode, type TomlSpot, tomlValue } from './toml.ts'

/** What a schema says of a value or a table beside its type. A value has a description, too, which completes `use …`. */
export interface TomlAbout {
  /** Whether the value may be a secret, and is never shown. */
  secret?: true
  /** What is done where it is missing, though it has to be there. */
  missing?: string
  /** Why a value of the right type cannot be used, a predicate; null: it can. */
  refuse?(value: never): string | null
  /** Of a table: what is said of keys that do not belong there; of `*`: of all that are like none. */
  hints?: Readonly<Record<string, string>>
  /** Of a table with members of any name beside its own: what names they may have. */
  names?: v.GenericSchema
}

/** A mistake in a TOML file. `problem`: a predicate, without its end. */
export interface TomlMistake extends TomlSpot {
  /** As `TomlNode.path`. */
  place: string
  problem: string
}

/** A table in which every key may be left out, and no other may stand. */
export const table = <const Entries extends v.ObjectEntries, const About extends TomlAbout & object>(
  entries: Entries,
  about?: About,
) => v.pipe(v.partial(v.strictObject(entries)), v.metadata({ ...about }))

/**
 * What a file, or a part of one, says by its schema; what is wrong is left out of it. Tables are schemas of objects or records, values are
 * schemas with a description. In the order of the file.
 */
export function checkToml<Schema extends v.GenericSchema>(
  schema: Schema,
  node: TomlNode,
): { value: v.InferOutput<Schema>; mistakes: readonly TomlMistake[] } {
  const reader = new Reader()
  const value = reader.read(schema, node) as v.InferOutput<Schema>
  return { value, mistakes: reader.mistakes.toSorted((a, b) => a.line - b.line || a.column - b.column) }
}

/** Why a value does not fit a schema, a predicate without its end; null: it fits. */
export function valueProblem(schema: v.GenericSchema, value: unknown, written: string): string | null {
  const { secret, refuse }: TomlAbout = v.getMetadata(schema)
  const is = secret === true ? 'wrong (not shown, as it may hold a secret)' : truncate(written, 60)
  const parsed = v.safeParse(schema, value, { abortPipeEarly: true })
  return parsed.success ? (refuse?.(value as never) ?? null) : `is ${is}; use ${v.getDescription(schema)}`
}

/** The parts of the schemas of tables and lists that are looked at. */
interface Parts {
  wrapped?: v.GenericSchema
  item?: v.GenericSchema
  entries?: v.ObjectEntries
  /** Of a record: of its names, and of its members. */
  key?: v.GenericSchema
  value?: v.GenericSchema
  /** Of a table with members of any name beside its own. */
  rest?: v.GenericSchema
}

/** Reads by schemas, and notes the mistakes. */
class Reader {
  readonly mistakes: TomlMistake[] = []

  read(schema: v.GenericSchema, node: TomlNode): unknown {
    const parts = schema as unknown as Parts
    if (parts.wrapped !== undefined) return this.read(parts.wrapped, node)
    if (v.getDescription(schema) !== undefined) {
      const value = tomlValue(node)
      const problem = valueProblem(schema, value, node.written)
      return problem === null ? v.parse(schema, value) : this.#add(node, problem, node.path)
    }
    const path = node.path.replace(/\[\d+\]/g, '')
    const header = node.path.endsWith(']') ? `[[${path}]]` : `[${path}${parts.value === undefined ? '' : '.NAME'}]`
    if (parts.item !== undefined) return this.#list(parts.item, node, `[[${path}]]`)
    if (node.content instanceof Map) return this.#table(schema, parts, node, node.content)
    return this.#add(node, `is no table; begin it with a line ${header}`, node.path)
  }

  #add({ line, column }: TomlSpot, problem: string, place: string): undefined {
    this.mistakes.push({ line, column, place, problem })
  }

  #list(item: v.GenericSchema, node: TomlNode, header: string): unknown {
    if (Array.isArray(node.content)) return node.content.map(each => this.read(item, each))
    const of = v.getDescription(item)
    const begin = `is no list; begin each of its tables with a line ${header}`
    return this.#add(node, of === undefined ? begin : `is ${node.written}; use a list, each ${of}`, node.path)
  }

  #table(schema: v.GenericSchema, parts: Parts, node: TomlNode, members: ReadonlyMap<string, TomlNode>): unknown {
    const { entries = {}, key, value, rest = value } = parts
    const about: TomlAbout = v.getMetadata(schema)
    const { names = key, hints = {} } = about
    const found: [string, unknown][] = []
    for (const [name, member] of members) {
      const own = Object.hasOwn(entries, name) ? entries[name] : undefined
      // A value with nearly the name of one of the table's own is no member of any name.
      const isSlip = !(member.content instanceof Map) && nearestName(name, Object.keys(entries)) !== null
      const inner = own ?? (isSlip ? undefined : rest)
      if (inner === undefined) this.#add(member.key, this.#unknown(name, Object.keys(entries), hints), member.path)
      else if (own === undefined && names !== undefined && !v.is(names, name))
        this.#add(member.key, `cannot have this name; use ${v.getDescription(names)}`, member.path)
      else found.push([name, this.read(inner as v.GenericSchema, member)])
    }
    for (const [name, { wrapped }] of Object.entries(entries as Record<string, Parts>)) {
      const { missing }: TomlAbout = wrapped === undefined ? {} : v.getMetadata(wrapped)
      if (missing !== undefined && !members.has(name))
        this.#add(node, `is missing; ${missing}`, memberPath(node.path, name))
    }
    return Object.fromEntries(found)
  }

  #unknown(name: string, known: readonly string[], hints: Readonly<Record<string, string>>): string {
    // Of very many nobody reads the nearest.
    const near = this.mistakes.length < MOST_NEAREST ? nearestName(name, known) : null
    const usual = hints['*'] ?? `the known ones are ${known.join(', ')}`
    const mend = Object.hasOwn(hints, name) ? hints[name] : near === null ? usual : `did you mean "${near}"?`
    return `is an unknown key; ${mend}`
  }
}

const MOST_NEAREST = 200
