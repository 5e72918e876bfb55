import type { Tool as DescribedTool } from '@modelcontextprotocol/server'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { clipEnd, nearestName, parseDuration, problemOfPrompt } from '../../base/text.ts'
import { MOST_GATES } from '../../core/events/outcome.ts'
import type { Verifications } from '../../project/proof/verifications.ts'
import type { StartingWorld } from '../../project/start/detached.ts'
import type { World } from '../../project/world.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { NamedPlaces } from './places.ts'

/** What all tools share, for as long as the server runs. */
export interface Desk {
  world: World & StartingWorld
  places: NamedPlaces
  verifications: Verifications
}

/** One call of a tool. */
export interface Call extends Desk {
  /** Aborted when the caller takes it back, or the server ends. */
  signal: AbortSignal
  /** A text without secrets of the places that the call has asked for so far: what is cut is without them before. */
  redact(text: string): string
  /** Tells the caller, where it wants to be told, that it still goes on. */
  progress(text: string): void
}

/** A tool that other agents can call. */
export interface Tool {
  name: string
  /** One sentence. */
  description: string
  /** Whether it changes nothing, and whether it changes files of the person in a way that may be unwanted. */
  effect: 'none' | 'some' | 'files'
  input: v.GenericSchema
  output: v.GenericSchema
  /** A `UserError` where it cannot be done, or the arguments are not such that it could be. */
  call(given: unknown, call: Call): Promise<object>
}

type Entries = Record<string, v.GenericSchema>
type ObjectSchema = v.GenericSchema & { entries: Entries }

/** Makes a tool of what it takes, what it gives and what it does. */
export function defineTool<In extends ObjectSchema, Out extends v.GenericSchema<unknown, object>>(tool: {
  name: string
  description: string
  effect: Tool['effect']
  input: In
  output: Out
  run(given: v.InferOutput<In>, call: Call): Promise<v.InferOutput<Out>>
}): Tool {
  const { run, ...said } = tool
  return { ...said, call: (given, call) => run(parseInput(tool.name, tool.input, given), call) }
}

/** How a tool is described to who may call it. */
export function describeTool({ name, description, effect, input, output }: Tool): DescribedTool {
  return {
    name,
    description,
    inputSchema: jsonSchemaOf(input, 'input'),
    outputSchema: jsonSchemaOf(output, 'output'),
    annotations: {
      readOnlyHint: effect === 'none',
      destructiveHint: effect === 'files',
      idempotentHint: effect === 'none',
      openWorldHint: false,
    },
  }
}

function jsonSchemaOf(schema: v.GenericSchema, typeMode: 'input' | 'output'): DescribedTool['inputSchema'] {
  const { $schema: _, ...rest } = toJsonSchema(schema as v.GenericSchema<object>, {
    typeMode,
    target: 'draft-2020-12',
    errorMode: 'ignore',
    ignoreActions: ['check', 'transform'],
  })
  return { ...(rest as object), type: 'object' }
}

// What tools take. A description completes "use …" in the sentence about a wrong value.

export const aText = (description: string) =>
  v.pipe(
    v.string(),
    v.check(given => problemOfPrompt(given) === null),
    v.description(description),
  )

/** A word by which something is known. */
export const aName = (description: string) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(500), v.description(description))

export const aCount = (description: string, least = 1, most = Number.MAX_SAFE_INTEGER) =>
  v.pipe(v.number(), v.safeInteger(), v.minValue(least), v.maxValue(most), v.description(description))

export const yesOrNo = (description: string) => v.pipe(v.boolean(), v.description(description))

export const directory = v.optional(
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(4000),
    v.description(
      'the absolute path of a directory of this server, or of a folder or worktree of it; left out: the only directory',
    ),
  ),
)

export const session = v.optional(
  aName('the id of a session, such as 20261121_1; left out: the one that runs, or the newest'),
)

/** The longest that one call waits, in seconds: clients give a call a minute. */
export const MOST_SECONDS = 50

export const seconds = v.optional(
  aCount(`a whole number from 1 to ${MOST_SECONDS}: how long this call waits`, 1, MOST_SECONDS),
)

/** A time with its unit, as it is written on the command line; ms once it is parsed. */
const aTime = v.pipe(
  v.string(),
  v.description('a time with its unit from 1 second on, such as "8h", "90m" or "1h30m"'),
  v.transform(parseDuration),
  v.number(),
  v.minValue(1000),
)

