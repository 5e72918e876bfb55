import { createHash } from 'node:crypto'
import { constants, type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { Interrupted, systemErrorCode } from '../../../base/errors.ts'
import { LineSplitter } from '../../../base/text.ts'
import { findObstacle, whatIsThere } from '../../../workspace/files/inside-directory.ts'
import { type FlowPlan, type FlowStep, recordingFilesOf } from './plan.ts'
import { type RecordedResult, type RecordingHeader, readOwnLine } from './recording.ts'

/** Where recordings lie, relative to the work directory. */
export const DEBUG_FOLDER = '.codex-flow/runtime/debug'

/** What one pass over a recording has found; its lines are not kept. */
export interface StepRecording {
  /** Relative to the work directory, with `/`. */
  path: string
  bytes: number
  /** Of its bytes, hex. */
  sha256: string
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
/** The longest line in it, bytes. */
const MOST_LINE_BYTES = 16 * 1024 * 1024

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
  const looked = recordingFilesOf(step).map(name => `${DEBUG_FOLDER}/${name}`)
  for (const path of looked) {
    const opened = await openInside(root, path)
    if (opened === 'missing') continue
    if ('problem' in opened) return { kind: 'broken', path, ...opened }
    await using recorded = opened.file
    const read = await readRecording(recorded, path, signal)
    if ('problem' in read) return { kind: 'broken', path, ...read }
    const { workflow } = read.header
    if (workflow === undefined || (workflow.file === file && workflow.name === name))
      return { kind: 'recording', recording: read }
    const other = `the workflow ${JSON.stringify(workflow.name)} of ${workflow.file.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').slice(0, MOST_NAMED)}`
    return { kind: 'broken', path, problem: `was recorded by another one, ${other}; run this one for real (--no-mock)` }
  }
  return { kind: 'missing', looked }
}

/**
 * Copies a recording that was found into a new file, so that what is played is what was read. False if it has changed since.
 * @param to absolute; a file of the records
 */
export async function copyRecording(root: string, recording: FoundContent, to: string): Promise<boolean> {
  await using copy = await open(to, 'wx', 0o600)
  return await readAgain(root, recording, async part => void (await copy.writeFile(part)))
}

/** The text of a recording that was found, as `copyRecording` copies it; null if it has changed since. */
export async function textOfRecording(root: string, recording: FoundContent): Promise<string | null> {
  const parts: Buffer[] = []
  const isSame = await readAgain(root, recording, async part => void parts.push(Buffer.from(part)))
  return isSame ? Buffer.concat(parts).toString('utf8') : null
}

type FoundContent = Pick<StepRecording, 'path' | 'bytes' | 'sha256' | 'hasTurn'>

/** Hands on a recording that was found, part by part; each is to be used before the next. False if it has changed since. */
async function readAgain(
  root: string,
  { path, hasTurn, ...found }: FoundContent,
  onPart: (part: Buffer) => Promise<void>,
): Promise<boolean> {
  const opened = await openInside(root, path)
  if (opened === 'missing' || 'problem' in opened) return false
  await using file = opened.file
  // What shows no turn was written by hand, or cut: it is played as one.
  if (!hasTurn) await onPart(Buffer.from('{"type":"turn.started"}\n'))
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunksOf(file, found.bytes)) {
    hash.update(chunk)
    const part = bytes === 0 ? withoutMark(chunk) : chunk
    bytes += chunk.length
    await onPart(part)
  }
  return bytes === found.bytes && hash.digest('hex') === found.sha256
}

async function openInside(root: string, path: string): Promise<{ file: FileHandle } | { problem: string } | 'missing'> {
  const whole = join(root, path)
  const folder = join(path, '..')
  try {
    const obstacle = await findObstacle(root, folder)
    if (obstacle?.kind === 'missing') return 'missing'
    if (obstacle !== null) return { problem: `cannot be reached: ${obstacle.path} ${whatIsThere(obstacle)}` }
    if ((await lstat(whole)).isSymbolicLink()) return { problem: 'is a link; put the file itself in its place' }
    // Without O_NONBLOCK the opening of a named pipe waits for its other end; Windows has neither flag.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
    const file = await open(whole, flags)
    const problem = await problemOf(file, whole)
    if (problem === null) return { file }
    await file.close()
    return { problem }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'missing'
    return { problem: `cannot be opened (${code})` }
  }
}

