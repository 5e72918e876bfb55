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
  MOST_ITEMS,
  recordingFilesOf,
  type StepPart,
  stepsOfLoop,
  type TemplatePart,
  textAt,
} from './plan.ts'

/**
 * First line of a recording, by codemachine: the step and its input. All but `type` and `v` are optional; a recording of
 * `codex exec --json` has no such line. The step's result is in this line, or in a last one of the type
 * `codemachine.result`.
 */
export interface RecordingHeader extends RecordedResult {
  /** Id of the step, and its item in a loop. */
  step?: string | undefined
  item?: string | undefined
  /** Workflow that recorded it: file (relative to the work directory) and name. */
  workflow?: { file: string; name: string } | undefined
  /** `inputHash` of its input; left out: unknown, so nothing is compared. */
  input_sha256?: string | undefined
  /** Recorded texts of its variables that come from a command (`{ run = … }`). */
  values?: Readonly<Record<string, string>> | undefined
  /** Id of the session that recorded it. */
  session?: string | undefined
}

/** Result of a step, apart from codex's own lines. */
export interface RecordedResult {
  /** Exit code of its command, or of codex. */
  exit?: number | undefined
  /** Output of its command; for an agent, its last message, if the recording has another. */
  output?: string | undefined
  /** Number of tries, the first one included. */
  tries?: number | undefined
  /** Its `verify` commands, with the exit code of each. */
  verify?: readonly { run: string; exit: number }[] | undefined
  /** Whether a person approved its output. */
  approved?: boolean | undefined
  /** Why it failed; left out: it did not. */
  failed?: string | undefined
  /** Why it was skipped; left out: it was not. */
  skipped?: string | undefined
}

/** Version of these lines, for reading and writing. */
const VERSION = 1
const FIRST_LINE = 'codemachine.recording'
const LAST_LINE = 'codemachine.result'
/** Type prefix of codemachine's own lines; codex has none with it. */
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
  item: v.optional(v.string()),
  workflow: v.optional(v.object({ file: v.string(), name: v.string() })),
  input_sha256: v.optional(v.string()),
  values: v.optional(v.record(v.string(), v.string())),
  session: v.optional(v.string()),
  ...result,
})

/**
 * One of codemachine's own lines. `header`: the first; `result`: at the end; `newer`: an unknown version; `broken`: another
 * shape. Null: a line of codex, or no such line.
 */
type OwnLine = { header: RecordingHeader } | { result: RecordedResult } | { newer: number } | 'broken' | null

/** Returns the first line of a recording, without line end. Its input must be free of secrets. */
export function firstLine(header: RecordingHeader): string {
  return JSON.stringify({ type: FIRST_LINE, v: VERSION, ...header })
}

/** Returns the last line of a recording: the step's result. */
export function lastLine(result: RecordedResult): string {
  return JSON.stringify({ type: LAST_LINE, v: VERSION, ...result })
}

