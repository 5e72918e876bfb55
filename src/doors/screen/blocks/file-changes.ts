import type { Item, ItemFileChange } from '../../../core/events/items.ts'
import { cutLine, wrapLine } from '../../../tell/words/cells.ts'
import { countLines, splitOffMemory } from '../../../tell/words/item.ts'
import { shownPath } from '../../../tell/words/names.ts'
import { formatCount, formatNumber } from '../../../tell/words/numbers.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { type BlockOptions, clipText, firstRows, underPrefix } from './layout.ts'

const MOST_FILES = 20
const ROWS_PER_FILE = 40
const MOST_ROWS = 120

/**
 * Changes of files: the path of each, the number of lines added and removed, and its diff; those of memory files on one line,
 * if not in full. Paths are relative to `directory`.
 */
export function changeLines(
  item: Extract<Item, { kind: 'file-change' }>,
  directory: string,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const { work, memory } = full ? { work: item.changes, memory: null } : splitOffMemory(item, directory)
  const changes = full ? work : work.slice(0, MOST_FILES)
  const lines: string[] = []
  let room = full ? Number.POSITIVE_INFINITY : MOST_ROWS
  let hasDiffAbove = false
  for (const change of changes) {
    const rows = rowsOf(change, full)
    const most = full ? rows.length : Math.min(room, ROWS_PER_FILE)
    const status = item.status === 'completed' ? '' : theme.paint('warning', `  → ${item.status}`)
    if (hasDiffAbove) lines.push('')
    lines.push(...wrapLine(nameOf(change, directory, theme) + lineCounts(change, theme) + status, columns))
    for (const line of diffLines(rows, most, { ...options, lines: change.lines })) lines.push(line)
    room -= Math.min(rows.length, most)
    hasDiffAbove = rows.length > 0
  }
  const left = work.length - changes.length
  if (left > 0 && hasDiffAbove) lines.push('')
  if (left > 0) lines.push(...wrapLine(theme.paint('dim', `… and ${formatCount(left, 'more file')}`), columns))
  if (memory !== null) lines.push(...(hasDiffAbove ? [''] : []), ...memoryLines(memory, options))
  return lines.length === 0 ? wrapLine('no file changed', columns) : lines
}

/** What the agent notes for itself, dimmed: the log has it in full. */
function memoryLines(memory: string, { columns, theme }: BlockOptions): string[] {
  const first = theme.symbols ? theme.paint('dim', '✎ ') : ''
  return underPrefix({ first, columns }, inner => wrapLine(theme.paint('dim', memory), inner))
}

/** The rows of a change's diff; the lines of a deleted file only in full. */
function rowsOf({ change, diff }: ItemFileChange, full: boolean): DiffRow[] {
  if (change === 'delete') return full ? readDiff(diff, 'removed') : []
  return readDiff(diff, change === 'add' ? 'added' : 'same')
}

function nameOf({ change, path, movedTo }: ItemFileChange, directory: string, theme: Theme): string {
  const named = (file: string) => theme.paint('strong', shownPath(file, directory))
  // What is not there any more cannot be opened.
  const name = change === 'add' || change === 'update' ? theme.file(named(path), path) : named(path)
  const sign = theme.symbols ? theme.paint('accent', '✎ ') : ''
  const words = { add: 'new ', delete: 'deleted ', update: theme.symbols ? '' : 'changed ', move: 'moved ' }
  const to = change === 'move' ? ` to ${theme.file(named(movedTo ?? '?'), movedTo ?? '')}` : ''
  return `${sign}${words[change]}${name}${to}`
}

function lineCounts(change: ItemFileChange, theme: Theme): string {
  if (change.change === 'delete') return ''
  const { added, removed, cut } = countLines(change)
  const counts = [
    ...(added > 0 ? [theme.paint('added', `+${formatNumber(added)}`)] : []),
    ...(removed > 0 ? [theme.paint('removed', `−${formatNumber(removed)}`)] : []),
  ]
  return counts.length === 0 ? '' : `  ${counts.join(' ')}${cut ? ' and more' : ''}`
}

const ROWS_PER_LINE = 3
const LEAST_CLIPPED = 1000

const SIGNS: Readonly<Record<'added' | 'removed' | 'same', { sign: string; role: Role }>> = {
  added: { sign: '+ ', role: 'added' },
  removed: { sign: '- ', role: 'removed' },
  same: { sign: '  ', role: 'dim' },
}

