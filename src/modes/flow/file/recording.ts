import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { FrozenValue, StepPart, TemplatePart } from './plan.ts'

/**
 * The first line of a recording, which codemachine writes: of which step it is, and on what input. All but `type` and `v`
 * may be left out; a recording of `codex exec --json` has no such line at all. What came of the step stands in the first
 * line, or in a last one of the type `codemachine.result`.
 */
export interface RecordingHeader extends RecordedResult {
  /** Id of the step. */
  step?: string | undefined
  /** The workflow that recorded it, by its file (relative to the work directory) and its name. */
  workflow?: { file: string; name: string } | undefined
  /** `inputHash` of what it was given; left out: not known, and then nothing is compared. */
  input_sha256?: string | undefined
  /** Texts of the variables that it uses and that came of a command (`{ run = … }`), as they were then. */
  values?: Readonly<Record<string, string>> | undefined
  /** Id of the session that recorded it. */
  session?: string | undefined
}

/** What came of a step, beside what its codex said. */
export interface RecordedResult {
  /** Exit code of its command, or with which codex ended. */
  exit?: number | undefined
  /** What its command printed; of an agent: its last message, where that is not the recording's. */
  output?: string | undefined
  /** How often it was tried, the first one included. */
  tries?: number | undefined
  /** Its `verify` commands, with the exit code of each. */
  verify?: readonly { run: string; exit: number }[] | undefined
  /** Whether a person took its output. */
  approved?: boolean | undefined
  /** Why it has failed; left out: it has not. */
  failed?: string | undefined
  /** Why it was passed over; left out: it was not. */
  skipped?: string | undefined
}

/** The version of these lines that is written, and read. */
const VERSION = 1
const FIRST_LINE = 'codemachine.recording'
const LAST_LINE = 'codemachine.result'
/** Begins the type of every line that is codemachine's own, and none of codex. */
const OWN_LINES = 'codemachine.'

const result = {
  exit: v.optional(v.number()),
  output: v.optional(v.string()),
  tries: v.optional(v.number()),
  verify: v.optional(v.array(v.object({ run: v.string(), exit: v.number() }))),
  approved: v.optional(v.boolean()),
  failed: v.optional(v.string()),
  skipped: v.optional(v.string()),
}
const ownLine = v.object({ type: v.pipe(v.string(), v.startsWith(OWN_LINES)), v: v.number() })
const header = v.object({
  step: v.optional(v.string()),
  workflow: v.optional(v.object({ file: v.string(), name: v.string() })),
  input_sha256: v.optional(v.string()),
  values: v.optional(v.record(v.string(), v.string())),
  session: v.optional(v.string()),
  ...result,
})

/**
 * A line of a recording that is codemachine's own: `header`: the first one; `result`: one at the end; `newer`: its version,
 * which this codemachine does not know; `broken`: it has another shape. Null: it is a line of codex, or none at all.
 */
export type OwnLine = { header: RecordingHeader } | { result: RecordedResult } | { newer: number } | 'broken' | null

/** The first line of a recording, without its line end. What is given is without secrets. */
export function firstLine(header: RecordingHeader): string {
  return JSON.stringify({ type: FIRST_LINE, v: VERSION, ...header })
}

/** The last line of a recording: what came of the step. */
export function lastLine(result: RecordedResult): string {
  return JSON.stringify({ type: LAST_LINE, v: VERSION, ...result })
}

/** What a line says that is codemachine's own. */
export function readOwnLine(line: string): OwnLine {
  // Nothing else is parsed twice.
  if (!line.slice(0, LONGEST_START).includes(OWN_LINES)) return null
  const value = parsed(line)
  if (!v.is(ownLine, value)) return null
  if (value.v > VERSION) return { newer: value.v }
  if (value.type === LAST_LINE) {
    const read = v.safeParse(v.object(result), value)
    return read.success ? { result: read.output } : 'broken'
  }
  const read = v.safeParse(header, value)
  return read.success ? { header: read.output } : 'broken'
}

/** `type` is the first member of such a line; a little room for another writer. */
const LONGEST_START = 200

/**
 * By which the prompt and the input of a step are told from others (hex). The input is as it was rendered, without what is
 * added to it (material of earlier steps, why a try has failed); both without secrets. Line ends count as one.
 */
export function inputHash(prompt: string, input: string): string {
  const text = JSON.stringify([prompt, input].map(each => each.replace(/\r\n?/g, '\n')))
  return createHash('sha256').update(text).digest('hex')
}

/**
 * What is known of a step that has ended; null: that is not. `answer`: its value, where it has one. `skipped`: it was passed
 * over, and all of it is empty text.
 */
export type StepCame = { output: string | null; exit: number | null; answer: unknown } | 'skipped'

/** Where the texts come from that a template refers to. */
export interface KnownTexts {
  values: Readonly<Record<string, Pick<FrozenValue, 'text'>>>
  /** By the id of the step. */
  came: ReadonlyMap<string, StepCame>
}

/** The text that a reference stands for; null where it is not known. */
export function textOf(part: TemplatePart, { values, came }: KnownTexts): string | null {
  if (typeof part === 'string') return part
  if ('variable' in part) return Object.hasOwn(values, part.variable) ? (values[part.variable]?.text ?? null) : null
  const step = came.get(part.step)
  if (step === 'skipped') return ''
  return step === undefined ? null : textOfStep(step, part)
}

/** A template with its texts, in one pass: nothing in a value is expanded. Null where one of them is not known. */
export function renderParts(parts: readonly TemplatePart[], known: KnownTexts): string | null {
  const texts = parts.map(part => textOf(part, known))
  return texts.includes(null) ? null : texts.join('')
}

function textOfStep(
  step: Exclude<StepCame, 'skipped'>,
  { part, field }: { part: StepPart; field: readonly string[] },
): string | null {
  switch (part) {
    case 'output':
      return step.output
    case 'exit':
      return step.exit === null ? null : String(step.exit)
    case 'answer': {
      if (step.output === null) return null
      const value = field.reduce<unknown>(memberOf, step.answer)
      if (value === undefined) return ''
      return typeof value === 'string' ? value : JSON.stringify(value)
    }
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
