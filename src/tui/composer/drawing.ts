import { cutLine, oneLine, padLine, safeText, widthOf } from '../../words/cells.ts'
import type { Theme } from '../terminal/theme.ts'
import type { HistorySearch, TextBuffer } from './buffer.ts'
import type { Popup, SlashCommand } from './completion.ts'
import type { ComposerSnapshot } from './composer.ts'
import { caretIn, type VisualRow, visualRows } from './keys.ts'
import { caretLine, keepEnd, scrolled } from './text.ts'

/** The field as it is drawn, in at least one row: the text behind its prompt, or the search of the history. */
export function composerLines(snapshot: ComposerSnapshot, frame: Frame & { prompt?: string }): Drawn {
  if (snapshot.search !== null) return searchLine(snapshot.search, frame)
  return textLines(snapshot.buffer, { ...frame, prompt: frame.prompt ?? (frame.theme.symbols ? PROMPT : '> ') })
}

function searchLine({ query, texts, index }: HistorySearch, { columns, theme }: Frame): Drawn {
  const label = query !== '' && index === null ? '(nothing found) ' : '(search) '
  // The end of a long query is what is being typed.
  const asked = keepEnd(`${label}${safeText(query)}`, Math.max(1, columns - 1))
  const match = index === null ? '' : oneLine(texts[index] ?? '', columns)
  const line = cutLine(`${asked}: ${match}`, columns)
  const painted = line.startsWith(asked) ? theme.paint('accent', asked) + line.slice(asked.length) : line
  return { lines: [painted], caret: { x: widthOf(asked), y: 0 } }
}

/** Where something is drawn: never wider or higher than told. */
export interface Frame {
  columns: number
  maxRows: number
  theme: Theme
}

/** Rows for the terminal, and the cell of the caret among them if there is one to be shown. */
export interface Drawn {
  lines: string[]
  caret: { x: number; y: number } | null
}

/** What stands before the text if nothing else is told. */
export const PROMPT = '› '

/** How many columns the text itself has, beside the prompt and a last cell for a caret behind a full row. */
export function textColumns(columns: number, prompt: string): number {
  return Math.max(2, columns - widthOf(prompt) - 1)
}

/** A text with its caret behind a prompt; the prompt's place in the first and last row tells of more above and below. */
export function textLines(
  { text, chips }: TextBuffer,
  { columns, maxRows, theme, prompt }: Frame & { prompt: string },
): Drawn {
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

/** How many of the rows above and below the caret's are shown: it stays in the middle as far as there are rows. */
function windowAround(above: number, below: number, maxRows: number): [up: number, down: number] {
  const others = Math.max(0, maxRows - 1)
  const up = Math.min(above, others - Math.min(below, Math.floor(others / 2)))
  return [up, Math.min(below, others - up)]
}

function gutter(prompt: string, isFirst: boolean, more: { above: boolean; below: boolean }, theme: Theme): string {
  if (!more.above && !more.below) return isFirst ? theme.paint('accent', prompt) : ' '.repeat(widthOf(prompt))
  const [up, down, both] = theme.symbols ? ['↑', '↓', '↕'] : ['^', 'v', '|']
  const mark = more.above && more.below ? both : more.above ? up : down
  // The first row of all keeps its prompt: that there is more below is told by the last.
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

/** What is offered for the word at the caret, a row for each; none if nothing is. */
export function popupLines({ popup }: ComposerSnapshot, { columns, maxRows, theme }: Frame): string[] {
  if (popup === null) return []
  const { from, to } = scrolled(popup.options.length, popup.selected, maxRows)
  return rowsOf(popup, from, to, columns, theme)
}

function rowsOf(popup: Popup, from: number, to: number, columns: number, theme: Theme): string[] {
  if (popup.kind === 'commands') {
    const options = popup.options.slice(from, to)
    const names = Math.max(...popup.options.map(({ name }) => widthOf(name))) + 3
    return options.map((command, at) => commandRow(command, names, at + from === popup.selected, columns, theme))
  }
  // The end of a path tells more of it than its beginning.
  return popup.options.slice(from, to).map((path, at) => {
    const isSelected = at + from === popup.selected
    return painted(
      `${mark(isSelected, theme)}${keepEnd(oneLine(path, 4_096), Math.max(1, columns - 2))}`,
      isSelected,
      columns,
      theme,
    )
  })
}

function commandRow(command: SlashCommand, names: number, isSelected: boolean, columns: number, theme: Theme): string {
  const name = `${mark(isSelected, theme)}${padLine(`/${command.name}`, names)}`
  const note = command.note === null ? '' : ` (${oneLine(command.note, 200)})`
  return painted(`${name}${oneLine(command.description, 400)}${note}`, isSelected, columns, theme)
}

function painted(row: string, isSelected: boolean, columns: number, theme: Theme): string {
  const line = cutLine(row, columns)
  return isSelected ? theme.paint('selected', line) : line
}

/** What stands before an option. */
export function mark(isSelected: boolean, theme: Theme): string {
  if (!isSelected) return '  '
  return theme.symbols ? '❯ ' : '> '
}