/**
 * The first `most` lines of a diff with line numbers, wrapped to three rows each (in full to any number), and how many are
 * left out. `lines`: those that are changed in the whole of a diff of which only the beginning is here.
 */
export function diffLines(
  rows: readonly DiffRow[],
  most: number,
  options: BlockOptions & { lines?: ItemFileChange['lines'] },
): string[] {
  const shown = rows.slice(0, most)
  const { lines } = options
  const changed = shown.filter(({ kind }) => kind === 'added' || kind === 'removed').length
  const left = lines === undefined ? rows.length - shown.length : lines.added + lines.removed - changed
  const digits = String(shown.reduce((highest, { number }) => Math.max(highest, number ?? 0), 0)).length
  // How many lines of the rest are as they were is not known.
  const isWhole = lines === undefined || !rows.some(({ kind }) => kind === 'same')
  const more = `… ${formatCount(left, isWhole ? 'more line' : 'more changed line')}`
  return [
    ...shown.flatMap(row => rowLines(row, digits, options)),
    ...(left > 0 ? wrapLine(options.theme.paint('dim', more), options.columns) : []),
  ]
}

function rowLines({ kind, number, text }: DiffRow, digits: number, { columns, theme, full }: BlockOptions): string[] {
  if (kind === 'gap')
    return [theme.paint('hunk', cutLine(`${' '.repeat(digits)} ${theme.symbols ? '⋮' : '...'}`, columns))]
  const looked = full ? text : clipText(text, LEAST_CLIPPED + ROWS_PER_LINE * columns)
  const safe = safeText(looked).replaceAll('\n', ' ')
  if (kind === 'note') return wrapLine(theme.paint('dim', safe), columns)
  const { sign, role } = SIGNS[kind]
  const first = `${theme.paint('dim', String(number ?? '').padStart(digits))} ${theme.paint(role, sign)}`
  return underPrefix({ first, columns }, inner => {
    const lines = wrapLine(safe, inner)
    return firstRows(lines, full ? lines.length : ROWS_PER_LINE, inner).map(line => theme.paint(role, line))
  })
}

/** A line of a diff. `gap`: unchanged lines are left out here. `note`: a remark that is not part of the file. */
interface DiffRow {
  kind: 'added' | 'removed' | 'same' | 'gap' | 'note'
  /** The line number in the file after the change, of a removed line in the file before it; null for a gap and a note. */
  number: number | null
  text: string
}

const HUNK = /^@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@/
const MORE = /^\[… \d+ more (?:characters|files?)\]$/

/** The rows of a unified diff. One without hunks is a whole file: each of its lines is of the kind `all`. */
export function readDiff(diff: string, all: 'added' | 'removed' | 'same'): DiffRow[] {
  const lines = diff.replace(/\n$/, '').split('\n')
  // The content of a file may be a diff itself.
  const start = all === 'same' ? lines.findIndex(line => HUNK.test(line)) : -1
  if (start === -1) return diff === '' ? [] : lines.map((text, i) => wholeRow(text, all, i + 1))
  const numbers = { before: 1, after: 1 }
  return lines.slice(start).flatMap((line, i) => {
    const row = rowOf(line, numbers)
    return row.kind === 'gap' && i === 0 ? [] : [row]
  })
}

function wholeRow(text: string, kind: DiffRow['kind'], number: number): DiffRow {
  return MORE.test(text) ? { kind: 'note', number: null, text } : { kind, number, text }
}

/** The next line numbers in the file before and after the change; each row advances them. */
interface LineNumbers {
  before: number
  after: number
}

function rowOf(line: string, numbers: LineNumbers): DiffRow {
  const hunk = HUNK.exec(line)
  if (hunk) {
    numbers.before = Number(hunk[1])
    numbers.after = Number(hunk[2])
    return { kind: 'gap', number: null, text: '' }
  }
  const text = line.slice(1)
  if (line.startsWith('+')) return { kind: 'added', number: numbers.after++, text }
  if (line.startsWith('-')) return { kind: 'removed', number: numbers.before++, text }
  if (line.startsWith('\\') || MORE.test(line)) return { kind: 'note', number: null, text: line }
  numbers.before++
  return { kind: 'same', number: numbers.after++, text }
}
