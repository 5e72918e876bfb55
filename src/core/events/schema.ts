import * as v from 'valibot'
import { unreachable } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'

/**
 * Schema of a journal value, made with valibot. Its type, its check (`checkOf`) and its row in docs/reference/events.md
 * follow from it. Objects are loose: fields of later versions stay. The library's type declarations name it.
 */
export type Schema<T> = v.GenericSchema<unknown, T>

/** Returns true if a journal value has the expected shape. */
type Check = (value: unknown) => boolean

export const text: Schema<string> = v.string()
export const number: Schema<number> = v.number()
export const flag: Schema<boolean> = v.boolean()
/** A moment that `Date.parse` understands; ISO 8601 as codemachine writes it. */
export const moment: Schema<string> = v.pipe(
  v.string(),
  v.check(value => !Number.isNaN(Date.parse(value))),
)

/** A value of any shape. */
export const anyValue: Schema<unknown> = v.any()

export function oneOf<const T extends readonly string[]>(...values: T): Schema<T[number]> {
  return v.picklist(values)
}

export function literal<const T extends string | boolean>(value: T): Schema<T> {
  return v.literal(value)
}

export function nullOr<T>(schema: Schema<T>): Schema<T | null> {
  return v.nullable(schema)
}

/** A field that may be left out. */
export function optional<T>(schema: Schema<T>): v.ExactOptionalSchema<Schema<T>, undefined> {
  return v.exactOptional(schema)
}

/** A field that earlier versions did not write, so it may be missing. */
export function addedLater<S extends v.GenericSchema>(schema: S): S {
  return v.exactOptional(schema) as unknown as S
}

export function listOf<T>(item: Schema<T>): Schema<readonly T[]> {
  return v.array(item)
}

/** The type of an object with these fields. */
type FieldsOf<E extends v.ObjectEntries> = v.InferOutput<v.ObjectSchema<E, undefined>>

export function fields<E extends v.ObjectEntries>(entries: E): Schema<FieldsOf<E>> {
  return v.looseObject(entries) as unknown as Schema<FieldsOf<E>>
}

/** The union of objects that differ by the word in field `K`. */
type Variant<K extends string, M extends Readonly<Record<string, v.ObjectEntries>>> = {
  [T in keyof M & string]: FieldsOf<{ [key in K]: Schema<T> } & M[T]>
}[keyof M & string]

/** Returns the schema of an object whose field `key` names its shape. */
export function variant<K extends string, M extends Readonly<Record<string, v.ObjectEntries>>>(
  key: K,
  shapes: M,
): Schema<Variant<K, M>> {
  const options = Object.entries(shapes).map(([word, entries]) => v.looseObject({ [key]: v.literal(word), ...entries }))
  return v.variant(key, options as never) as unknown as Schema<Variant<K, M>>
}

/** Returns the union of several variants with the same key field. */
export function anyOf<const S extends readonly Schema<unknown>[]>(
  key: string,
  ...variants: S
): Schema<v.InferOutput<S[number]>> {
  return v.variant(key, variants as never) as unknown as Schema<v.InferOutput<S[number]>>
}

/** Adds a description to a schema: the Markdown cell of its row in docs/reference/events.md. */
export function about<S extends v.GenericSchema>(schema: S, description: string): S {
  return v.pipe(schema, v.description(description)) as unknown as S
}

/** Writes by `schema`, but checks by `looser`: readers depend on no more than that. */
export function checkedAs<S extends v.GenericSchema>(looser: v.GenericSchema, schema: S): S {
  return v.pipe(looser, v.metadata({ written: schema })) as unknown as S
}

/** A field written by `schema`, which readers do not depend on: it may have any value, or be missing. */
export function unchecked<S extends v.GenericSchema>(schema: S): S {
  return v.exactOptional(checkedAs(v.any(), schema)) as unknown as S
}

type Entries = v.LooseObjectSchema<v.ObjectEntries, undefined>

