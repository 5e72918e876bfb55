import { basename } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import type { Item } from '../../core/events/items.ts'
import { cutLine, oneLine, safeText, widthOf, wrapLine } from '../../words/cells.ts'
import { describeItem, type ItemPlace } from '../../words/item.ts'
import { type Description, describe, safeOutput, shownCommand } from '../../words/names.ts'
import { formatClock, formatCount, formatDuration } from '../../words/numbers.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { changeLines } from './file-changes.ts'
import { type BlockOptions, describedLines, firstRows, underPrefix } from './layout.ts'
import { highlightCode, inlineLines, lexInline, markdownLines } from './markdown.ts'

/** Something that codex did, drawn. */
export function itemLines(item: Item, place: ItemPlace, options: BlockOptions): string[] {
  const { columns, theme } = options
  switch (item.kind) {
    case 'agent-message':
      return markdownLines(item.text, { columns, theme, first: true })
    case 'reasoning':
      return thoughtLines(item.text, options)
    case 'command':
      return commandLines(item, options)
    case 'file-change':
      return changeLines(item, place.directory, options)
    case 'plan':
      return [
        ...wrapLine(theme.paint('strong', 'plan'), columns),
        ...markdownLines(item.text, { columns, theme, first: true }),
      ]
    // What codemachine or a person wrote; it is told as the round's beginning, or as `steered`.
    case 'user-message':
      return []
    case 'sub-agent':
      return options.full && item.prompt !== null
        ? withMore(describeItem({ ...item, prompt: null }, place), item.prompt, options)
        : describedLines(describeItem(item, place), options)
    case 'mcp-tool-call':
      return options.full && item.error !== null
        ? withMore(describeItem({ ...item, error: null }, place), item.error, options)
        : describedLines(describeItem(item, place), options)
    case 'web-search':
    case 'tool-call':
    case 'image':
    case 'compaction':
    case 'unknown':
      return describedLines(describeItem(item, place), options)
    default:
      return unreachable(item)
  }
}

/** A description, and below it a text from outside, whole. */
function withMore(description: Description | null, text: string, options: BlockOptions): string[] {
  const { text: first, tone } = description ?? describe('')
  return describedLines({ text: first, more: safeText(text.trim()).split('\n'), tone }, options)
}

type Command = Extract<Item, { kind: 'command' }>

const MOST_COMMAND_LINES = 6
const CLIPPED_COMMAND = 2000
const MOST_COMMAND = 72 * 1024
const OUTPUT_LINES_OF_COMMAND_LINES = 5
const OUTPUT_LINES_IF_FAILED = 12

/**
 * A command: what was run, how it ended, and what it printed; if not in full, of that the last five lines, or twelve if
 * it failed.
 */
function commandLines(item: Command, options: BlockOptions): string[] {
  const { columns, theme } = options
  const command = promptLines(item.command, options)
  const ending = endingOf(item, theme)
  const last = command.at(-1) ?? ''
  const head =
    widthOf(last) + widthOf(ending) + 2 <= columns
      ? [...command.slice(0, -1), `${last}  ${ending}`]
      : [...command, ...wrapLine(ending, columns)]
  return [
    ...head,
    ...outputTail(item.output, hasFailed(item) ? OUTPUT_LINES_IF_FAILED : OUTPUT_LINES_OF_COMMAND_LINES, options),
  ]
}

/** All of a command, and all that is kept of what it printed, for reading. */
export function outputLines(item: Command, { columns, theme }: Pick<BlockOptions, 'columns' | 'theme'>): string[] {
  return commandLines(item, { columns, theme, full: true })
}

/** A command as a person would type it, behind a `$`; if not in full, its first lines. */
function promptLines(command: string, { columns, theme, full }: BlockOptions): string[] {
  const typed = safeText(shownCommand(command.slice(0, MOST_COMMAND)).slice(0, full ? MOST_COMMAND : CLIPPED_COMMAND))
  const prefix = { first: theme.paint('accent', '$ '), columns }
  return underPrefix(prefix, inner => {
    const lines = highlightCode(typed.trim(), 'bash', theme).flatMap(line => wrapLine(line, inner))
    return full ? lines : clipped(lines, MOST_COMMAND_LINES, left => theme.paint('dim', cutLine(left, inner)))
  })
}

/** How a command ended, and how long it took; one that runs is said to. */
function endingOf(item: Command, theme: Theme): string {
  if (item.status === 'running') return theme.paint('dim', item.status)
  const failed = hasFailed(item)
  const sign = theme.symbols ? (failed ? '✘ ' : '✔ ') : ''
  const end = item.exitCode === null ? item.status : `exit ${item.exitCode}`
  // Codex reports 0 for a command that ended at once.
  const time = item.durationMs ? `, ${formatDuration(item.durationMs)}` : ''
  return theme.paint(failed ? 'bad' : 'good', `${sign}${end}${time}`)
}

function hasFailed({ exitCode, status }: Command): boolean {
  return exitCode === null ? status === 'failed' || status === 'declined' : exitCode !== 0
}

/** The last lines, at most `most`, of what something printed; in full all of it. */
export function outputTail(output: string, most: number, { columns, theme, full }: BlockOptions): string[] {
  const lines = safeOutput(output)
  const shown = full ? lines : lines.slice(-most)
  const left = lines.length - shown.length
  return underPrefix({ first: '  ', columns }, inner => [
    ...(left > 0 ? [theme.paint('dim', cutLine(`… ${formatCount(left, 'line')} before`, inner))] : []),
    ...shown
      .flatMap(line => (full ? wrapLine(line, inner) : [cutLine(line, inner)]))
      .map(line => (full ? line : theme.paint('dim', line))),
  ])
}

