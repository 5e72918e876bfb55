import { cutLine, padLine, widthOf } from '../../../tell/words/cells.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import type { Theme } from '../terminal/theme.ts'
import type { TextBuffer } from './buffer.ts'
import type { Popup } from './completion.ts'
import { type Chips, caretLine, graphemesOf, isChip, type Place, type Text } from './text.ts'

/** The composer's field, on at least one row: the text behind its prompt, or the search of the history. */
export function composerLines(snapshot: ComposerSnapshot, area: Area & { prompt?: string }): DrawnField {
  if (snapshot.search !== null) return searchLine(snapshot.search, area)
  return textLines(snapshot.buffer, { ...area, prompt: area.prompt ?? (area.theme.symbols ? PROMPT : '> ') })
}

function searchLine({ query, texts, index }: HistorySearch, { columns, theme }: Area): DrawnField {
  const label = query !== '' && index === null ? '(nothing found) ' : '(search) '
  // Typing happens at the end of the query.
  const asked = keepEnd(`${label}${safeText(query)}`, Math.max(1, columns - 1))
  const match = index === null ? '' : oneLine(texts[index] ?? '', columns)
  const line = cutLine(`${asked}: ${match}`, columns)
  const painted = line.startsWith(asked) ? theme.paint('accent', asked) + line.slice(asked.length) : line
  return { lines: [painted], caret: { x: widthOf(asked), y: 0 } }
}

/** The state of a composer as it is drawn. Immutable: a new object after each change. */
export interface ComposerSnapshot {
  readonly buffer: TextBuffer
  readonly search: HistorySearch | null
  /** The options for the word at the caret; null without any. */
  readonly popup: Popup | null
}

/** A reverse search through the prompts that were sent before. */
export interface HistorySearch {
  readonly query: string
  readonly texts: readonly string[]
  /** The index of the match that is shown; null for an empty query and where nothing matches. */
  readonly index: number | null
}

/** The area for a field, a popup or a picker: at most so many cells wide and rows high. */
export interface Area {
  columns: number
  maxRows: number
  theme: Theme
}

/** Rows for the terminal, and the cell of the caret among them; null where none is shown. */
export interface DrawnField {
  lines: string[]
  caret: { x: number; y: number } | null
}

/** The default prompt. */
export const PROMPT = '› '

/** The columns of the text itself: without the prompt and the last cell, which is for a caret behind a full row. */
export function textColumns(columns: number, prompt: string): number {
  return Math.max(2, columns - widthOf(prompt) - 1)
}

/** A text with its caret behind a prompt; arrows in the prompt's place in the first and last row mark hidden rows. */
export function textLines(
  { text, chips }: TextBuffer,
  { columns, maxRows, theme, prompt }: Area & { prompt: string },
): DrawnField {
  const width = textColumns(columns, prompt)
  const rowsOf = (row: number) => visualRows(text.lines[row] ?? '', width, chips)
  const own = visualRows(caretLine(text), width, chips)
  const at = caretIn(own, text.column)
  const above = own.slice(Math.max(0, at.index - maxRows), at.index)
  for (let row = text.row - 1; row >= 0 && above.length < maxRows; row -= 1)
    above.unshift(...rowsOf(row).slice(-maxRows))
  const below = own.slice(at.index + 1, at.index + 1 + maxRows)
  for (let row = text.row + 1; row < text.lines.length && below.length < maxRows; row += 1) {
    below.push(...rowsOf(row).slice(0, maxRows))
  }
  const [up, down] = windowAround(above.length, below.length, maxRows)
  const shown = [...above.slice(above.length - up), ...own.slice(at.index, at.index + 1), ...below.slice(0, down)]
  const more = { above: above.length > up, below: below.length > down }
  const lines = shown.map((row, index) => {
    const isLast = index === shown.length - 1
    return (
      gutter(prompt, index === 0, { above: index === 0 && more.above, below: isLast && more.below }, theme) +
      paintRow(row, theme)
    )
  })
  return { lines, caret: { x: widthOf(prompt) + at.x, y: up } }
}

/** How many rows above and below the caret's are shown: it is kept in the middle as far as there are rows. */
function windowAround(above: number, below: number, maxRows: number): [up: number, down: number] {
  const others = Math.max(0, maxRows - 1)
  const up = Math.min(above, others - Math.min(below, Math.floor(others / 2)))
  return [up, Math.min(below, others - up)]
}

function gutter(prompt: string, isFirst: boolean, more: { above: boolean; below: boolean }, theme: Theme): string {
  if (!more.above && !more.below) return isFirst ? theme.paint('accent', prompt) : ' '.repeat(widthOf(prompt))
  const [up, down, both] = theme.symbols ? ['↑', '↓', '↕'] : ['^', 'v', '|']
  const mark = more.above && more.below ? both : more.above ? up : down
  // The very first row keeps its prompt: the last row says that there are more below.
  return theme.paint('dim', (mark ?? '').padEnd(widthOf(prompt)).slice(0, widthOf(prompt)))
}

