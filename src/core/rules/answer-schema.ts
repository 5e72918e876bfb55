import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema'
import { memberOf } from '../../base/json.ts'
import { clipEnd } from '../../base/text.ts'
import type { JsonSchema } from './answer.ts'

// Loaded when an answer is checked, and not before: a start needs none of this.

/** The problems that are named, and the characters of one. */
const MOST_NAMED = 5
const MOST_CHARACTERS = 300
const MOST_SHOWN = 80

/**
 * Why a value does not fit a schema: a line for each place, with what is there and what has to be; null if it fits.
 * Throws for a schema that is none, which is a bug of whoever asks with it. Pure.
 */
export function schemaProblem(value: unknown, schema: JsonSchema): string | null {
  const { valid, errors } = new Validator(schema as Schema, '2020-12', false).validate(value)
  if (valid) return null
  const wrong = leaves(errors)
  const lines = wrong.slice(0, MOST_NAMED).map(error => describe(error, value, schema))
  const more = wrong.length - lines.length
  return [...new Set(lines), ...(more > 0 ? [`and ${more} more like these`] : [])].join('\n')
}

/** Errors that only say that there is one further down. */
const ABOVE: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'dependentSchemas',
  'propertyNames',
  '$ref',
  'allOf',
  'if',
])

/** Of several shapes one has to fit: what is wrong by each of them would only confuse. */
const CHOICES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'not', 'contains'])

/** The errors that say what is wrong, without those that only lead there. */
function leaves(errors: readonly OutputUnit[]): OutputUnit[] {
  const choices = errors
    .filter(({ keyword }) => CHOICES.has(keyword))
    .map(({ keywordLocation }) => `${keywordLocation}/`)
  return errors.filter(({ keyword, keywordLocation }, at) => {
    if (ABOVE.has(keyword) || keyword === 'false') return false
    if (EXTRA.has(keyword) && errors[at + 1]?.keyword !== 'false') return false
    return !choices.some(choice => keywordLocation.startsWith(choice))
  })
}

/** A field that is not asked for, or a field whose own shape is wrong; the error after it tells which. */
const EXTRA: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties'])

function describe(
  { instanceLocation, keyword, keywordLocation, error }: OutputUnit,
  root: unknown,
  schema: JsonSchema,
): string {
  const { place, value } = placeOf(instanceLocation, root)
  const wanted = wantedAt(schema, keywordLocation)
  const named = /"(.*)"/s.exec(error)?.[1] ?? ''
  return clipEnd(`- ${sentence(place, { keyword, value, wanted, named, error })}`, MOST_CHARACTERS)
}

interface Mistake {
  keyword: string
  /** What stands at the place. */
  value: unknown
  /** What the schema says of it; undefined if that is not found. */
  wanted: unknown
  /** The field that the library names. */
  named: string
  /** The library's own sentence. */
  error: string
}

function sentence(place: string, { keyword, value, wanted, named, error }: Mistake): string {
  switch (keyword) {
    case 'required':
      return `${place} has no field "${named}", which is required.`
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `${place} has a field "${named}", which was not asked for; leave it out.`
    case 'type':
      return `${place} is ${shown(value)}; it has to be ${typesIn(wanted)}.`
    case 'enum':
      return `${place} is ${shown(value)}; it has to be one of ${Array.isArray(wanted) ? wanted.map(shown).join(', ') : shown(wanted)}.`
    case 'const':
      return `${place} is ${shown(value)}; it has to be ${shown(wanted)}.`
    case 'pattern':
      return `${place} is ${shown(value)}; it has to match ${String(wanted)}.`
    default:
      return CHOICES.has(keyword)
        ? `${place} is ${shown(value)}, which has none of the shapes that it may have.`
        : `${place} is ${shown(value)}: ${error}`
  }
}

function typesIn(wanted: unknown): string {
  const types = (Array.isArray(wanted) ? wanted : [wanted]).map(each => NAMES[String(each)] ?? String(each))
  return types.join(' or ')
}

const NAMES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** A value in a few characters: what is long only by its kind. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'missing'
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN).toWellFormed()}…`
}

/** The place that a JSON pointer (`#/findings/0/line`) leads to, as code names it, and what stands there. */
function placeOf(pointer: string, root: unknown): { place: string; value: unknown } {
  let value = root
  let place = ''
  for (const step of stepsOf(pointer)) {
    place += Array.isArray(value) ? `[${step}]` : place === '' ? step : `.${step}`
    value = memberOf(value, step)
  }
  return { place: place === '' ? 'The answer' : `\`${place}\``, value }
}

/** What stands in the schema at the place of an error; undefined if it is not found. A `$ref` is followed within the schema. */
function wantedAt(schema: JsonSchema, location: string): unknown {
  let found: unknown = schema
  for (const step of stepsOf(location)) {
    found = memberOf(found, step)
    // Else it is a field of that name.
    if (step !== '$ref' || typeof found !== 'string') continue
    if (!found.startsWith('#')) return undefined
    found = stepsOf(found).reduce(memberOf, schema as unknown)
  }
  return found
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map(step => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
}
