import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'
import type { ThreadItem } from '../../../protocol/codex.ts'
import { endWithFailures, mayNameFailure, namesFailure } from '../../base/failure-lines.ts'
import { clipEnd, clipStart } from '../../base/text.ts'
import { countChangedLines, type Item, type ItemFileChange, type ItemStatus } from '../../core/events/items.ts'
import { Tail } from './app-server.ts'
import { stringMember } from './wire.ts'

const OUTPUT_CHARS = 16 * 1024
/** Longest command of a call, in characters; a separate event has the whole. */
const COMMAND_CHARS = 2_000

/**
 * Returns codex's item in codemachine's closed union. An unknown type becomes `unknown`; fields missing in older versions
 * are filled.
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

/** Longest text in an event, in characters. */
const MOST_CHARACTERS = 64 * 1024

/** Returns the first 64 Ki characters of codex's text, for an event. */
export function boundedText(text: string): string {
  return clipEnd(text, MOST_CHARACTERS)
}

/** True if an event cuts this text. */
export function isCut(text: string): boolean {
  return text.length > MOST_CHARACTERS
}

/** As `boundedText`; null for a missing text. */
export function boundedOrNull(text: string | null | undefined): string | null {
  return text == null ? null : boundedText(text)
}

type CodexChange = Extract<ThreadItem, { type: 'fileChange' }>['changes'][number]

const MOST_FILES = 200
/** Longest diffs of one item together, in characters. */
const MOST_DIFF_CHARACTERS = 256 * 1024

/** Returns the first 200 files of a file change; the last one's diff says how many more there are. */
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

/** Number of kept raw bytes, still with control sequences. */
const KEPT_BYTES = 64 * 1024

/** Most kept lines that name a failure. */
const MOST_FAILURES = 40
/** Most lines that are checked, and longest part of an unfinished line, in characters. */
const MOST_LOOKED_AT = 100_000
const MOST_BEGUN = 16 * 1024

/** Keeps the end of a command's output of any length, and earlier lines that name a failure. */
export class CommandOutput {
  readonly #tail = new Tail(KEPT_BYTES)
  readonly #failures: string[] = []
  readonly #decoder = new StringDecoder('utf8')
  /** Start of an unfinished line. */
  #begun = ''
  #looked = 0

  push(bytes: Buffer): void {
    this.#tail.push(bytes)
    if (this.#failures.length < MOST_FAILURES && this.#looked < MOST_LOOKED_AT) this.#look(bytes)
  }

  /**
   * Returns the last lines, preceded by the first ones that name a failure, at most `limit` characters of plain text:
   * without colours, and only the last version of an overwritten line.
   */
  text(limit: number): string {
    const lines = stripVTControlCharacters(this.#tail.text().toWellFormed()).split(/\r*\n/).map(plainLine)
    const kept = new Set(lines)
    const earlier = this.#failures.filter(line => !kept.has(line))
    return endWithFailures(lines.join('\n').trimEnd(), limit, earlier)
  }

  /** Checks single lines only in a chunk that may name a failure: a program may print millions. */
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

/** Returns the last version of a line that a progress bar overwrites. */
function plainLine(line: string): string {
  const written = line.replace(/\r+$/, '')
  return written.slice(written.lastIndexOf('\r') + 1).replace(CONTROL, '')
}

const CONTROL = /[^\t\P{Cc}]/gu
