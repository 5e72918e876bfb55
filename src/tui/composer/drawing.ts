import { cutLine, oneLine, padLine, safeText, widthOf } from '../../words/cells.ts'
import type { Theme } from '../terminal/theme.ts'
import type { TextBuffer } from './buffer.ts'
import type { Popup, SlashCommand } from './completion.ts'
import type { ComposerSnapshot } from './composer.ts'
import type { HistorySearch } from './history.ts'
import { caretLine } from './text.ts'
import { caretIn, type VisualRow, visualRows } from './visual-rows.ts'

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
  const { from, to } = scrollWindow(popup.options.length, popup.selected, maxRows)
  return optionRows(popup, from, to, columns, theme)
}

function optionRows(popup: Popup, from: number, to: number, columns: number, theme: Theme): string[] {
  if (popup.kind === 'commands') {
    const options = popup.options.slice(from, to)
    const names = Math.max(...popup.options.map(({ name }) => widthOf(name))) + 3
    return options.map((command, at) => commandRow(command, names, at + from === popup.selected, columns, theme))
  }
  // The end of a path tells more than its beginning.
  return popup.options.slice(from, to).map((path, at) => {
    const isSelected = at + from === popup.selected
    return paintOption(
      `${optionMark(isSelected, theme)}${keepEnd(oneLine(path, 4_096), Math.max(1, columns - 2))}`,
      isSelected,
      columns,
      theme,
    )
  })
}

function commandRow(command: SlashCommand, names: number, isSelected: boolean, columns: number, theme: Theme): string {
  const name = `${optionMark(isSelected, theme)}${padLine(`/${command.name}`, names)}`
  const note = command.note === null ? '' : ` (${oneLine(command.note, 200)})`
  return paintOption(`${name}${oneLine(command.description, 400)}${note}`, isSelected, columns, theme)
}

function paintOption(row: string, isSelected: boolean, columns: number, theme: Theme): string {
  const line = cutLine(row, columns)
  return isSelected ? theme.paint('selected', line) : line
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