async function problemOf(file: FileHandle, path: string): Promise<string | null> {
  const found = await file.stat()
  if (found.isDirectory()) return 'is a folder; put a file in its place'
  if (!found.isFile()) return 'is no regular file; put one in its place'
  // A folder on the way may have become a link between the two looks.
  if ((await realpath(path)) !== path) return 'is reached through a link; put folders in the place of links'
  if (found.size <= MOST_BYTES) return null
  const mib = (bytes: number) => Math.ceil(bytes / 1024 / 1024)
  return `has ${mib(found.size)} MiB, and may have ${mib(MOST_BYTES)}; record the step again`
}

async function readRecording(
  file: FileHandle,
  path: string,
  signal: AbortSignal,
): Promise<StepRecording | { problem: string }> {
  const lines = new Lines()
  const splitter = new LineSplitter(line => lines.take(line), MOST_LINE_BYTES)
  const hash = createHash('sha256')
  const { size } = await file.stat()
  let bytes = 0
  for await (const chunk of chunksOf(file, size)) {
    if (signal.aborted) throw new Interrupted(signal.reason)
    if (bytes === 0 && isUtf16(chunk)) return { problem: 'is UTF-16 text; save it as UTF-8' }
    hash.update(chunk)
    splitter.push(bytes === 0 ? withoutMark(chunk) : chunk)
    bytes += chunk.length
  }
  splitter.end()
  if (lines.newer !== null)
    return {
      problem: `was recorded by a newer codemachine (its lines are of version ${lines.newer}); update codemachine, or record the step again`,
    }
  const { result, hasEvents, hasTurn, lastMessage, failure } = lines
  const header = { ...lines.header, ...result }
  return { path, bytes, sha256: hash.digest('hex'), header, hasEvents, hasTurn, lastMessage, failure }
}

const CHUNK_BYTES = 256 * 1024

/** The first `size` bytes of a file: one that grows counts as what it was at first. Each chunk is to be used before the next. */
async function* chunksOf(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.alloc(CHUNK_BYTES)
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK_BYTES, size - at), at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

function isUtf16(start: Buffer): boolean {
  return start.length >= 2 && ((start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff))
}

function withoutMark(start: Buffer): Buffer {
  return start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf ? start.subarray(3) : start
}

/** What the lines of a recording say, whether of `codex exec --json` or of an app-server; all others are passed over. */
class Lines {
  header: RecordingHeader = {}
  result: RecordedResult = {}
  newer: number | null = null
  hasEvents = false
  hasTurn = false
  lastMessage: string | null = null
  failure: string | null = null

  take(line: string): void {
    const own = readOwnLine(line)
    if (own === 'broken') return
    if (own !== null && 'newer' in own) this.newer = own.newer
    else if (own !== null && 'header' in own) this.header = { ...this.header, ...own.header }
    // Of more than one the last counts: the step was done again.
    else if (own !== null) this.result = own.result
    else this.#codex(messageOf(line))
  }

  #codex(message: Message | null): void {
    if (message === null) return
    const { kind, body } = message
    if (!EVENTS.has(kind)) return
    this.hasEvents = true
    switch (kind) {
      case 'turn.started':
        this.hasTurn = true
        this.failure = null
        return
      case 'turn.failed':
        this.failure = textAt(body, 'error', 'message') ?? NO_REASON
        return
      case 'turn.completed':
        // An app-server says so of one that failed, too.
        if (textAt(body, 'turn', 'status') === 'failed')
          this.failure = textAt(body, 'turn', 'error', 'message') ?? NO_REASON
        return
      case 'item.completed': {
        const type = textAt(body, 'item', 'type')
        if (type === 'agent_message' || type === 'agentMessage')
          this.lastMessage = textAt(body, 'item', 'text') ?? this.lastMessage
      }
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

/** A line of either format, by the name that `codex exec --json` has for it. */
interface Message {
  kind: string
  body: unknown
}

function messageOf(line: string): Message | null {
  const value = parsed(line)
  const type = memberOf(value, 'type')
  if (typeof type === 'string') return { kind: type, body: value }
  const method = memberOf(value, 'method')
  return typeof method === 'string' ? { kind: method.replace('/', '.'), body: memberOf(value, 'params') } : null
}

function textAt(value: unknown, ...path: readonly string[]): string | null {
  const found = path.reduce<unknown>(memberOf, value)
  return typeof found === 'string' ? found : null
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
