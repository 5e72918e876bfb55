import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { Interrupted } from '../../../base/errors.ts'
import { memberOf, parsedOrNull } from '../../../base/json.ts'
import { sha256Of } from '../../../platform/files.ts'
import { findObstacle, readRegularFile, whatIsThere } from '../../../workspace/files/inside-directory.ts'
import {
  type FlowPlan,
  type FlowStep,
  type FrozenValue,
  recordingFilesOf,
  type StepPart,
  type TemplatePart,
  textAt,
} from './plan.ts'

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
type OwnLine = { header: RecordingHeader } | { result: RecordedResult } | { newer: number } | 'broken' | null

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
  const value = parsedOrNull(line)
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
      return textAt(step.answer, field)
    }
  }
}

/** Name of the kept text that is the recording of a step, as it was when the session began. */
export function keptRecording({ index }: Pick<FlowStep, 'index'>): string {
  return `recording-${index}.jsonl`
}

/** Where recordings lie, relative to the work directory. */
export const DEBUG_FOLDER = '.codex-flow/runtime/debug'

/** What a recording says; its lines are not kept. */
export interface StepRecording extends Said {
  /** Relative to the work directory, with `/`. */
  path: string
  bytes: number
  /** Of its bytes, hex. */
  sha256: string
}

/** What the lines of a recording say. */
interface Said {
  /** What codemachine says in its first line and its last one; empty where it has none. */
  header: RecordingHeader
  /** Whether codex says anything in it that is shown. */
  hasEvents: boolean
  /** Whether a turn begins in it. */
  hasTurn: boolean
  /** The last message of its agent; null: there is none. */
  lastMessage: string | null
  /** How its last turn failed, in the words of codex; null: it did not, or there is no turn. */
  failure: string | null
}

/** What was found of a step's recording. `problem`: goes on after the path, as in `is a link`. */
export type FoundRecording =
  | { kind: 'recording'; recording: StepRecording }
  /** `looked`: the names of the files, relative to the work directory. */
  | { kind: 'missing'; looked: readonly string[] }
  | { kind: 'broken'; path: string; problem: string }

/** The largest recording that is read, bytes. */
const MOST_BYTES = 64 * 1024 * 1024
/** Characters of a file's name that a recording has. */
const MOST_NAMED = 200

/**
 * Looks for the recording of a step of a workflow below `root`, the real path of the work directory, and reads it once; of
 * one that names its workflow that has to be this one. Agents can write
 * there: never through a link, bounded, and nothing in it is believed but as text. Throws `Interrupted` with the signal.
 */
export async function findRecording(
  root: string,
  { file, name }: Pick<FlowPlan, 'file' | 'name'>,
  step: Pick<FlowStep, 'index' | 'stem' | 'work'>,
  signal: AbortSignal,
): Promise<FoundRecording> {
  if (signal.aborted) throw new Interrupted(signal.reason)
  const looked = recordingFilesOf(step).map(each => `${DEBUG_FOLDER}/${each}`)
  for (const path of looked) {
    const bytes = await bytesInside(root, path)
    if (bytes === 'missing') continue
    const read = 'problem' in bytes ? bytes : readRecording(bytes)
    if ('problem' in read) return { kind: 'broken', path, ...read }
    const { workflow } = read.header
    if (workflow === undefined || (workflow.file === file && workflow.name === name))
      return { kind: 'recording', recording: { path, ...read } }
    const other = `${JSON.stringify(workflow.name)} of ${workflow.file.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').slice(0, MOST_NAMED)}`
    return {
      kind: 'broken',
      path,
      problem: `was recorded by another workflow, ${other}; run this one for real (--no-mock)`,
    }
  }
  return { kind: 'missing', looked }
}

/** The UTF-8 text of a recording that was found, so that what is played is what was read; null if it has changed since. */
export async function bytesOfRecording(
  root: string,
  { path, bytes, sha256, hasTurn }: Pick<StepRecording, 'path' | 'bytes' | 'sha256' | 'hasTurn'>,
): Promise<Buffer | null> {
  const now = await bytesInside(root, path)
  if (now === 'missing' || 'problem' in now) return null
  // One that grows counts as what it was.
  const same = now.subarray(0, bytes)
  if (sha256Of(same) !== sha256) return null
  // What shows no turn was written by hand, or cut: it is played as one.
  return hasTurn ? withoutMark(same) : Buffer.concat([Buffer.from('{"type":"turn.started"}\n'), withoutMark(same)])
}

