import { isJsonObject, memberOf, parseJson } from '../../../base/json.ts'
import { nearestName, truncate } from '../../../base/text.ts'
import type { JsonSchema } from '../../../core/rules/answer.ts'

/** `problem`: why it cannot check an answer; a clause after the file's name, without its end. */
export type ReadSchema = { schema: JsonSchema } | { problem: string }

/** Reads a JSON Schema that can check an answer: draft 2020-12, references within the file only. */
export async function readSchema(text: string): Promise<ReadSchema> {
  const parsed = parseJson(text)
  if (!parsed.ok) return { problem: `is not valid JSON: ${parsed.problem.replace(/\.$/, '')}` }
  const { value } = parsed
  if (!isJsonObject(value)) return { problem: 'is no JSON Schema: it must be an object, such as { "type": "object" }' }
  try {
    const parts = new Set<unknown>()
    check(value, { place: '', level: 0, parts })
    const costs = { root: value, parts, costs: new Map<unknown, number | 'open'>() }
    for (const part of parts) costOf(part, costs, 0)
    checkRoot(value)
    await tryOut(text)
    return { schema: value }
  } catch (error) {
    if (error instanceof SchemaProblem) return { problem: error.message }
    throw error
  }
}

/** Its message follows the file's name. */
class SchemaProblem extends Error {}

interface Where {
  /** Such as `properties.name`; empty: the whole schema. */
  place: string
  /** Its depth. */
  level: number
  /** Checked schemas. */
  parts: Set<unknown>
}

const MOST_LEVELS = 64
/** Most schemas that check one value: references can double them with each line. */
const MOST_FOR_ONE_VALUE = 10_000
const MOST_IN_A_ROW = 500
const MOST_SHOWN = 60

type CheckKeyword = (value: unknown, where: Where) => void

const NUMBER = plain('a number', value => typeof value === 'number')
const COUNT = plain('a whole number from 0', value => Number.isInteger(value) && Number(value) >= 0)
const FLAG = plain('true or false', value => typeof value === 'boolean')
const TEXT = plain('a text', value => typeof value === 'string')
const NAMES = plain('a list of names', value => Array.isArray(value) && value.every(each => typeof each === 'string'))

const KEYWORDS: Readonly<Record<string, CheckKeyword>> = {
  ...each(check, 'items additionalProperties unevaluatedProperties unevaluatedItems propertyNames'),
  ...each(check, 'contains not if then else'),
  ...each(checkSchemas, 'allOf anyOf oneOf prefixItems'),
  ...each(checkNamedSchemas, '$defs definitions properties dependentSchemas'),
  ...each(checkPatterns, 'patternProperties'),
  ...each(NAMES, 'required'),
  ...each(checkNamedNames, 'dependentRequired'),
  ...each(NUMBER, 'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'),
  ...each(COUNT, 'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'),
  ...each(FLAG, 'uniqueItems deprecated readOnly writeOnly'),
  ...each(TEXT, 'format title description $schema $comment'),
  ...each(checkId, '$id'),
  ...each(checkPattern, 'pattern'),
  ...each(checkReference, '$ref'),
  ...each(checkType, 'type'),
  ...each((value, where) => void listOf(value, where, 'values'), 'enum examples'),
  ...each(() => {}, 'const default'),
}

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

function each(check: CheckKeyword, words: string): Record<string, CheckKeyword> {
  return Object.fromEntries(words.split(' ').map(word => [word, check]))
}

function plain(wanted: string, isRight: (value: unknown) => boolean): CheckKeyword {
  return (value, where) => {
    if (!isRight(value)) throw wrong(where, `is ${shown(value)}; it must be ${wanted}`)
  }
}

function check(schema: unknown, where: Where): void {
  if (Array.isArray(schema) && /(^|\.)items$/.test(where.place)) {
    throw wrong(where, 'is a list; write "prefixItems" for it')
  }
  if (typeof schema === 'boolean') return
  if (!isJsonObject(schema)) throw wrong(where, `is ${shown(schema)}; a schema is an object, or true or false`)
  if (where.level > MOST_LEVELS) throw new SchemaProblem(`nests schemas more than ${MOST_LEVELS} deep; make it flatter`)
  where.parts.add(schema)
  for (const [word, value] of Object.entries(schema)) checkKeyword(word, value, below(where, word))
}

function checkKeyword(word: string, value: unknown, where: Where): void {
  const check = Object.hasOwn(KEYWORDS, word) ? KEYWORDS[word] : undefined
  if (check !== undefined) check(value, where)
  else if (!word.startsWith('x-')) {
    const near = nearestName(word, Object.keys(KEYWORDS))
    const mend = near === null ? 'leave it out' : `the nearest is ${JSON.stringify(near)}`
    throw wrong(where, `is no keyword that codemachine checks; ${mend}`)
  }
}

function checkSchemas(value: unknown, where: Where): void {
  for (const [index, part] of listOf(value, where, 'schemas').entries()) check(part, below(where, `[${index}]`))
}

function checkNamedSchemas(value: unknown, where: Where): void {
  for (const [name, part] of membersOf(value, where)) check(part, below(where, name))
}

