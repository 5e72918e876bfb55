import { safeText, widthOf } from '../../words/cells.ts'
import { type Chips, isChip } from './chips.ts'
import { caretLine, graphemesOf, type Place, type Text } from './text.ts'

/** A grapheme cluster as it is shown: `shown` in `width` cells; `start` is its offset in the line (UTF-16 units). */
interface Shown {
  readonly shown: string
  readonly width: number
  readonly start: number
  /** `chip`: shown by its label; `name`: a character that would control the terminal, shown by its name. */
  readonly as: 'itself' | 'chip' | 'name'
}

/** A row of the screen, which shows a line or a part of it. `end`: the offset at which the next row starts (UTF-16 units). */
export interface VisualRow {
  readonly start: number
  readonly end: number
  readonly cells: readonly Shown[]
}

/**
 * The rows (at least one) of a line wrapped to `columns` cells, at least 2: after white space, or inside a word that is
 * wider than a row, never inside a grapheme cluster. Widths are of clusters, as kitty, WezTerm, Ghostty, iTerm2 and Windows
 * Terminal count them: a joined emoji takes two cells.
 */
export function visualRows(line: string, columns: number, chips: Chips): VisualRow[] {
  const rows: VisualRow[] = []
  let row: Shown[] = []
  let width = 0
  let breakAt = 0
  const finish = (count: number) => {
    const rest = row.slice(count)
    const start = row[0]?.start ?? 0
    rows.push({ start, end: rest[0]?.start ?? line.length, cells: row.slice(0, count) })
    row = rest
    width = rest.reduce((sum, each) => sum + each.width, 0)
    breakAt = 0
  }
  for (const next of shownOf(line, columns, chips)) {
    const each = width === columns && next.shown === ' ' && row.at(-1)?.shown !== '' ? { ...next, ...HANGING } : next
    row.push(each)
    width += each.width
    // The rest after a break may still be too wide: a label is as wide as a row.
    while (width > columns) finish(breakAt > 0 ? breakAt : row.length - 1)
    if (next.shown === ' ' || next.shown === TAB) breakAt = row.length
  }
  finish(row.length)
  return rows
}

const TAB = '  '
// A space behind a word that ends with the row takes no cell.
const HANGING = { shown: '', width: 0 }
const PLAIN = /^[ -~]$/

function* shownOf(line: string, columns: number, chips: Chips): Generator<Shown> {
  let start = 0
  for (const grapheme of graphemesOf(line)) {
    if (PLAIN.test(grapheme)) yield { shown: grapheme, width: 1, start, as: 'itself' }
    else yield { ...special(grapheme, columns, chips), start }
    start += grapheme.length
  }
}

function special(grapheme: string, columns: number, chips: Chips): Omit<Shown, 'start'> {
  if (isChip(grapheme)) {
    const label = chips.get(grapheme)?.label ?? ''
    return { shown: cut(label, columns), width: Math.min(label.length, columns), as: 'chip' }
  }
  const measured = measure(grapheme)
  if (measured.width <= columns) return measured
  // A cluster with enough combining marks is wider than the screen.
  if (measured.as === 'itself') return { shown: '?', width: 1, as: 'name' }
  return { shown: cut(measured.shown, columns), width: columns, as: 'name' }
}

const MOST_MEASURED = 4_096
const measured = new Map<string, Omit<Shown, 'start'>>()

/** Memoized: measuring dominates the time for drawing non-ASCII text, which has few different clusters. */
function measure(grapheme: string): Omit<Shown, 'start'> {
  const known = measured.get(grapheme)
  if (known !== undefined) return known
  const shown = safeText(grapheme)
  const fresh = {
    shown,
    width: widthOf(shown),
    as: shown === grapheme || grapheme === '\t' ? 'itself' : 'name',
  } as const
  if (measured.size >= MOST_MEASURED) measured.clear()
  if (grapheme.length <= LONGEST_MEASURED) measured.set(grapheme, fresh)
  return fresh
}

// Longer than the longest joined emoji; a cluster with thousands of marks is not memoized.
const LONGEST_MEASURED = 40

function cut(label: string, columns: number): string {
  return label.length <= columns ? label : `${label.slice(0, columns - 1)}…`
}

/** The row of a line that the caret is in, and its cell there. Between two rows it is in the lower one. */
export function caretIn(rows: readonly VisualRow[], column: number): { index: number; x: number } {
  const below = rows.findIndex(({ end }) => column < end)
  const index = below === -1 ? rows.length - 1 : below
  const cells = rows[index]?.cells ?? []
  return { index, x: cells.reduce((x, each) => (each.start < column ? x + each.width : x), 0) }
}

/**
 * The place one row up (-1) or down (1), and the column of cells that such moves keep to (`goal`, null for the caret's own);
 * null beyond the text.
 */
export function placeBeside(
  text: Text,
  direction: -1 | 1,
  columns: number,
  chips: Chips,
  goal: number | null,
): { place: Place; goal: number } | null {
  const rows = visualRows(caretLine(text), columns, chips)
  const at = caretIn(rows, text.column)
  const kept = goal ?? at.x
  const within = rows[at.index + direction]
  if (within !== undefined) {
    return {
      place: { row: text.row, column: columnAt(within, kept, at.index + direction < rows.length - 1) },
      goal: kept,
    }
  }
  const next = text.row + direction
  const line = text.lines[next]
  if (line === undefined) return null
  const others = visualRows(line, columns, chips)
  const index = direction === 1 ? 0 : others.length - 1
  const row = others[index]
  if (row === undefined) return null
  return { place: { row: next, column: columnAt(row, kept, index < others.length - 1) }, goal: kept }
}

/** The last offset of a row at or before a cell; a row's end belongs to the row below if there is one. */
function columnAt({ cells, start, end }: VisualRow, goal: number, continues: boolean): number {
  let x = 0
  for (const each of cells) {
    if (x + each.width > goal) return each.start
    x += each.width
  }
  return continues ? (cells.at(-1)?.start ?? start) : end
}