async function bytesInside(root: string, path: string): Promise<Buffer | { problem: string } | 'missing'> {
  const obstacle = await findObstacle(root, dirname(path))
  if (obstacle?.kind === 'missing') return 'missing'
  if (obstacle !== null) return { problem: `cannot be reached: ${obstacle.path} ${whatIsThere(obstacle)}` }
  const read = await readRegularFile(join(root, path), MOST_BYTES)
  switch (read.kind) {
    case 'gone':
      return 'missing'
    case 'broken':
      return { problem: read.problem.replace(/^it (.*)\.$/, '$1') }
    case 'too-large': {
      const mib = (bytes: number) => Math.ceil(bytes / 1024 / 1024)
      return { problem: `has ${mib(read.size)} MiB; at most ${mib(MOST_BYTES)} are allowed; record the step again` }
    }
    case 'bytes': {
      // A folder on the way may have become a link between the two looks.
      const isInside = (await realpath(join(root, path)).catch(() => null)) === join(root, path)
      return isInside ? read.bytes : { problem: 'is reached through a link; replace the link by a folder' }
    }
  }
}

function readRecording(bytes: Buffer): Omit<StepRecording, 'path'> | { problem: string } {
  const isUtf16 = /^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2))
  if (isUtf16) return { problem: 'is UTF-16 text; save it as UTF-8' }
  const said = saidIn(linesOf(withoutMark(bytes)))
  if ('problem' in said) return said
  return { bytes: bytes.length, sha256: sha256Of(bytes), ...said }
}

/** Without its byte order mark. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes.toString('utf8', 0, 3) === '\uFEFF' ? bytes.subarray(3) : bytes
}

/** One after the other: all of them at once would take several times the memory of the file. */
function* linesOf(bytes: Buffer): Iterable<string> {
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(10, from)
    const to = end === -1 ? bytes.length : end
    yield bytes.toString('utf8', from, to)
    from = to + 1
  }
}

/** What lines say, whether of `codex exec --json` or of an app-server; all others are passed over. */
function saidIn(lines: Iterable<string>): Said | { problem: string } {
  const said: Said = { header: {}, hasEvents: false, hasTurn: false, lastMessage: null, failure: null }
  let result: RecordedResult = {}
  for (const line of lines) {
    const own = readOwnLine(line)
    if (own === null) addLineOfCodex(said, line)
    else if (own === 'broken') continue
    else if ('newer' in own)
      return {
        problem: `was recorded by a newer codemachine (its lines are of version ${own.newer}); update codemachine, or record the step again`,
      }
    else if ('header' in own) said.header = { ...said.header, ...own.header }
    // Of more than one the last counts: the step was done again.
    else result = own.result
  }
  return { ...said, header: { ...said.header, ...result } }
}

function addLineOfCodex(said: Said, line: string): void {
  const value = parsedOrNull(line)
  const [type, method] = [memberOf(value, 'type'), memberOf(value, 'method')]
  // By the name that `codex exec --json` has for it.
  const kind = typeof type === 'string' ? type : typeof method === 'string' ? method.replace('/', '.') : ''
  const body = typeof type === 'string' ? value : memberOf(value, 'params')
  if (!EVENTS.has(kind)) return
  said.hasEvents = true
  switch (kind) {
    case 'turn.started':
      said.hasTurn = true
      said.failure = null
      return
    case 'turn.failed':
      said.failure = saidAt(body, 'error', 'message') ?? NO_REASON
      return
    case 'turn.completed':
      // An app-server says so of one that failed, too.
      if (saidAt(body, 'turn', 'status') === 'failed')
        said.failure = saidAt(body, 'turn', 'error', 'message') ?? NO_REASON
      return
    case 'item.completed': {
      const item = saidAt(body, 'item', 'type')
      if (item === 'agent_message' || item === 'agentMessage')
        said.lastMessage = saidAt(body, 'item', 'text') ?? said.lastMessage
    }
  }
}

const NO_REASON = 'codex gave no reason'

const EVENTS: ReadonlySet<string> = new Set([
  'turn.started',
  'turn.completed',
  'turn.failed',
  'item.started',
  'item.updated',
  'item.completed',
  'error',
])

function saidAt(value: unknown, ...path: readonly string[]): string | null {
  const found = path.reduce<unknown>(memberOf, value)
  return typeof found === 'string' ? found : null
}
