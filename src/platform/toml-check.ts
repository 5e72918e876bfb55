import * as v from 'valibot'
import { nearestName, parseDuration, truncate } from '../base/text.ts'
import { memberPath, type TomlNode, type TomlSpot, tomlValue } from './toml.ts'

/** What a schema says of a value or a table beside its type. A value has a description, too, which completes `use …`. */
export type TomlAbout = {
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

// Types of values. A description completes `use …`.

/** One of some names. */
export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.picklist(names), v.description(names.length === 1 ? `"${names[0]}"` : `one of ${quoted(names)}`))

/** Names in quotes, for a description. */
export function quoted(names: readonly string[]): string {
  return names.map(name => `"${name}"`).join(', ')
}

/** A whole number between two, both allowed. */
export const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

/** From one second on, written with its unit, such as `8h`; ms once it is parsed. */
export const durationUpTo = (most: number, description: string) =>
  v.pipe(
    v.string(),
    v.transform(parseDuration),
    v.number(),
    v.minValue(1000),
    v.maxValue(most),
    v.description(description),
  )

/** That of one command. */
export const shortDuration = durationUpTo(
  24 * 60 * 60 * 1000,
  'a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"',
)

export const trueOrFalse = v.pipe(v.boolean(), v.description('true or false'))

/** One line that is not blank. Two looks, each of which takes time that grows with the length alone: in one pattern a long text would take for ever. */
export const line = (description: string, most = 10_000) =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^\P{Cc}*$/u), v.regex(/\S/), v.description(description))

/** A line for a shell. */
export const command = line('a command on one line, such as "npm test"', 4000)

/** A table in which every key may be left out, and no other may stand. */
export const table = <const Entries extends v.ObjectEntries>(entries: Entries, about: TomlAbout = {}) =>
  v.pipe(v.partial(v.strictObject(entries)), v.metadata(about))

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
  pipe?: readonly { type: string; requirement?: number }[]
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
    if (parts.item !== undefined) return this.#list(schema, parts, node, `[[${path}]]`)
    if (node.content instanceof Map) return this.#table(schema, parts, node, node.content)
    return this.#add(node, `is not a table; begin it with a line ${header}`, node.path)
  }

  #add({ line, column }: TomlSpot, problem: string, place: string): undefined {
    this.mistakes.push({ line, column, place, problem })
  }

  #list(schema: v.GenericSchema, { item, pipe = [] }: Parts, node: TomlNode, header: string): unknown {
    const of = v.getDescription(item as v.GenericSchema)
    const most = pipe.find(({ type }) => type === 'max_length')?.requirement ?? Number.POSITIVE_INFINITY
    const { missing }: TomlAbout = v.getMetadata(schema)
    if (!Array.isArray(node.content)) {
      const use = `use a list${most < Number.POSITIVE_INFINITY ? ` of at most ${most}` : ''}, each ${of}`
      const begin = `is not a list; begin each of its tables with a line ${header}`
      return this.#add(node, of === undefined ? begin : `is ${node.written}; ${use}`, node.path)
    }
    const beyond = node.content[most]
    if (beyond !== undefined) this.#add(beyond, `is beyond the ${most} that there may be; leave some out`, beyond.path)
    if (missing !== undefined && node.content.length === 0) this.#add(node.key, `is empty; ${missing}`, node.path)
    return node.content.slice(0, most).map(each => this.read(item as v.GenericSchema, each))
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