function paintRow({ cells }: VisualRow, theme: Theme): string {
  let line = ''
  for (let from = 0; from < cells.length; ) {
    const as = cells[from]?.as ?? 'itself'
    let to = from
    let run = ''
    while (to < cells.length && cells[to]?.as === as) run += cells[to++]?.shown ?? ''
    line += as === 'itself' ? run : theme.paint(as === 'chip' ? 'accent' : 'warning', run)
    from = to
  }
  return line
}

/** The popup with the options for the word at the caret, one a row; `[]` if no popup is open. */
export function popupLines({ popup }: ComposerSnapshot, { columns, maxRows, theme }: Area): string[] {
  if (popup === null) return []
  const count = popup.options.length
  const saysMore = count > maxRows && maxRows > 2
  const { from, to } = scrollWindow(count, popup.selected, saysMore ? maxRows - 1 : maxRows)
  const lines = optionTexts(popup, from, to, columns).map((text, at) => {
    const isSelected = at + from === popup.selected
    const line = cutLine(`${optionMark(isSelected, theme)}${text}`, columns)
    return isSelected ? theme.paint('selected', line) : line
  })
  return saysMore ? [...lines, theme.paint('dim', cutLine(`  ${moreInWords(from, count - to)}`, columns))] : lines
}

/** How many options are above and below those that are shown. */
function moreInWords(above: number, below: number): string {
  const parts = [above > 0 ? `${above} more above` : '', below > 0 ? `${below} more below` : '']
  return `… ${parts.filter(part => part !== '').join(', ')}`
}

function optionTexts(popup: Popup, from: number, to: number, columns: number): string[] {
  if (popup.kind === 'files') {
    // The end of a path tells more than its beginning.
    return popup.options.slice(from, to).map(path => keepEnd(oneLine(path, 4_096), Math.max(1, columns - 2)))
  }
  const names = Math.max(...popup.options.map(({ name }) => widthOf(name))) + 3
  return popup.options.slice(from, to).map(({ name, description, note }) => {
    const noted = note === null ? '' : ` (${oneLine(note, 200)})`
    return `${padLine(`/${name}`, names)}${oneLine(description, 400)}${noted}`
  })
}

/** The marker before an option of a popup or a picker. */
export function optionMark(isSelected: boolean, theme: Theme): string {
  if (!isSelected) return '  '
  return theme.symbols ? '❯ ' : '> '
}

/** An unpainted line; if it is wider than `columns` cells (at least 1), an ellipsis and the end of it that fits. */
function keepEnd(line: string, columns: number): string {
  if (line.length <= columns * 8 && widthOf(line) <= columns) return line
  let end = line.slice(-columns).toWellFormed()
  while (end !== '' && widthOf(end) >= columns) end = end.slice(1).toWellFormed()
  return `…${end}`
}

/** The range of `count` rows that is shown in `room` rows, with the selected one in the middle if possible. */
export function scrollWindow(count: number, selected: number, room: number): { from: number; to: number } {
  const shown = Math.max(0, Math.min(count, room))
  const from = Math.max(0, Math.min(selected - Math.floor(shown / 2), count - shown))
  return { from, to: from + shown }
}

/** A grapheme cluster as it is shown: `shown` in `width` cells; `start` is its offset in the line (UTF-16 units). */
interface Shown {
  readonly shown: string
  readonly width: number
  readonly start: number
  /** `chip`: shown by its label; `name`: a character that would control the terminal, shown by its name. */
  readonly as: 'itself' | 'chip' | 'name'
}

/** A row of the screen, which shows a line or a part of it. `end`: the offset at which the next row starts (UTF-16 units). */
interface VisualRow {
  readonly start: number
  readonly end: number
  readonly cells: readonly Shown[]
}

/**
 * The rows (at least one) of a line wrapped to `columns` cells, at least 2: after white space, or inside a word that is
 * wider than a row, never inside a grapheme cluster. Widths are of clusters, as kitty, WezTerm, Ghostty, iTerm2 and Windows
 * Terminal count them: a joined emoji takes two cells.
 */
function visualRows(line: string, columns: number, chips: Chips): VisualRow[] {
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
function caretIn(rows: readonly VisualRow[], column: number): { index: number; x: number } {
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
  const isInside = rows[at.index + direction] !== undefined
  const row = isInside ? text.row : text.row + direction
  const line = text.lines[row]
  if (line === undefined) return null
  const others = isInside ? rows : visualRows(line, columns, chips)
  const index = isInside ? at.index + direction : direction === 1 ? 0 : others.length - 1
  const to = others[index]
  return to === undefined ? null : { place: { row, column: columnAt(to, kept, index < others.length - 1) }, goal: kept }
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
