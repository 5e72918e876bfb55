import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'
import type { ThreadItem } from '../../../protocol/codex.ts'
import { endWithFailures, mayNameFailure, namesFailure } from '../../base/failure-lines.ts'
import { clipEnd, clipStart } from '../../base/text.ts'
import { countChangedLines, type Item, type ItemFileChange, type ItemStatus } from '../../core/events/items.ts'
import { Tail } from './app-server.ts'
import { stringMember } from './wire.ts'

const OUTPUT_CHARS = 16 * 1024
/** Of the command of a call, which an event of its own has whole. */
const COMMAND_CHARS = 2_000

/**
 * Codex's item in our closed union. An item type that this version does not know becomes `unknown`; fields that older
 * versions leave out are filled.
 */
export function translateItem(item: ThreadItem): Item {
  const { id } = item
  switch (item.type) {
    case 'userMessage':
      return { kind: 'user-message', id, text: boundedText(userText(item.content)) }
    case 'agentMessage':
      return { kind: 'agent-message', id, text: boundedText(item.text), phase: phaseOf(item.phase) }
    case 'reasoning': {
      const parts = item.summary.length > 0 ? item.summary : item.content
      return { kind: 'reasoning', id, text: boundedText(parts.join('\n\n')) }
    }
    case 'plan':
      return { kind: 'plan', id, text: boundedText(item.text) }
    case 'commandExecution':
      return {
        kind: 'command',
        id,
        command: boundedText(item.command),
        directory: item.cwd,
        status: statusOf(item.status),
        exitCode: item.exitCode ?? null,
        durationMs: item.durationMs ?? null,
        output: clipStart(item.aggregatedOutput ?? '', OUTPUT_CHARS),
      }
    case 'fileChange':
      return { kind: 'file-change', id, status: statusOf(item.status), changes: translateChanges(item.changes) }
    case 'mcpToolCall': {
      const { server, tool, durationMs = null } = item
      const error = boundedOrNull(item.error?.message)
      return { kind: 'mcp-tool-call', id, server, tool, status: statusOf(item.status), durationMs, error }
    }
    case 'dynamicToolCall': {
      const { tool, durationMs = null } = item
      const command = stringMember(item.arguments, 'command')
      const call = { kind: 'tool-call', id, tool, status: statusOf(item.status), durationMs } as const
      return command === null ? call : { ...call, command: clipEnd(command, COMMAND_CHARS) }
    }
    case 'collabAgentToolCall': {
      const { tool: action, receiverThreadIds: threads } = item
      const prompt = boundedOrNull(item.prompt)
      return { kind: 'sub-agent', id, action, status: statusOf(item.status), prompt, threads }
    }
    case 'subAgentActivity': {
      const threads = [item.agentThreadId]
      return { kind: 'sub-agent', id, action: item.kind, status: 'completed', prompt: null, threads }
    }
    case 'webSearch':
      return { kind: 'web-search', id, query: boundedText(item.query) }
    case 'imageView':
      return { kind: 'image', id, path: item.path }
    case 'imageGeneration':
      return { kind: 'image', id, path: item.savedPath ?? null }
    case 'contextCompaction':
      return { kind: 'compaction', id }
    default:
      return { kind: 'unknown', id, codexType: String(item.type) }
  }
}

function userText(content: Extract<ThreadItem, { type: 'userMessage' }>['content']): string {
  return content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
}

function phaseOf(phase: string | null | undefined): 'commentary' | 'final-answer' | null {
  if (phase === 'commentary') return 'commentary'
  return phase === 'final_answer' ? 'final-answer' : null
}

function statusOf(status: string): ItemStatus {
  switch (status) {
    case 'inProgress':
      return 'running'
    case 'declined':
      return 'declined'
    case 'failed':
    case 'interrupted':
      return 'failed'
    default:
      return 'completed'
  }
}

/** The most of one text that goes into an event, in characters. */
const MOST_CHARACTERS = 64 * 1024

/** A text of codex as an event holds it: its first 64 Ki characters. */
export function boundedText(text: string): string {
  return clipEnd(text, MOST_CHARACTERS)
}

