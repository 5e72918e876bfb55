import { unreachable } from '../../base/errors.ts'
import type { Item, ItemFileChange } from '../../core/events/items.ts'
import { cutLine, safeText, wrapLine } from '../../words/cells.ts'
import { shownPath } from '../../words/names.ts'
import { formatCount } from '../../words/numbers.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { type BlockOptions, clipText, firstRows, underPrefix } from './layout.ts'

const MOST_FILES = 20
const MOST_ROWS_OF_A_FILE = 40
const MOST_ROWS = 120

/** What was done to files: each with its name, how many lines came and went, and its diff. */
export function changeLines(
  item: Extract<Item, { kind: 'file-change' }>,
  directory: string,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const changes = full ? item.changes : item.changes.slice(0, MOST_FILES)
  const lines: string[] = []
  let room = full ? Number.POSITIVE_INFINITY : MOST_ROWS
  for (const change of changes) {
    const rows = rowsOf(change, full)
    const most = full ? rows.length : Math.min(room, MOST_ROWS_OF_A_FILE)
    const fate = item.status === 'completed' ? '' : theme.paint('warning', `  → ${item.status}`)
    lines.push(...wrapLine(nameOf(change, directory, theme) + counted(change, theme) + fate, columns))
    for (const line of diffLines(rows, most, options)) lines.push(line)
    room -= Math.min(rows.length, most)
  }
  const left = item.changes.length - changes.length
  if (left > 0) lines.push(...wrapLine(theme.paint('dim', `… and ${formatCount(left, 'more file')}`), columns))
  return lines.length === 0 ? wrapLine('no file changed', columns) : lines
}

/** What was in a file that is gone is of interest only where all is shown. */
function rowsOf({ change, diff }: ItemFileChange, full: boolean): DiffRow[] {
  if (change === 'delete') return full ? readDiff(diff, 'removed') : []
  return readDiff(diff, change === 'add' ? 'added' : 'same')
}

function nameOf({ change, path, movedTo }: ItemFileChange, directory: string, theme: Theme): string {
  const name = theme.paint('strong', shownPath(path, directory))
  const sign = theme.symbols ? theme.paint('accent', '✎ ') : ''
  switch (change) {
    case 'add':
      return `${sign}new ${name}`
    case 'delete':
      return `${sign}deleted ${name}`
    case 'update':
      return `${sign}${theme.symbols ? '' : 'changed '}${name}`
    case 'move':
      return `${sign}moved ${name} to ${theme.paint('strong', shownPath(movedTo ?? '?', directory))}`
    default:
      return unreachable(change)
  }
}

function counted(change: ItemFileChange, theme: Theme): string {
  if (change.change === 'delete') return ''
  const rows = rowsOf(change, true)
  const count = (kind: DiffRow['kind']) => rows.filter(row => row.kind === kind).length
  const [added, removed] = [count('added'), count('removed')]
  const cut = rows.some(row => row.kind === 'note' && row.text.startsWith('[')) ? ' and more' : ''
  const counts = [
    ...(added > 0 ? [theme.paint('added', `+${added}`)] : []),
    ...(removed > 0 ? [theme.paint('removed', `−${removed}`)] : []),
  ]
  return counts.length === 0 ? '' : `  ${counts.join(' ')}${cut}`
}

const MOST_ROWS_OF_A_LINE = 3
const LEAST_CLIPPED = 1000

const SIGNS: Readonly<Record<'added' | 'removed' | 'same', { sign: string; role: Role }>> = {
  added: { sign: '+ ', role: 'added' },
  removed: { sign: '- ', role: 'removed' },
  same: { sign: '  ', role: 'dim' },
}

/** At most `most` rows of a diff with their line numbers, and how many are left out; long ones wrapped behind them; if not in full, at most three rows of each. */
export function diffLines(rows: readonly DiffRow[], most: number, options: BlockOptions): string[] {
  const shown = rows.slice(0, most)
  const left = rows.length - shown.length
  const digits = String(shown.reduce((highest, { number }) => Math.max(highest, number ?? 0), 0)).length
  const more = `… ${formatCount(left, 'more line')}`
  return [
    ...shown.flatMap(row => rowLines(row, digits, options)),
    ...(left > 0 ? wrapLine(options.theme.paint('dim', more), options.columns) : []),
  ]
}

function rowLines({ kind, number, text }: DiffRow, digits: number, { columns, theme, full }: BlockOptions): string[] {
  if (kind === 'gap')
    return [theme.paint('hunk', cutLine(`${' '.repeat(digits)} ${theme.symbols ? '⋮' : '...'}`, columns))]
  const looked = full ? text : clipText(text, LEAST_CLIPPED + MOST_ROWS_OF_A_LINE * columns)
  const safe = safeText(looked).replaceAll('\n', ' ')
  if (kind === 'note') return wrapLine(theme.paint('dim', safe), columns)
  const { sign, role } = SIGNS[kind]
  const first = `${theme.paint('dim', String(number ?? '').padStart(digits))} ${theme.paint(role, sign)}`
  return underPrefix({ first, columns }, inner => {
    const lines = wrapLine(safe, inner)
    return firstRows(lines, full ? lines.length : MOST_ROWS_OF_A_LINE, inner).map(line => theme.paint(role, line))
  })
}

/** A line of a diff. `gap`: lines that did not change are left out before the next one. `note`: not of the file. */
export interface DiffRow {
  kind: 'added' | 'removed' | 'same' | 'gap' | 'note'
  /** Its number in the file, of a removed line in the file before. */
  number: number | null
  text: string
}

const HUNK = /^@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@/
const MORE = /^\[… \d+ more (?:characters|files?)\]$/

/** The rows of a unified diff; of one without hunks each line as `all`, which is how whole files come. */
export function readDiff(diff: string, all: 'added' | 'removed' | 'same'): DiffRow[] {
  const lines = diff.replace(/\n$/, '').split('\n')
  const start = lines.findIndex(line => HUNK.test(line))
  if (start === -1) return diff === '' ? [] : lines.map((text, i) => wholeRow(text, all, i + 1))
  const place = { before: 1, after: 1 }
  return lines.slice(start).flatMap((line, i) => {
    const row = rowOf(line, place)
    return row.kind === 'gap' && i === 0 ? [] : [row]
  })
}

function wholeRow(text: string, kind: DiffRow['kind'], number: number): DiffRow {
  return MORE.test(text) ? { kind: 'note', number: null, text } : { kind, number, text }
}

/** Where a diff has come to in the file before and after; moved on by each row. */
interface Place {
  before: number
  after: number
}

function rowOf(line: string, place: Place): DiffRow {
  const hunk = HUNK.exec(line)
  if (hunk) {
    place.before = Number(hunk[1])
    place.after = Number(hunk[2])
    return { kind: 'gap', number: null, text: '' }
  }
  const text = line.slice(1)
  if (line.startsWith('+')) return { kind: 'added', number: place.after++, text }
  if (line.startsWith('-')) return { kind: 'removed', number: place.before++, text }
  if (line.startsWith('\\') || MORE.test(line)) return { kind: 'note', number: null, text: line }
  place.before++
  return { kind: 'same', number: place.after++, text }
}
