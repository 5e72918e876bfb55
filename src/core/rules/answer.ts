import { isJsonObject, repeatedKeyProblem } from '../../base/json.ts'
import type { Parsed } from '../shapes/memory.ts'

/** A JSON Schema, sent to a model and used to check its answer. Strict models need all fields required, and no others. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A structured answer, requested as a round's last message. `name`: a word; consecutive refusals are counted by it. */
export interface AskedAnswer {
  name: string
  schema: JsonSchema
  /** A looser schema to check the answer; left out: `schema`. */
  accepts?: JsonSchema
  /** Limit of consecutive refusals before a person is needed; left out: `MOST_ANSWER_REFUSALS`. */
  mostRefusals?: number
}

/** An answer that was refused the last time. `refusals`: how often in a row. `problem`: the reason of `parseAnswer`. */
export interface RefusedAnswer {
  refusals: number
  problem: string
}

/** Answers that were refused the last time, by name. */
export type RefusedAnswers = Readonly<Record<string, RefusedAnswer>>

/** Limit of refused answers in a session, by name. */
const MOST_REFUSED = 100

/** Returns the last refusal of an answer of this name; null: it was not refused. Pure. */
export function refusedAnswer(
  { refusedAnswers }: { refusedAnswers: RefusedAnswers },
  name: string,
): RefusedAnswer | null {
  return Object.hasOwn(refusedAnswers, name) ? (refusedAnswers[name] ?? null) : null
}

/** Adds a refusal to the consecutive ones; keeps the last 100 names. Pure. */
export function withRefusal(refused: RefusedAnswers, name: string, problem: string): RefusedAnswers {
  const before = refusedAnswer({ refusedAnswers: refused }, name)?.refusals ?? 0
  const others = Object.entries(withoutRefusal(refused, name)).slice(-MOST_REFUSED + 1)
  return Object.fromEntries([...others, [name, { refusals: before + 1, problem }]])
}

/** Removes the refusal of an answer that is usable now. Pure. */
export function withoutRefusal(refused: RefusedAnswers, name: string): RefusedAnswers {
  if (!Object.hasOwn(refused, name)) return refused
  const { [name]: _, ...others } = refused
  return others
}

/** Limit of consecutive refusals before a person is needed. */
export const MOST_ANSWER_REFUSALS = 3

/** Limits of an answer: UTF-8 bytes, nesting levels, number of values. */
const MOST_BYTES = 256 * 1024
const MOST_LEVELS = 100
const MOST_VALUES = 20_000

/**
 * Parses the answer in a message (`null`: no message): the whole text, one fenced block, or the one object among words. Two
 * answers are an error. Control characters in strings are removed. The schema's field names only tell the answer from other
 * objects; it is not validated here. Takes linear time. Pure.
 */
export function parseAnswer(message: string | null, schema: JsonSchema): Parsed<unknown> {
  if (message === null || message.trim() === '') return refused('The last message is empty; an answer was expected.')
  const size = sizeProblem(message)
  if (size !== null) return refused(size)
  const text = message.replace(CONTROL, '').trim()
  const whole = tryParse(text)
  const found = whole.ok ? whole : amongWords(text, fieldsOf(schema))
  if (!found.ok) return found
  const problem = boundsProblem(found.value)
  return problem === null ? { ok: true, value: cleanValue(found.value) } : refused(problem)
}

/** Describes a refused answer for the next round. */
export function refusedAnswerNote(problem: string, { schema }: Pick<AskedAnswer, 'schema'>): string {
  const shape = JSON.stringify(schema)
  const asked = shape.length > MOST_SCHEMA_CHARACTERS ? '' : `\n\nThe requested format, as JSON Schema:\n${shape}`
  return `A program reads your answer, and could not use the last one:\n${problem}\n\nEnd with one JSON object in the requested format, and nothing else.${asked}`
}

const MOST_SCHEMA_CHARACTERS = 16_000