/** Reads one of codemachine's own lines. */
export function readOwnLine(line: string): OwnLine {
  // Parse no other line twice.
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

/** `type` is the first member of such a line; allow some space for another writer. */
const LONGEST_START = 200

/**
 * Returns the hash (hex) of a step's prompt and input. The input is the rendered one, without additions (earlier steps'
 * material, failures of tries); both without secrets. All line ends count as one.
 */
export function inputHash(prompt: string, input: string): string {
  const text = JSON.stringify([prompt, input].map(each => each.replace(/\r\n?/g, '\n')))
  return createHash('sha256').update(text).digest('hex')
}

/** Result of an ended step; null: unknown. `answer`: its value, if it has one. `skipped`: all its parts are empty text. */
export type StepCame = { output: string | null; exit: number | null; answer: unknown } | 'skipped'

/** Texts for the references of a template. */
export interface KnownTexts {
  values: Readonly<Record<string, Pick<FrozenValue, 'text'>>>
  /** By step id. */
  came: ReadonlyMap<string, StepCame>
}

/** Returns the text of a reference; null: unknown. */
export function textOf(part: TemplatePart, { values, came }: KnownTexts): string | null {
  if (typeof part === 'string') return part
  if ('variable' in part) return Object.hasOwn(values, part.variable) ? (values[part.variable]?.text ?? null) : null
  const step = came.get(part.step)
  if (step === 'skipped') return ''
  return step === undefined ? null : textOfStep(step, part)
}

/** Renders a template in one pass: it expands nothing in a value. Null if a text is unknown. */
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

/** Name of the kept text with a step's recording at the session's start. */
export function keptRecording({ index, item }: Pick<FlowStep, 'index' | 'item'>): string {
  return `recording-${index}${item === undefined ? '' : `-${item.n}`}.jsonl`
}

/** Folder of recordings, relative to the work directory. */
export const DEBUG_FOLDER = '.codex-flow/runtime/debug'

/** Content of a recording, without its lines. */
export interface StepRecording extends Said {
  /** Relative to the work directory, with `/`. */
  path: string
  bytes: number
  /** Of its bytes, hex. */
  sha256: string
}

/** Content of a recording's lines. */
interface Said {
  /** Values of codemachine's first and last line; empty without them. */
  header: RecordingHeader
  /** Whether it has visible lines of codex. */
  hasEvents: boolean
  /** Whether a turn begins in it. */
  hasTurn: boolean
  /** The last message of its agent; null: there is none. */
  lastMessage: string | null
  /** Why its last turn failed, in codex's words; null: it did not, or there is no turn. */
  failure: string | null
}

/** Result of a search for a step's recording. `problem`: a clause after the path, as in `is a link`. */
export type FoundRecording =
  | { kind: 'recording'; recording: StepRecording }
  /** `looked`: the names of the files, relative to the work directory. */
  | { kind: 'missing'; looked: readonly string[] }
  | { kind: 'broken'; path: string; problem: string }

/** Largest recording to read, in bytes. */
const MOST_BYTES = 64 * 1024 * 1024
/** Characters of a file's name that a recording has. */
const MOST_NAMED = 200

/**
 * Finds a step's recording below `root`, the real path of the work directory, and reads it once. A named workflow in it must
 * be this one. Agents can write there: it follows no link, is bounded, and trusts nothing but text. Throws `Interrupted`
 * with the signal.
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

/** Returns a plan with a step for each recorded item of its loops, so that a replay plays the same items. */
export async function withRecordedItems(root: string, plan: FlowPlan, signal: AbortSignal): Promise<FlowPlan> {
  const steps: FlowStep[] = []
  for (const step of plan.steps) {
    const texts: string[] = []
    while (step.forEach !== undefined && texts.length < MOST_ITEMS) {
      const next = stepsOfLoop(step, { texts: [...texts, ''], count: 0 })[texts.length]
      const found = next && (await findRecording(root, plan, next, signal))
      if (found === undefined || found.kind === 'missing') break
      texts.push(found.kind === 'recording' ? (found.recording.header.item ?? '') : '')
    }
    steps.push(...(step.forEach === undefined ? [step] : stepsOfLoop(step, { texts, count: texts.length })))
  }
  return { ...plan, steps }
}

/** Returns the UTF-8 text of a found recording, so that the played text is the checked one; null: changed since. */
export async function bytesOfRecording(
  root: string,
  { path, bytes, sha256, hasTurn }: Pick<StepRecording, 'path' | 'bytes' | 'sha256' | 'hasTurn'>,
): Promise<Buffer | null> {
  const now = await bytesInside(root, path)
  if (now === 'missing' || 'problem' in now) return null
  // A growing file counts as what it was.
  const same = now.subarray(0, bytes)
  if (sha256Of(same) !== sha256) return null
  // A recording without a turn was written by hand, or cut: play it as one turn.
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

/** Removes the byte order mark. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes.toString('utf8', 0, 3) === '\uFEFF' ? bytes.subarray(3) : bytes
}

/** One at a time: all lines together would need several times the file's memory. */
function* linesOf(bytes: Buffer): Iterable<string> {
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(10, from)
    const to = end === -1 ? bytes.length : end
    yield bytes.toString('utf8', from, to)
    from = to + 1
  }
}

/** Reads lines of `codex exec --json` or of an app-server; skips all others. */
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
    // Of several, the last counts: the step was done again.
    else result = own.result
  }
  return { ...said, header: { ...said.header, ...result } }
}

function addLineOfCodex(said: Said, line: string): void {
  const value = parsedOrNull(line)
  const [type, method] = [memberOf(value, 'type'), memberOf(value, 'method')]
  // Use the event names of `codex exec --json`.
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
      // An app-server reports a failed turn this way too.
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