function checkPatterns(value: unknown, where: Where): void {
  for (const [name, part] of membersOf(value, where)) {
    checkPattern(name, below(where, name))
    check(part, below(where, name))
  }
}

function checkNamedNames(value: unknown, where: Where): void {
  for (const [name, names] of membersOf(value, where)) NAMES(names, below(where, name))
}

/** Inside a schema it would change the target of references. */
function checkId(value: unknown, where: Where): void {
  TEXT(value, where)
  if (where.level > 1) throw wrong(where, 'may stand only at the top of the schema; leave it out')
}

function checkReference(value: unknown, where: Where): void {
  if (typeof value !== 'string' || !/^#(?:\/|$)/.test(value)) {
    throw wrong(where, `is ${shown(value)}; write one within this file, such as "#/$defs/name"`)
  }
}

function checkType(value: unknown, where: Where): void {
  for (const type of Array.isArray(value) ? value : [value]) {
    if (!TYPES.includes(type)) throw wrong(where, `is ${shown(type)}; it must be one of ${TYPES.join(', ')}`)
  }
}

function checkPattern(value: unknown, where: Where): void {
  if (typeof value !== 'string') throw wrong(where, `is ${shown(value)}; it must be a text`)
  try {
    new RegExp(value, 'u')
  } catch {
    throw wrong(where, `is no regular expression: ${shown(value)}`)
  }
}

function listOf(value: unknown, where: Where, what: string): unknown[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw wrong(where, `is ${shown(value)}; it must be a list of ${what}, and not an empty one`)
  }
  return value
}

function membersOf(value: unknown, where: Where): [string, unknown][] {
  if (!isJsonObject(value)) throw wrong(where, `is ${shown(value)}; it must be an object`)
  return Object.entries(value)
}

function pointerParts(reference: string): string[] {
  try {
    const parts = decodeURIComponent(reference).split('/').slice(1)
    return parts.map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  } catch {
    return ['']
  }
}

/** Schemas that check the same value too. */
const SAME_VALUE = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else']

interface Costs extends Pick<Where, 'parts'> {
  root: JsonSchema
  costs: Map<unknown, number | 'open'>
}

/** Counts the schemas that check a value: none may lead back to itself, nor to too many others. */
function costOf(schema: unknown, costs: Costs, level: number): number {
  if (!isJsonObject(schema)) return 1
  if (level > MOST_IN_A_ROW)
    throw new SchemaProblem(`has more than ${MOST_IN_A_ROW} references in a row; make it simpler`)
  const known = costs.costs.get(schema)
  if (known === 'open') throw new SchemaProblem('has a "$ref" that leads back to itself; break the circle')
  if (known !== undefined) return known
  costs.costs.set(schema, 'open')
  const others = [
    ...SAME_VALUE.flatMap(word => (Object.hasOwn(schema, word) ? schema[word] : [])),
    ...(isJsonObject(schema.dependentSchemas) ? Object.values(schema.dependentSchemas) : []),
    ...(typeof schema.$ref === 'string' ? [targetOf(schema.$ref, costs)] : []),
  ]
  const cost = others.reduce<number>((sum, part) => sum + costOf(part, costs, level + 1), 1)
  if (cost > MOST_FOR_ONE_VALUE) {
    throw new SchemaProblem(`checks one value by more than ${MOST_FOR_ONE_VALUE} schemas; make it simpler`)
  }
  costs.costs.set(schema, cost)
  return cost
}

/** Returns the schema that a reference within the file names. */
function targetOf(reference: string, { root, parts }: Costs): unknown {
  const target = pointerParts(reference).reduce<unknown>(memberOf, root)
  if (parts.has(target) || typeof target === 'boolean') return target
  throw new SchemaProblem(`has the "$ref" ${shown(reference)}, which leads to no schema in this file; correct it`)
}

/** Answers are objects, and models accept only an object's schema. */
function checkRoot({ type }: JsonSchema): void {
  const types = Array.isArray(type) ? type : [type]
  if (type !== undefined && !types.includes('object')) {
    throw new SchemaProblem(`is for ${shown(type)}; an answer is an object: write "type": "object"`)
  }
}

/** Finds problems that only the checker itself sees. It marks the schemas it visits, so it gets a copy. */
async function tryOut(text: string): Promise<void> {
  const { schemaProblem } = await import('../../../core/rules/answer-schema.ts')
  try {
    schemaProblem({}, JSON.parse(text.replace(/^\uFEFF/, '')))
  } catch (error) {
    throw new SchemaProblem(`cannot be used: ${truncate(String(error).split('\n')[0] ?? '', 200)}; correct it`)
  }
}

function below({ place, level, parts }: Where, name: string): Where {
  const part = /^\[\d+\]$/.test(name) ? name : place === '' ? name : `.${name}`
  return { place: truncate(`${place}${part}`, 200), level: level + 1, parts }
}

function wrong({ place }: Where, problem: string): SchemaProblem {
  return new SchemaProblem(
    place === '' ? problem : `is not a JSON Schema that codemachine can use: \`${place}\` ${problem}`,
  )
}

function shown(value: unknown): string {
  return truncate(JSON.stringify(value) ?? 'nothing', MOST_SHOWN)
}
