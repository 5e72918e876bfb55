import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { cleanText, truncate } from '../../base/text.ts'
import type { AskedAnswer } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'

/** How a change is to be made: what a planner answers, and what a person accepts. Texts are Markdown without blanks around them. */
export interface Plan {
  description: string
  /** What changes, by files, relative to the project with `/`. */
  files: readonly PlannedFile[]
  risks: readonly string[]
  /** The commands that show that the change works, lines for a shell. */
  verification: readonly PlannedCommand[]
  /** What the planner would ask the person. */
  questions: readonly string[]
}

/** A file that a plan changes, and what changes in it. */
interface PlannedFile {
  path: string
  change: string
}

/** A command by which a plan is verified, and what it shows. */
interface PlannedCommand {
  run: string
  why: string
}

/** The answer of a planning round; its schema is as strict as a model may ask for one: every field is required, and no other is allowed. */
export const PLAN_ANSWER: AskedAnswer = {
  name: 'plan',
  schema: {
    type: 'object',
    properties: {
      description: { type: 'string' },
      files: listOfObjects('path', 'change'),
      risks: { type: 'array', items: { type: 'string' } },
      verification: listOfObjects('run', 'why'),
      questions: { type: 'array', items: { type: 'string' } },
    },
    required: ['description', 'files', 'risks', 'verification', 'questions'],
    additionalProperties: false,
  },
}

/** The schema of a list of objects that have these texts. */
export function listOfObjects(...fields: string[]): object {
  return {
    type: 'array',
    items: {
      type: 'object',
      properties: Object.fromEntries(fields.map(field => [field, { type: 'string' }])),
      required: fields,
      additionalProperties: false,
    },
  }
}

/** The most mistakes that are named at once. */
const MOST_NAMED = 10

const text = v.string('has to be a text.')
const texts = v.array(text, 'has to be a list.')

/** The shape of a list of objects that have these texts. */
export function pairsShape<K extends string>(...fields: readonly K[]) {
  const entries = Object.fromEntries(fields.map(field => [field, text])) as Record<K, typeof text>
  return v.array(objectShape(entries, 'has to be an object.'), 'has to be a list.')
}

/** The shape of an object; `wanted`: what is said of a value that is none. */
export function objectShape<E extends v.ObjectEntries>(entries: E, wanted: string) {
  return v.object(entries, ({ path }) => (path === undefined ? wanted : 'is missing.'))
}

const planShape = objectShape(
  {
    description: text,
    files: pairsShape('path', 'change'),
    risks: texts,
    verification: pairsShape('run', 'why'),
    questions: texts,
  },
  'is no plan; give one JSON object with description, files, risks, verification and questions.',
)

/**
 * Reads an answer that is to be a plan: its texts come without blanks around them and control characters, empty entries are
 * left out. A problem has a line for each mistake: its place, what is wrong, and how it is mended. Whether the plan can be
 * carried out, `planProblem` says. Pure.
 */
export function readPlan(value: unknown): Parsed<Plan> {
  const read = readShape(planShape, value)
  return read.ok ? { ok: true, value: cleanPlan(read.value) } : read
}

/** Reads a value of a shape whose messages are the ends of sentences. A problem has a line for each mistake. Pure. */
export function readShape<T>(shape: v.GenericSchema<unknown, T>, value: unknown): Parsed<T> {
  const read = v.safeParse(shape, value)
  if (read.success) return { ok: true, value: read.output }
  const mistakes = read.issues.map(({ path = [], message }) => ({ place: placeOf(path), wrong: message }))
  return { ok: false, problem: problemOfMistakes(mistakes) }
}

function placeOf(path: readonly { key?: unknown }[]): string {
  const keys = path.map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${truncate(String(key), 60)}`))
  return keys.join('').replace(/^\./, '')
}

/** The SHA-256 (hex) of a plan: the same for the same texts in the same order. Pure. */
export function hashOfPlan({ description, files, risks, verification, questions }: Plan): string {
  const canonical = [
    description,
    files.map(({ path, change }) => [path, change]),
    risks,
    verification.map(({ run, why }) => [run, why]),
    questions,
  ]
  return createHash('sha256').update(JSON.stringify(canonical)).digest('hex')
}

/** What is wrong at a place of a plan or of its tasks; how it is mended stands in the sentence. */
export interface Mistake {
  /** As code names it: `files[2].path`; empty: the whole. */
  place: string
  /** The rest of the sentence, with its end. */
  wrong: string
}

/** Mistakes as lines, at most ten of them. Pure. */
export function problemOfMistakes(mistakes: readonly Mistake[]): string {
  const lines = mistakes.map(({ place, wrong }) => `- ${place === '' ? 'The answer' : `\`${place}\``} ${wrong}`)
  const named = lines.slice(0, MOST_NAMED)
  const more = lines.length - named.length
  return [...named, ...(more > 0 ? [`and ${more} more like these`] : [])].join('\n')
}

/** A text that stays as it is but for blanks around it, so that what is wrong in it is found. */
function trimmed(text: string): string {
  return text.toWellFormed().trim()
}

/** A plan whose texts are clean (`cleanText`), without empty entries. Pure. */
export function cleanPlan({ description, files, risks, verification, questions }: Plan): Plan {
  return {
    description: cleanText(description),
    files: files.map(({ path, change }) => ({ path: trimmed(path), change: cleanText(change) })),
    risks: risks.map(cleanText).filter(text => text !== ''),
    verification: verification.map(({ run, why }) => ({ run: trimmed(run), why: cleanText(why) })),
    questions: questions.map(cleanText).filter(text => text !== ''),
  }
}