/** Every kind of schema made in this file. */
export type KnownSchema =
  | v.StringSchema<undefined>
  | v.NumberSchema<undefined>
  | v.BooleanSchema<undefined>
  | v.AnySchema
  | v.LiteralSchema<string | boolean, undefined>
  | v.PicklistSchema<readonly string[], undefined>
  | v.NullableSchema<v.GenericSchema, undefined>
  | v.ExactOptionalSchema<v.GenericSchema, undefined>
  | v.ArraySchema<v.GenericSchema, undefined>
  | Entries
  | v.VariantSchema<string, Entries[], undefined>

/** Returns all object schemas of a variant, including those of nested variants. */
export function shapesOf(schema: v.GenericSchema): readonly Entries[] {
  const known = schema as KnownSchema
  if (known.type === 'loose_object') return [known]
  return known.type === 'variant' ? known.options.flatMap(shapesOf) : []
}

/**
 * Compiles a schema to a plain check function. Unlike valibot's parser it copies nothing and names no place: a journal may
 * have a hundred thousand lines.
 */
export function checkOf(schema: v.GenericSchema): Check {
  const check = checkOfKind(schema as KnownSchema)
  const [further, ...others] = requirementsOf(schema)
  if (further === undefined) return check
  return value => check(value) && further(value) && others.every(requirement => requirement(value))
}

/** Returns the functions of a schema's `v.check`s, including those of nested pipes. */
function requirementsOf(schema: object): Check[] {
  const pipe = 'pipe' in schema && Array.isArray(schema.pipe) ? schema.pipe : []
  return pipe.flatMap(item => {
    if (item.kind === 'validation') return [item.requirement]
    return item.kind === 'schema' && item !== schema ? requirementsOf(item) : []
  })
}

function checkOfKind(schema: KnownSchema): Check {
  switch (schema.type) {
    case 'string':
    case 'number':
    case 'boolean':
      return value => typeof value === schema.type
    case 'any':
      return anything
    case 'literal':
      return value => value === schema.literal
    case 'picklist':
      return value => typeof value === 'string' && schema.options.includes(value)
    case 'nullable': {
      const check = checkOf(schema.wrapped)
      return value => value === null || check(value)
    }
    case 'exact_optional': {
      const check = checkOf(schema.wrapped)
      return check === anything ? check : value => value === undefined || check(value)
    }
    case 'array': {
      const check = checkOf(schema.item)
      return value => Array.isArray(value) && value.every(check)
    }
    case 'loose_object': {
      const check = checkOfFields(schema.entries)
      return value => isJsonObject(value) && check(value)
    }
    case 'variant':
      return checkOfVariant(schema)
    default:
      return unreachable(schema)
  }
}

const anything: Check = () => true

function checkOfFields(entries: v.ObjectEntries): (value: Readonly<Record<string, unknown>>) => boolean {
  const checks = Object.entries(entries)
    .map(([name, schema]) => ({ name, check: checkOf(schema) }))
    .filter(({ check }) => check !== anything)
  return value => {
    for (const { name, check } of checks) if (!check(value[name])) return false
    return true
  }
}

/** Compiles the check of a shape on first use: a command meets only a few kinds of events. */
function checkOfVariant(schema: v.VariantSchema<string, Entries[], undefined>): Check {
  const { key } = schema
  const shapes = new Map<unknown, { fields: v.ObjectEntries; check?: ReturnType<typeof checkOfFields> }>()
  for (const { entries } of shapesOf(schema)) {
    const { [key]: word, ...fields } = entries
    shapes.set((word as v.LiteralSchema<string | boolean, undefined>).literal, { fields })
  }
  return value => {
    if (!isJsonObject(value)) return false
    const shape = shapes.get(value[key])
    if (shape === undefined) return false
    shape.check ??= checkOfFields(shape.fields)
    return shape.check(value)
  }
}
