import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema'
import { memberOf } from '../../base/json.ts'
import { clipEnd } from '../../base/text.ts'
import type { JsonSchema } from './answer.ts'

// Loaded only when an answer is checked, to keep the start fast.

/** Limits: named problems, characters of a problem, characters of a shown value. */
const MOST_NAMED = 5
const MOST_CHARACTERS = 300
const MOST_SHOWN = 80

/**
 * Returns why a value does not fit a schema: a line per place with the found and expected value; null: it fits. Throws for
 * an invalid schema, a bug of the caller. Pure.
 */
export function schemaProblem(value: unknown, schema: JsonSchema): string | null {
  const { valid, errors } = new Validator(schema as Schema, '2020-12', false).validate(value)
  if (valid) return null
  const wrong = leaves(errors)
  const lines = wrong.slice(0, MOST_NAMED).map(error => describe(error, value, schema))
  const more = wrong.length - lines.length
  return [...new Set(lines), ...(more > 0 ? [`and ${more} more like these`] : [])].join('\n')
}

/** Keywords of errors that only point to a deeper error. */
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

/** Keywords with alternative shapes; errors of each alternative would only confuse. */
const CHOICES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'not', 'contains'])

/** Returns the actual errors, without those that only lead to them. */
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

/** An extra field, or a field of wrong shape; the next error tells which. */
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
  /** The value at the place. */
  value: unknown
  /** The schema's demand; undefined: not found. */
  wanted: unknown
  /** The field name from the library's message. */
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
      return `${place} has a field "${named}", which the schema does not allow; leave it out.`
    case 'type':
      return `${place} is ${shown(value)}; it must be ${typesIn(wanted)}.`
    case 'enum':
      return `${place} is ${shown(value)}; it must be one of ${Array.isArray(wanted) ? wanted.map(shown).join(', ') : shown(wanted)}.`
    case 'const':
      return `${place} is ${shown(value)}; it must be ${shown(wanted)}.`
    case 'pattern':
      return `${place} is ${shown(value)}; it must match ${String(wanted)}.`
    default:
      return CHOICES.has(keyword)
        ? `${place} is ${shown(value)}, which fits none of the allowed forms.`
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

/** Returns a value in a few characters; a long list or object only by its kind. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'missing'
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN).toWellFormed()}…`
}

/** Returns the place of a JSON pointer (`#/findings/0/line`) in code notation, and the value there. */
function placeOf(pointer: string, root: unknown): { place: string; value: unknown } {
  let value = root
  let place = ''
  for (const step of stepsOf(pointer)) {
    place += Array.isArray(value) ? `[${step}]` : place === '' ? step : `.${step}`
    value = memberOf(value, step)
  }
  return { place: place === '' ? 'The answer' : `\`${place}\``, value }
}

/** Returns the schema's value at an error's location, following `$ref` within the schema; undefined: not found. */
function wantedAt(schema: JsonSchema, location: string): unknown {
  let found: unknown = schema
  for (const step of stepsOf(location)) {
    found = memberOf(found, step)
    // Otherwise it is a field named `$ref`.
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
