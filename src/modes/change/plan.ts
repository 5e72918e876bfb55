import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { cleanText, truncate } from '../../base/text.ts'
import type { AskedAnswer } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'

/** Plan of a change: a planner's answer, which a person accepts. Texts are Markdown without blanks around them. */
export interface Plan {
  description: string
  /** Changed files, relative to the project with `/`. */
  files: readonly PlannedFile[]
  risks: readonly string[]
  /** Shell lines that show that the change works. */
  verification: readonly PlannedCommand[]
  /** Questions of the planner to the person. */
  questions: readonly string[]
}

/** A file that a plan changes, and how. */
interface PlannedFile {
  path: string
  change: string
}

/** A command that verifies a plan, and what it shows. */
interface PlannedCommand {
  run: string
  why: string
}

/** Answer of a planning round. Its schema is as strict as models allow: every field is required, and no other is allowed. */
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

/** Returns the schema of a list of objects with these texts. */
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

/** Most mistakes to name at once. */
const MOST_NAMED = 10

const text = v.string('has to be a text.')
const texts = v.array(text, 'has to be a list.')

/** Returns the shape of a list of objects with these texts. */
export function pairsShape<K extends string>(...fields: readonly K[]) {
  const entries = Object.fromEntries(fields.map(field => [field, text])) as Record<K, typeof text>
  return v.array(objectShape(entries, 'has to be an object.'), 'has to be a list.')
}

/** Returns the shape of an object; `wanted`: message for any other value. */
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
 * Reads a plan from an answer. It trims texts, removes control characters and drops empty entries. A problem has a line per
 * mistake: place, mistake and fix. `planProblem` checks whether the plan is usable. Pure.
 */
export function readPlan(value: unknown): Parsed<Plan> {
  const read = readShape(planShape, value)
  return read.ok ? { ok: true, value: cleanPlan(read.value) } : read
}

/** Reads a value of a shape whose messages end a sentence. A problem has a line per mistake. Pure. */
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

/** Returns the SHA-256 (hex) of a plan: equal for equal texts in the same order. Pure. */
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

/** A mistake at a place of a plan or its tasks; its sentence includes the fix. */
export interface Mistake {
  /** Path as in code: `files[2].path`; empty: the whole. */
  place: string
  /** Rest of the sentence. */
  wrong: string
}

/** Formats mistakes as lines, at most ten. Pure. */
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