/** Whether an event holds less than the whole of a text. */
export function isCut(text: string): boolean {
  return text.length > MOST_CHARACTERS
}

/** As `boundedText`, for a text that may be missing; then null. */
export function boundedOrNull(text: string | null | undefined): string | null {
  return text == null ? null : boundedText(text)
}

type CodexChange = Extract<ThreadItem, { type: 'fileChange' }>['changes'][number]

const MOST_FILES = 200
/** Of all diffs of one item. */
const MOST_DIFF_CHARACTERS = 256 * 1024

/** The first 200 files of a file change; the diff of the last one says how many more there are. */
function translateChanges(changes: readonly CodexChange[]): ItemFileChange[] {
  let room = MOST_DIFF_CHARACTERS
  const translated = changes.slice(0, MOST_FILES).map(change => {
    const diff = clipEnd(change.diff, Math.min(room, MOST_CHARACTERS))
    room = Math.max(0, room - diff.length)
    const translated = translateChange(change, diff)
    return diff === change.diff
      ? translated
      : { ...translated, lines: countChangedLines(translated.change, change.diff) }
  })
  const last = translated.at(-1)
  const left = changes.length - translated.length
  if (last && left > 0) last.diff += `\n[… ${left} more files]`
  return translated
}

function translateChange({ path, kind }: CodexChange, diff: string): ItemFileChange {
  const movedTo = kind.type === 'update' ? kind.move_path : null
  return { path, change: movedTo === null ? kind.type : 'move', movedTo, diff }
}

/** Of the bytes as they came: what steers a terminal is still in them. */
const KEPT_BYTES = 64 * 1024

/** Lines that name a failure, of all that a command prints. */
const MOST_FAILURES = 40
/** So many lines are looked at, and so much of one whose end has not come, in characters. */
const MOST_LOOKED_AT = 100_000
const MOST_BEGUN = 16 * 1024

/** The last of what a command prints, however much that is, and what names a failure before it. */
export class CommandOutput {
  readonly #tail = new Tail(KEPT_BYTES)
  readonly #failures: string[] = []
  readonly #decoder = new StringDecoder('utf8')
  /** The beginning of a line of which the end has not come yet. */
  #begun = ''
  #looked = 0

  push(bytes: Buffer): void {
    this.#tail.push(bytes)
    if (this.#failures.length < MOST_FAILURES && this.#looked < MOST_LOOKED_AT) this.#look(bytes)
  }

  /**
   * Its last lines, and above them the first ones that name a failure, at most `limit` characters, as plain text: without
   * colours, and of a line that was written over what stands there last.
   */
  text(limit: number): string {
    const lines = stripVTControlCharacters(this.#tail.text().toWellFormed()).split(/\r*\n/).map(plainLine)
    const kept = new Set(lines)
    const earlier = this.#failures.filter(line => !kept.has(line))
    return endWithFailures(lines.join('\n').trimEnd(), limit, earlier)
  }

  /** Looks line by line only at what may name a failure at all: a program may print millions. */
  #look(bytes: Buffer): void {
    const text = this.#begun + this.#decoder.write(bytes)
    const end = text.lastIndexOf('\n') + 1
    this.#begun = text.slice(end, end + MOST_BEGUN)
    if (!mayNameFailure(text.slice(0, end))) return
    for (const line of text.slice(0, end).split('\n')) this.#note(line)
  }

  #note(line: string): void {
    this.#looked += 1
    if (this.#failures.length >= MOST_FAILURES || this.#looked >= MOST_LOOKED_AT) return
    const plain = plainLine(stripVTControlCharacters(line))
    if (namesFailure(plain)) this.#failures.push(plain)
  }
}

/** A progress bar goes back to the start of its line and writes over it. */
function plainLine(line: string): string {
  const written = line.replace(/\r+$/, '')
  return written.slice(written.lastIndexOf('\r') + 1).replace(CONTROL, '')
}

const CONTROL = /[^\t\P{Cc}]/gu