function clipped(lines: readonly string[], most: number, note: (text: string) => string): string[] {
  const left = lines.length - most
  return left <= 1 ? [...lines] : [...lines.slice(0, most), note(`… ${formatCount(left, 'more line')}`)]
}

const MOST_LINES = 3
const MOST_CHARACTERS = 72 * 1024
// Of a text that is clipped after three lines, no more is looked at.
const CLIPPED_CHARACTERS = 2000

/** What codex thinks, dimmed: its heading and the lines below; three of them, if not in full. */
function thoughtLines(text: string, { columns, theme, full }: BlockOptions): string[] {
  const looked = text.trim().slice(0, full ? MOST_CHARACTERS : CLIPPED_CHARACTERS)
  const end = looked.includes('\n') ? looked.indexOf('\n') : looked.length
  const heading = dimmed(looked.slice(0, end), theme, ['emphasis'])
  const lines = dimmed(looked.slice(end), theme).flatMap(line => wrapLine(line, columns))
  return [
    ...heading.flatMap(line => wrapLine(line, columns)),
    ...firstRows(lines, full ? lines.length : MOST_LINES, columns),
  ]
}

/** The last lines of a thought that goes on, dimmed, at most `rows`. */
function thoughtTail(text: string, { columns, theme, rows }: ThoughtPlace): string[] {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return dimmed(lines.slice(-rows).join('\n'), theme)
    .flatMap(line => wrapLine(line, columns))
    .slice(-rows)
}

interface ThoughtPlace {
  columns: number
  theme: Theme
  rows: number
}

/** Paragraphs of Markdown as they are meant, dimmed, without the blank lines between them. */
function dimmed(text: string, theme: Theme, roles: readonly Role[] = []): string[] {
  return safeText(text)
    .split(/\n\s*\n/)
    .flatMap(paragraph => inlineLines(lexInline(paragraph), theme, ['dim', ...roles]))
    .filter(line => line.trim() !== '')
}

/** Where something that still runs is drawn: at most so many rows; `now` is Unix time, ms. */
export interface LiveOptions {
  columns: number
  theme: Theme
  rows: number
  now: number
}

/** Something that codex does, and what has come of it. */
export interface LiveThing {
  item: Item
  /** What has come so far: of a message, what has not been drawn yet. */
  text: string
  /** Unix time, ms. */
  startedAt: number
}

/** Something that codex does just now: its newest lines. */
export function liveItemLines({ item, text, startedAt }: LiveThing, options: LiveOptions): string[] {
  const { columns, theme, rows, now } = options
  if (rows < 1) return []
  const time = theme.paint('dim', `  ${formatClock(now - startedAt)}`)
  switch (item.kind) {
    case 'agent-message':
    case 'plan':
      return messageTail(text, options)
    case 'reasoning':
      return thoughtTail(tailOf(text, MOST_TAIL), { columns, theme, rows: Math.min(rows, THOUGHT_LINES) })
    case 'command':
      return runningCommand(item.command, text, time, options)
    case 'file-change':
      return [
        withTime(
          `changing ${item.changes.map(({ path }) => oneLine(basename(path), NAME_CHARS)).join(', ')}`,
          time,
          columns,
        ),
      ]
    case 'user-message':
      return []
    case 'web-search':
    case 'mcp-tool-call':
    case 'tool-call':
    case 'sub-agent':
    case 'image':
    case 'compaction':
    case 'unknown':
      return [withTime(describeItem(item, NOWHERE)?.text ?? '', time, columns)]
    default:
      return unreachable(item)
  }
}

const NOWHERE = { session: '', directory: '' }
const MOST_OUTPUT = 4 * 1024
const OUTPUT_LINES = 5
const MOST_TAIL = 6 * 1024
const NAME_CHARS = 100
const THOUGHT_LINES = 3
const LEAST_BEFORE_TIME = 8

function runningCommand(command: string, output: string, time: string, options: LiveOptions): string[] {
  const { columns, theme, rows } = options
  const [first = '', ...more] = promptLines(command, { columns, theme, full: false })
  const head = withTime(`${first}${more.length > 0 ? ' …' : ''}`, time, columns)
  const tail = safeOutput(output.slice(-MOST_OUTPUT)).slice(-Math.min(OUTPUT_LINES, rows - 1))
  const drawn = underPrefix({ first: '  ', columns }, inner =>
    tail.map(line => theme.paint('dim', cutLine(line, inner))),
  )
  return [head, ...(rows > 1 ? drawn : [])]
}

/** A line with the time behind it, cut so that the time is seen. */
function withTime(line: string, time: string, columns: number): string {
  const room = columns - widthOf(time)
  return room < LEAST_BEFORE_TIME ? cutLine(line, columns) : cutLine(line, room) + time
}

const FENCE = /^ {0,3}(?:`{3,}|~{3,})[^\n`]*\n/

function messageTail(text: string, { columns, theme, rows }: LiveOptions): string[] {
  const fence = FENCE.exec(text)?.[0] ?? null
  // Of a code block the beginning, which says that it is one, is put back; it is painted anew each time.
  const tail = fence === null ? tailOf(text, MOST_TAIL) : tailOf(text, Math.min(MOST_TAIL, 2 * columns * rows))
  const shown = fence === null || tail.length === text.length ? tail : fence + tail
  return markdownLines(shown, { columns, theme, first: true }).slice(-rows)
}

/** The last lines of a text, which may be a long one that grows many times a second. */
function tailOf(text: string, limit: number): string {
  if (text.length <= limit) return text
  const tail = text.slice(-limit)
  return tail.slice(tail.slice(0, -1).indexOf('\n') + 1)
}