/** Control characters, which no text needs and which break valid JSON. Tabs and line ends stay. */
const CONTROL = /[^\t\n\r\P{Cc}]/gu
/** Control characters of a string, and characters that reorder a line. */
const STEERING = /[^\t\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu

function refused(problem: string): { ok: false; problem: string } {
  return { ok: false, problem }
}

function sizeProblem(text: string): string | null {
  // UTF-8 needs at least one byte per character, so longer texts need no count.
  const size = text.length > MOST_BYTES ? `${text.length} characters` : `${Buffer.byteLength(text)} bytes`
  if (text.length <= MOST_BYTES && Buffer.byteLength(text) <= MOST_BYTES) return null
  return `The last message has ${size}, and may have at most ${MOST_BYTES} bytes (256 KiB). Make the answer shorter.`
}

function tryParse(text: string): Parsed<unknown> {
  try {
    const value: unknown = JSON.parse(text)
    const repeated = repeatedKeyProblem(text, value)
    return repeated === null ? { ok: true, value } : refused(`The answer is not plain: ${repeated}`)
  } catch (error) {
    return refused(`The answer is not valid JSON: ${error instanceof Error ? error.message : String(error)}.`)
  }
}

/** Returns the field names of the schema's object; empty: the schema names none. */
function fieldsOf({ properties }: JsonSchema): ReadonlySet<string> {
  return new Set(isJsonObject(properties) ? Object.keys(properties) : [])
}

/** Possible answers in a text. */
interface Found {
  /** Objects with a field of the schema, and invalid JSON that begins like one. */
  answers: Parsed<unknown>[]
  /** Objects without any field of the schema. */
  others: Parsed<unknown>[]
}

function amongWords(text: string, fields: ReadonlySet<string>): Parsed<unknown> {
  const { answers, others } = objectsIn(text, fields)
  const found = answers.length > 0 ? answers : others
  const [first] = found
  if (first === undefined) return refused(NO_ANSWER)
  if (found.length > 1) return refused(`The message has ${found.length} JSON objects. Give only one.`)
  return first
}

const NO_ANSWER = 'The last message does not contain the requested JSON object.'

/** Limit of scanned characters: a text with unclosed braces is scanned again from each brace. */
const MOST_LOOKED_AT = 1024 * 1024

/** The start of an object: its first key, or an empty object. */
const BEGINNING = /\{\s*(?:"((?:[^"\\\n]|\\.)*)"\s*:|\})/y

function objectsIn(text: string, fields: ReadonlySet<string>): Found {
  const found: Found = { answers: [], others: [] }
  let left = MOST_LOOKED_AT
  for (let at = text.indexOf('{'); at !== -1 && left > 0; at = text.indexOf('{', at)) {
    BEGINNING.lastIndex = at
    const beginning = BEGINNING.exec(text)
    if (beginning === null) {
      at++
      continue
    }
    const [, firstKey] = beginning
    // A part of a broken answer is not an answer, even if it looks like one.
    const isMeant = firstKey !== undefined && (fields.size === 0 || fields.has(firstKey))
    const end = endOfObject(text, at)
    left -= (end ?? text.length) - at
    const parsed = end === null ? BREAKS_OFF : tryParse(text.slice(at, end))
    if (parsed.ok && hasAny(parsed.value, fields)) found.answers.push(parsed)
    else if (parsed.ok) found.others.push(parsed)
    else if (isMeant) found.answers.push(parsed)
    at = parsed.ok || isMeant ? (end ?? text.length) : at + 1
  }
  return found
}

const BREAKS_OFF = refused('The answer ends too early. Make it shorter, or close its brackets and quotes.')

function hasAny(value: unknown, fields: ReadonlySet<string>): boolean {
  return fields.size === 0 || Object.keys(Object(value)).some(key => fields.has(key))
}

const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x7b, 0x7d]

/** Returns the index after the brace that closes the one at `start`, ignoring braces in strings; null: none. */
function endOfObject(text: string, start: number): number | null {
  let open = 0
  let isString = false
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isString = !isString
    else if (isString) at += code === BACKSLASH ? 1 : 0
    else if (code === OPEN) open++
    else if (code === CLOSE && --open === 0) return at + 1
  }
  return null
}

/** Returns why a value exceeds the limits, a sentence; null: it does not. Not recursive: the value may be deep. */
function boundsProblem(value: unknown): string | null {
  const open: { value: unknown; level: number }[] = [{ value, level: 0 }]
  let seen = 0
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    if (++seen > MOST_VALUES) return `The answer holds more than ${MOST_VALUES} values. Make it shorter.`
    if (typeof each.value === 'number' && !Number.isFinite(each.value)) return 'A number in the answer is too large.'
    if (typeof each.value !== 'object' || each.value === null) continue
    const level = each.level + 1
    if (level > MOST_LEVELS) return `The answer nests objects and lists more than ${MOST_LEVELS} deep. Make it flatter.`
    for (const inner of Object.values(each.value)) open.push({ value: inner, level })
  }
  return null
}

function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanString(value)
  if (Array.isArray(value)) return value.map(cleanValue)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [cleanString(key), cleanValue(each)]))
}

function cleanString(text: string): string {
  return text.toWellFormed().replace(STEERING, '')
}
