import { widthOf } from '../cells.ts'
import { safeText } from '../safe-text.ts'
import { type Chips, isChip } from './chips.ts'
import { graphemesOf } from './graphemes.ts'
import { caretLine, type Place, type Text } from './text.ts'

/** A character as it is shown: what stands for it, in how many cells, and where it begins in its line. */
interface Shown {
  readonly shown: string
  readonly width: number
  readonly start: number
  /** Why it is not shown as it is: a chip by its label, a character that would steer the terminal by its name. */
  readonly as: 'itself' | 'chip' | 'name'
}

/** A row of the screen that a line, or a part of it, takes. `end` is where the next one begins (UTF-16 units). */
export interface VisualRow {
  readonly start: number
  readonly end: number
  readonly cells: readonly Shown[]
}

/**
 * The rows (at least one) that a line takes in so many columns, at least 2: broken behind white space where a word does
 * not fit, else inside it, never inside a character. Widths are of grapheme clusters, as kitty, WezTerm, Ghostty, iTerm2
 * and Windows Terminal count them: an emoji joined of several takes two cells.
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
    // A break can leave more behind than fits: a label is as wide as a row.
    while (width > columns) finish(breakAt > 0 ? breakAt : row.length - 1)
    if (next.shown === ' ' || next.shown === TAB) breakAt = row.length
  }
  finish(row.length)
  return rows
}

const TAB = '  '
// A space between two words of which the first one ends with the row.
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
  // A character with so many marks that it is wider than the screen is not one that anybody reads.
  if (measured.as === 'itself') return { shown: '?', width: 1, as: 'name' }
  return { shown: cut(measured.shown, columns), width: columns, as: 'name' }
}

const MOST_MEASURED = 4_096
const measured = new Map<string, Omit<Shown, 'start'>>()

/** Measuring takes most of the time of drawing what is not ASCII, and a text has few different characters. */
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

// Longer than the longest joined emoji; what a character with thousands of marks takes is not kept.
const LONGEST_MEASURED = 40

function cut(label: string, columns: number): string {
  return label.length <= columns ? label : `${label.slice(0, columns - 1)}…`
}

/** Which row of a line the caret is in, and in which cell of it. A caret between two rows is in the lower one. */
export function caretIn(rows: readonly VisualRow[], column: number): { index: number; x: number } {
  const below = rows.findIndex(({ end }) => column < end)
  const index = below === -1 ? rows.length - 1 : below
  const cells = rows[index]?.cells ?? []
  return { index, x: cells.reduce((x, each) => (each.start < column ? x + each.width : x), 0) }
}

/** The place one row further up (-1) or down (1) and the cell that such moves keep to, or null beyond the text. */
export function vertically(
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

/** The last place of a row that is not behind a cell; its end belongs to the row below if there is one. */
function columnAt({ cells, start, end }: VisualRow, goal: number, continues: boolean): number {
  let x = 0
  for (const each of cells) {
    if (x + each.width > goal) return each.start
    x += each.width
  }
  return continues ? (cells.at(-1)?.start ?? start) : end
}
