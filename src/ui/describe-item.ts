import { unreachable } from '../base/errors.ts'
import { ASK_PERSON } from '../session/ask-person.ts'
import type { Item, ItemStatus } from '../session/items.ts'
import { clipLines } from './clip-lines.ts'
import { describeChanges } from './describe-changes.ts'
import { type Description, describe } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { oneLine } from './safe-text.ts'
import { shownCommand } from './shown-command.ts'

const MESSAGE_LINES = 40
const COMMAND_CHARS = 300
const OUTPUT_LINES = 3
const LINE_CHARS = 300
const THOUGHT_CHARS = 120

/** Where an item was seen: the session, and its work directory, which paths are shown relative to. */
export interface ItemPlace {
  session: string
  directory: string
}

/** What a person is told of something that codex did; null if nothing. */
export function describeItem(item: Item, { session, directory }: ItemPlace): Description | null {
  const rest = `all of it: codemachine logs ${session} --json`
  switch (item.kind) {
    // The input of a round is codemachine's own; what a person adds comes as `steered`.
    case 'user-message':
      return null
    case 'agent-message':
      return item.text.trim() === ''
        ? null
        : describe(clipLines(item.text, MESSAGE_LINES, rest), messageTone(item.phase))
    case 'reasoning':
      return describeThought(item.text)
    case 'command':
      return describeCommand(item)
    case 'file-change':
      return describeChanges(item, directory)
    case 'plan':
      return describe(`plan  ${clipLines(item.text, MESSAGE_LINES, rest)}`)
    case 'web-search':
      return describe(`web search  ${oneLine(item.query, LINE_CHARS)}`)
    case 'mcp-tool-call':
      return describeCall(`${item.server}/${item.tool}`, item, item.error)
    case 'tool-call':
      // The question that it asks is told by an event of its own.
      if (item.tool === ASK_PERSON) return null
      return describeCall(item.tool, item, null)
    case 'sub-agent':
      return describeSubAgent(item)
    case 'image':
      return describe(`image${item.path === null ? '' : `  ${oneLine(item.path, LINE_CHARS)}`}`)
    case 'compaction':
      return describe('codex compacted its context', 'quiet')
    case 'unknown':
      return describe(`codex did something this version does not know: ${oneLine(item.codexType, LINE_CHARS)}`, 'quiet')
    default:
      return unreachable(item)
  }
}

function messageTone(phase: 'commentary' | 'final-answer' | null): 'plain' | 'strong' {
  return phase === 'final-answer' ? 'strong' : 'plain'
}

/** The first line of a thought, which codex writes as a heading. */
function describeThought(text: string): Description | null {
  const first = text.trim().split('\n', 1)[0]?.replace(EMPHASIS, '$1') ?? ''
  return first === '' ? null : describe(`thinks  ${oneLine(first, THOUGHT_CHARS)}`, 'quiet')
}

const EMPHASIS = /\*{1,3}(?=\S)([^*]+)(?<=\S)\*{1,3}/g

function describeCommand(item: Extract<Item, { kind: 'command' }>): Description {
  const command = `$ ${oneLine(shownCommand(item.command), COMMAND_CHARS)}`
  const end = item.exitCode === null ? item.status : `exit ${item.exitCode}`
  const line = `${command}  → ${end}${inTime(item.durationMs)}`
  const worked = item.exitCode === null ? item.status === 'completed' : item.exitCode === 0
  return worked ? describe(line) : describe([line, ...lastLines(item.output)].join('\n'), 'warning')
}

// Test runners colour what they print; a colour that is not obeyed is only noise.
const COLOURS = new RegExp(`${String.fromCharCode(0x1b)}\\[[\\d;:]*m`, 'g')

function lastLines(output: string): string[] {
  return output
    .replace(COLOURS, '')
    .split(/\r?\n/)
    .filter(line => line.trim() !== '')
    .slice(-OUTPUT_LINES)
    .map(line => oneLine(line, LINE_CHARS))
}

function describeCall(
  name: string,
  { status, durationMs }: { status: ItemStatus; durationMs: number | null },
  error: string | null,
): Description {
  const why = error === null ? '' : `: ${oneLine(error, LINE_CHARS)}`
  return describe(
    `tool ${oneLine(name, LINE_CHARS)}  → ${status}${inTime(durationMs)}${why}`,
    status === 'failed' || status === 'declined' ? 'warning' : 'plain',
  )
}

function describeSubAgent(item: Extract<Item, { kind: 'sub-agent' }>): Description {
  const many = item.threads.length > 1 ? ` (${formatCount(item.threads.length, 'thread')})` : ''
  const end = item.status === 'completed' ? '' : `  → ${item.status}`
  const prompt = item.prompt === null ? '' : `: ${oneLine(item.prompt, LINE_CHARS)}`
  return describe(
    `sub-agent ${oneLine(item.action, LINE_CHARS)}${many}${end}${prompt}`,
    end === '' ? 'plain' : 'warning',
  )
}

/** Codex reports 0 for a command that ended at once. */
function inTime(durationMs: number | null): string {
  return !durationMs ? '' : ` in ${formatDuration(durationMs)}`
}
