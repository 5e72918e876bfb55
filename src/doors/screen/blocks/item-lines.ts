import { basename } from 'node:path'
import { lexInline } from '../../../base/markdown-lexer.ts'
import type { RecordedOf } from '../../../core/events/events.ts'
import type { Item } from '../../../core/events/items.ts'
import type { LiveItem } from '../../../core/events/live-board.ts'
import { cutLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { describeItem, type ItemPlace, wordsForCutOff } from '../../../tell/words/item.ts'
import { type Description, describe, safeOutput, shownCommand } from '../../../tell/words/names.ts'
import { formatClock, formatCount, formatDuration } from '../../../tell/words/numbers.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import { namesOfSecrets, remarksOnShellRun } from '../../../tell/words/work.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { changeLines } from './file-changes.ts'
import {
  type BlockOptions,
  besideWordsMark,
  describedLines,
  firstRows,
  type LineOptions,
  type LiveOptions,
  MOST_TEXT,
  underPrefix,
} from './layout.ts'
import { highlightCode, inlineLines, markdownLines } from './markdown.ts'

/** A completed item of the agent as finished lines; `[]` for user messages, which are shown by the events of the round. */
export function itemLines(item: Item, place: ItemPlace, options: BlockOptions): string[] {
  const { columns, theme } = options
  switch (item.kind) {
    case 'agent-message':
      return besideWordsMark({ columns, theme }, inner =>
        markdownLines(item.text, { columns: inner, theme, first: true }),
      )
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
    case 'sub-agent':
      return options.full && item.prompt !== null
        ? withMore(describeItem({ ...item, prompt: null }, place), item.prompt, options)
        : describedLines(describeItem(item, place), options)
    case 'mcp-tool-call':
      return options.full && item.error !== null
        ? withMore(describeItem({ ...item, error: null }, place), item.error, options)
        : describedLines(describeItem(item, place), options)
    // Every other kind is in `describeItem`, and a message of the user, which the events of the round show, is null there.
    default:
      return describedLines(describeItem(item, place), options)
  }
}

/** The first line of a description, and below it the whole of an untrusted text. */
function withMore(description: Description | null, text: string, options: BlockOptions): string[] {
  const { text: first, tone } = description ?? describe('')
  return describedLines({ text: first, more: safeText(text.trim()).split('\n'), tone }, options)
}

type Command = Extract<Item, { kind: 'command' }>

/** The most rows of the first line of a command. */
const COMMAND_ROWS = 6
const COMMAND_CHARS = 2000
/** The last lines of a command's output, running or completed. */
const OUTPUT_LINES = 5
const OUTPUT_LINES_IF_FAILED = 12

function commandLines(item: Command, options: BlockOptions): string[] {
  return commandParts(item, options).flat()
}

/** A command with its exit code, and its output: the last five lines of it, twelve if it failed, or all of it in full. */
function commandParts(item: Command, options: BlockOptions): [head: string[], tail: string[]] {
  const { columns, theme } = options
  const command = promptLines(item.command, options)
  const ending = endingOf(item, theme)
  const last = command.at(-1) ?? ''
  const head =
    widthOf(last) + widthOf(ending) + 2 <= columns
      ? [...command.slice(0, -1), `${last}  ${ending}`]
      : [...command, ...underPrefix({ first: '  ', columns }, inner => wrapLine(ending, inner))]
  return [head, outputTail(item.output, hasFailed(item) ? OUTPUT_LINES_IF_FAILED : OUTPUT_LINES, options)]
}

/**
 * A command that codemachine ran for an agent, as one of codex: with the names of the secrets that it had, and what a person
 * should know of it between its line and what it printed.
 */
export function shellLines(event: RecordedOf<'shell-ran'>, options: BlockOptions): string[] {
  const { columns, theme } = options
  const item = shellItem(event)
  const [head, tail] = commandParts(item, options)
  const names = namesOfSecrets(event)
  const role = (event.leaked ?? []).length > 0 ? 'bad' : 'warning'
  return [
    ...head,
    ...underPrefix({ first: '  ', columns }, inner => [
      ...(names === '' ? [] : wrapLine(theme.paint('dim', oneLine(names, COMMAND_CHARS)), inner)),
      ...remarksOnShellRun(event).flatMap(remark => wrapLine(theme.paint(role, remark), inner)),
    ]),
    ...tail,
  ]
}

/** Such a command as one that codex ran: what it printed to both streams, one behind the other. */
export function shellItem(event: RecordedOf<'shell-ran'>): Command {
  const { command, status, exitCode, stdout, stderr, durationMs } = event
  const output = [stdout, stderr].filter(each => each !== '').map(each => each.replace(/\n$/, ''))
  return {
    kind: 'command',
    id: '',
    directory: '',
    command,
    status: status === 'passed' ? 'completed' : 'failed',
    exitCode,
    durationMs,
    output: output.join('\n'),
  }
}

/** A whole command with all of its output that is kept, for the pager. */
export function outputLines(item: Command, options: LineOptions): string[] {
  return commandLines(item, { ...options, full: true })
}

/** A command as one would type it, behind a `$`; its first line, or all of them in full. */
function promptLines(command: string, { columns, theme, full }: BlockOptions): string[] {
  const lines = shownCommand(command.slice(0, MOST_TEXT)).trim().split('\n')
  // A note takes as much room as a second line.
  const left = full || lines.length === 2 ? 0 : lines.length - 1
  const typed = safeText(
    lines
      .slice(0, lines.length - left)
      .join('\n')
      .slice(0, full ? MOST_TEXT : COMMAND_CHARS),
  )
  const prefix = { first: theme.paint('accent', '$ '), columns }
  return underPrefix(prefix, inner => {
    const note = (text: string) => theme.paint('dim', cutLine(text, inner))
    const rows = highlightCode(typed, 'bash', theme).flatMap(line => wrapLine(line, inner))
    if (full) return rows
    return [...clipped(rows, COMMAND_ROWS, note), ...(left === 0 ? [] : [note(`… ${formatCount(left, 'more line')}`)])]
  })
}

/** The exit code and duration of a command, or that it is running. */
function endingOf(item: Command, theme: Theme): string {
  if (item.cutOffMs !== undefined) return theme.paint('warning', wordsForCutOff(item.cutOffMs))
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

/** The last `most` lines of an output, dimmed and indented; in full all of its lines. */
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

/** The rows of a thought below its heading, and of one that goes on. */
const THOUGHT_ROWS = 3
// Three rows are never longer than this.
const THOUGHT_CHARS = 2000

/** Reasoning of the agent, dimmed: its heading, and the first three rows below it; in full all of them. */
function thoughtLines(text: string, { columns, theme, full }: BlockOptions): string[] {
  const looked = text.trim().slice(0, full ? MOST_TEXT : THOUGHT_CHARS)
  const end = looked.includes('\n') ? looked.indexOf('\n') : looked.length
  const heading = dimmed(looked.slice(0, end), theme, ['emphasis'])
  const lines = dimmed(looked.slice(end), theme).flatMap(line => wrapLine(line, columns))
  return [
    ...heading.flatMap(line => wrapLine(line, columns)),
    ...firstRows(lines, full ? lines.length : THOUGHT_ROWS, columns),
  ]
}

/** The last `rows` rows of reasoning that goes on, dimmed. */
function thoughtTail(text: string, { columns, theme, rows }: Omit<LiveOptions, 'now'>): string[] {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return dimmed(lines.slice(-rows).join('\n'), theme)
    .flatMap(line => wrapLine(line, columns))
    .slice(-rows)
}

/** Paragraphs with inline Markdown, dimmed, without the blank lines between them. */
function dimmed(text: string, theme: Theme, roles: readonly Role[] = []): string[] {
  return safeText(text)
    .split(/\n\s*\n/)
    .flatMap(paragraph => inlineLines(lexInline(paragraph), theme, ['dim', ...roles]))
    .filter(line => line.trim() !== '')
}

/** The newest lines of an item that still runs. `text`: its output so far; of a message, the part not printed yet. */
export function liveItemLines(
  { item, text, startedAt, dropped = 0 }: Pick<LiveItem, 'item' | 'text' | 'startedAt'> & { dropped?: number },
  options: LiveOptions,
): string[] {
  const { columns, theme, rows, now } = options
  if (rows < 1) return []
  const time = theme.paint('dim', `  ${formatClock(now - startedAt)}`)
  switch (item.kind) {
    case 'agent-message': {
      const goesOn = dropped > 0
      return besideWordsMark({ columns, theme, goesOn }, inner =>
        messageTail(text, { ...options, columns: inner }),
      ).slice(-rows)
    }
    case 'plan':
      return messageTail(text, options).slice(-rows)
    case 'reasoning':
      return thoughtTail(tailOf(text, TAIL_CHARS), { columns, theme, rows: Math.min(rows, THOUGHT_ROWS) })
    case 'command':
      return runningCommand(item.command, text, time, options)
    case 'file-change': {
      const names = item.changes.map(({ path }) => oneLine(basename(path), NAME_CHARS))
      return [withTime(`changing ${names.join(', ')}`, time, columns)]
    }
    case 'user-message':
      return []
    default:
      return [withTime(describeItem(item, NOWHERE)?.text ?? '', time, columns)]
  }
}

const NOWHERE = { session: '', directory: '' }
const OUTPUT_CHARS = 4 * 1024
const TAIL_CHARS = 6 * 1024
const NAME_CHARS = 100
const LEAST_BEFORE_TIME = 8

function runningCommand(command: string, output: string, time: string, options: LiveOptions): string[] {
  const { columns, theme, rows } = options
  const [first = '', ...more] = promptLines(command, { columns, theme, full: false })
  const head = withTime(`${first}${more.length > 0 ? ' …' : ''}`, time, columns)
  const tail = safeOutput(output.slice(-OUTPUT_CHARS)).slice(-Math.min(OUTPUT_LINES, rows - 1))
  const drawn = underPrefix({ first: '  ', columns }, inner =>
    tail.map(line => theme.paint('dim', cutLine(line, inner))),
  )
  return [head, ...(rows > 1 ? drawn : [])]
}

/** A line followed by the time, cut so that the time fits; without it if fewer than 8 cells would be left. */
function withTime(line: string, time: string, columns: number): string {
  const room = columns - widthOf(time)
  return room < LEAST_BEFORE_TIME ? cutLine(line, columns) : cutLine(line, room) + time
}

const FENCE = /^ {0,3}(?:`{3,}|~{3,})[^\n`]*\n/

function messageTail(text: string, { columns, theme, rows }: LiveOptions): string[] {
  const fence = FENCE.exec(text)?.[0] ?? null
  // The fence of a code block is put back in front of its tail, which would not be drawn as code without it.
  const tail = fence === null ? tailOf(text, TAIL_CHARS) : tailOf(text, Math.min(TAIL_CHARS, 2 * columns * rows))
  const shown = fence === null || tail.length === text.length ? tail : fence + tail
  return markdownLines(shown, { columns, theme, first: true })
}

/** The last whole lines within `limit` characters. Does not look at the rest: the text may be long and grows many times a second. */
function tailOf(text: string, limit: number): string {
  if (text.length <= limit) return text
  const tail = text.slice(-limit)
  return tail.slice(tail.slice(0, -1).indexOf('\n') + 1)
}