/** What a session is begun with, beside its goal. */
export const terms = {
  template: v.optional(
    aName(
      'the name of a template, such as "goal" or "build"; left out: one agent works on the goal, round after round',
    ),
  ),
  gates: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(4000))),
      v.maxLength(MOST_GATES),
      v.description('a list of commands that must pass before codemachine accepts done, such as ["npm test"]'),
    ),
  ),
  limits: v.optional(
    v.pipe(
      v.strictObject({
        rounds: v.optional(aCount('a whole number from 1 on: how many rounds')),
        time: v.optional(aTime),
        tokens: v.optional(aCount('a whole number of tokens from 1 on')),
        cost: v.optional(
          v.pipe(
            v.number(),
            v.finite(),
            v.minValue(0.01),
            v.description('a number from 0.01 on, in the currency of the prices'),
          ),
        ),
      }),
      v.description('an object with rounds, time, tokens or cost: the limits of the session'),
    ),
  ),
  follows: v.optional(aName('the id of an earlier session that it continues from')),
}

/** Limits as they are handed on. */
export function limitsOf(limits: v.InferOutput<(typeof terms)['limits']>) {
  if (limits === undefined) return undefined
  const { time: timeMs, ...rest } = limits
  return { ...rest, timeMs }
}

/**
 * The arguments of a call, of that shape; a `UserError` of one sentence that names what is wrong and what to use. What is
 * null counts as left out: some models write down every argument there is.
 */
function parseInput<const In extends ObjectSchema>(name: string, schema: In, given: unknown): v.InferOutput<In> {
  const { success, output, issues } = v.safeParse(schema, withoutNulls(given ?? {}))
  if (success) return output
  const [issue] = issues
  const path = (issue.path ?? []).map(({ key }) => String(key))
  throw new UserError('CM0807', sentenceOf(name, schema, path, issue, given))
}

function sentenceOf(
  name: string,
  schema: ObjectSchema,
  path: readonly string[],
  { received }: v.BaseIssue<unknown>,
  given: unknown,
): string {
  const place = path.join('.')
  if (path.length === 0) return `The arguments of ${name} are ${oneLine(received, MOST_SHOWN)}; use an object.`
  const above = schemaAt(schema, path.slice(0, -1))
  const known = above !== null && 'entries' in above ? Object.keys(above.entries as Entries) : []
  const last = path.at(-1) ?? ''
  if (known.length > 0 && !known.includes(last)) {
    const nearest = nearestName(last, known)
    return `${name} takes no "${oneLine(place, MOST_SHOWN)}"; ${nearest === null ? `it takes ${known.join(', ')}` : `did you mean "${nearest}"?`}`.replace(
      /([^?.])$/,
      '$1.',
    )
  }
  const wanted = descriptionAt(schema, path)
  if (received === 'undefined') return `${name} needs "${place}": ${wanted}.`
  // As it was given: a text that was read as something else is shown as that text.
  const shown = oneLine(JSON.stringify(valueAt(given, path)) ?? received, MOST_SHOWN)
  return `"${place}" of ${name} is ${shown}; use ${wanted}.`
}

const MOST_SHOWN = 120

function valueAt(given: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], given)
}

/** Of the nearest place on the way that has one. */
function descriptionAt(schema: v.GenericSchema, path: readonly string[]): string {
  for (let length = path.length; length > 0; length--) {
    const at = schemaAt(schema, path.slice(0, length))
    const description = at === null ? undefined : v.getDescription(at)
    if (description !== undefined) return description
  }
  return 'what its schema says'
}

function schemaAt(schema: v.GenericSchema, path: readonly string[]): v.GenericSchema | null {
  const own = 'wrapped' in schema ? (schema.wrapped as v.GenericSchema) : schema
  const [first, ...rest] = path
  if (first === undefined) return own
  const next = 'entries' in own ? (own.entries as Entries)[first] : 'item' in own ? (own.item as v.GenericSchema) : null
  return next == null ? null : schemaAt(next, rest)
}

function withoutNulls(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return Object.fromEntries(
    Object.entries(given).flatMap(([key, value]) => (value === null ? [] : [[key, withoutNulls(value)]])),
  )
}

// What tools give.

/** How much of a text is given at once, in characters. */
const MOST_TEXT = 24_000

/** A part of a text that may be longer. */
export const textPart = {
  text: v.pipe(v.string(), v.description(`at most ${MOST_TEXT} characters of it`)),
  length: v.pipe(v.number(), v.description('how many characters it has in total')),
  next: v.pipe(v.nullable(v.number()), v.description('the offset of the next part; null: this is the last one')),
}

export const offset = v.optional(
  aCount('a whole number from 0 on: the first character, such as `next` of the part before', 0),
)

/** The part of a text that begins at an offset; both are of the text without secrets. */
export function partOf({ redact }: Pick<Call, 'redact'>, whole: string, from = 0) {
  const text = redact(whole)
  const part = text.slice(from, from + MOST_TEXT)
  const end = from + part.length
  return { text: part, length: text.length, next: end < text.length ? end : null }
}

/** A text without secrets, of a bounded length, for what is only named. */
export function clipped({ redact }: Pick<Call, 'redact'>, text: string, most = 500): string {
  return clipEnd(redact(text), most)
}
