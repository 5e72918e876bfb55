import * as v from 'valibot'
import { nearestName, parseDuration, truncate } from '../base/text.ts'
import { memberPath, type TomlNode, type TomlSpot, tomlValue } from './toml.ts'

/** Metadata of a value or table schema. A value also has a description, which completes `use …`. */
export type TomlAbout = {
  /** True: the value may be a secret, and is never shown. */
  secret?: true
  /** The advice if it is missing, for a required value. */
  missing?: string
  /** Returns why a value of the right type is invalid, a predicate; null: it is valid. */
  refuse?(value: never): string | null
  /** For a table: advice about unknown keys; `*`: about all unknown keys without a similar known one. */
  hints?: Readonly<Record<string, string>>
  /** For a table with free member names: schema of those names. */
  names?: v.GenericSchema
}

/** A mistake in a TOML file. `problem`: a predicate, without its end. */
export interface TomlMistake extends TomlSpot {
  /** See `TomlNode.path`. */
  place: string
  problem: string
}

// Types of values. A description completes `use …`.

/** Returns the schema of one of some names. */
export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.picklist(names), v.description(names.length === 1 ? `"${names[0]}"` : `one of ${quoted(names)}`))

/** Returns names in quotes, for a description. */
export function quoted(names: readonly string[]): string {
  return names.map(name => `"${name}"`).join(', ')
}

/** Returns the schema of a whole number from `min` to `max`. */
export const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

/** Returns the schema of a duration of at least one second with its unit (`8h`), parsed to ms. */
export const durationUpTo = (most: number, description: string) =>
  v.pipe(
    v.string(),
    v.transform(parseDuration),
    v.number(),
    v.minValue(1000),
    v.maxValue(most),
    v.description(description),
  )

/** Duration of one command. */
export const shortDuration = durationUpTo(
  24 * 60 * 60 * 1000,
  'a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"',
)

export const trueOrFalse = v.pipe(v.boolean(), v.description('true or false'))

/** Returns the schema of a non-blank line. Two linear patterns: a combined one would take for ever on a long text. */
export const line = (description: string, most = 10_000) =>
  v.pipe(v.string(), v.maxLength(most), v.regex(/^\P{Cc}*$/u), v.regex(/\S/), v.description(description))

/** Schema of a shell command line. */
export const command = line('a command on one line, such as "npm test"', 4000)

/** Returns the schema of a table with only these keys, all optional. */
export const table = <const Entries extends v.ObjectEntries>(entries: Entries, about: TomlAbout = {}) =>
  v.pipe(v.partial(v.strictObject(entries)), v.metadata(about))

/**
 * Reads a file or a part of it by its schema; leaves wrong parts out. Tables are object or record schemas, values have a
 * description. Mistakes are in file order.
 */
export function checkToml<Schema extends v.GenericSchema>(
  schema: Schema,
  node: TomlNode,
): { value: v.InferOutput<Schema>; mistakes: readonly TomlMistake[] } {
  const reader = new Reader()
  const value = reader.read(schema, node) as v.InferOutput<Schema>
  return { value, mistakes: reader.mistakes.toSorted((a, b) => a.line - b.line || a.column - b.column) }
}

/** Returns why a value does not fit a schema, a predicate without its end; null: it fits. */
export function valueProblem(schema: v.GenericSchema, value: unknown, written: string): string | null {
  const { secret, refuse }: TomlAbout = v.getMetadata(schema)
  const is = secret === true ? 'wrong (not shown, as it may hold a secret)' : truncate(written, 60)
  const parsed = v.safeParse(schema, value, { abortPipeEarly: true })
  return parsed.success ? (refuse?.(value as never) ?? null) : `is ${is}; use ${v.getDescription(schema)}`
}

/** The used parts of table and list schemas. */
interface Parts {
  wrapped?: v.GenericSchema
  /** Of a table and a list of such tables. */
  options?: readonly v.GenericSchema[]
  pipe?: readonly { type: string; requirement?: number }[]
  item?: v.GenericSchema
  entries?: v.ObjectEntries
  /** For a record: schemas of its names and members. */
  key?: v.GenericSchema
  value?: v.GenericSchema
  /** For a table with free member names: schema of these members. */
  rest?: v.GenericSchema
}

/** Reads by schemas, and collects the mistakes. */
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
    if (parts.options !== undefined) {
      const isList = Array.isArray(node.content)
      return this.read(parts.options.find(each => 'item' in each === isList) ?? schema, node)
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
      // A value whose name resembles a known key is a slip, not a free member.
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
    // Nobody reads suggestions for very many mistakes.
    const near = this.mistakes.length < MOST_NEAREST ? nearestName(name, known) : null
    const usual = hints['*'] ?? `the known ones are ${known.join(', ')}`
    const mend = Object.hasOwn(hints, name) ? hints[name] : near === null ? usual : `did you mean "${near}"?`
    return `is an unknown key; ${mend}`
  }
}

const MOST_NEAREST = 200
