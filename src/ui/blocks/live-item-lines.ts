import { basename } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import type { Item } from '../../session/items.ts'
import { cutLine, widthOf } from '../cells.ts'
import { describeItem } from '../describe-item.ts'
import { formatClock } from '../header/format-clock.ts'
import { oneLine } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import { promptLines } from './command-lines.ts'
import { markdownLines } from './markdown-lines.ts'
import { safeOutput } from './safe-output.ts'
import { thoughtTail } from './thought-lines.ts'
import { underPrefix } from './under-prefix.ts'

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
