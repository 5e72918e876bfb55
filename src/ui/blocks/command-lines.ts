import type { Item } from '../../session/items.ts'
import { cutLine, widthOf, wrapLine } from '../cells.ts'
import { formatCount } from '../format-count.ts'
import { formatDuration } from '../format-duration.ts'
import { safeText } from '../safe-text.ts'
import { shownCommand } from '../shown-command.ts'
import type { Theme } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { highlightCode } from './highlight-code.ts'
import { safeOutput } from './safe-output.ts'
import { underPrefix } from './under-prefix.ts'

type Command = Extract<Item, { kind: 'command' }>

const MOST_COMMAND_LINES = 6
const CLIPPED_COMMAND = 2000
const MOST_COMMAND = 72 * 1024
const OUTPUT_LINES = 5
const OUTPUT_LINES_IF_FAILED = 12

/**
 * A command: what was run, how it ended, and what it printed; if not in full, of that the last five lines, or twelve if
 * it failed.
 */
export function commandLines(item: Command, options: BlockOptions): string[] {
  const { columns, theme } = options
  const command = promptLines(item.command, options)
  const ending = endingOf(item, theme)
  const last = command.at(-1) ?? ''
  const head =
    widthOf(last) + widthOf(ending) + 2 <= columns
      ? [...command.slice(0, -1), `${last}  ${ending}`]
      : [...command, ...wrapLine(ending, columns)]
  return [...head, ...outputTail(item.output, hasFailed(item) ? OUTPUT_LINES_IF_FAILED : OUTPUT_LINES, options)]
}

/** All of a command, and all that is kept of what it printed, for reading. */
export function outputLines(item: Command, { columns, theme }: Pick<BlockOptions, 'columns' | 'theme'>): string[] {
  return commandLines(item, { columns, theme, full: true })
}

/** A command as a person would type it, behind a `$`; if not in full, its first lines. */
export function promptLines(command: string, { columns, theme, full }: BlockOptions): string[] {
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
