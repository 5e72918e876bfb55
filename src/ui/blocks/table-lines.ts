import type { Tokens } from 'marked'
import { padLine, widthOf, wrapLine } from '../cells.ts'
import type { Theme } from '../theme.ts'
import { inlineLines } from './inline-lines.ts'

const GAP = 2
// A column that has to be narrower than this and than its text breaks most words.
const NARROWEST_COLUMN = 8

/**
 * A table fitted to the width: long cells are wrapped. Where that would leave columns too narrow to read, or for a
 * screen reader, each row is a list of `heading: cell`.
 */
export function tableLines(table: Tokens.Table, { columns, theme }: { columns: number; theme: Theme }): string[] {
  const header = table.header.map(cell => painted(cell, theme))
  const rows = table.rows.map(row => row.map(cell => painted(cell, theme)))
  const widths = fittedWidths([header, ...rows], columns)
  if (widths === null || !theme.symbols) return rowsAsLists(header, rows, columns)
  const draw = (cells: readonly string[]) => rowLines(cells, widths, table.align)
  const rule = widths.map(width => '─'.repeat(width)).join(' '.repeat(GAP))
  return [...draw(header), theme.paint('dim', rule), ...rows.flatMap(draw)]
}

function painted({ tokens, header }: Tokens.TableCell, theme: Theme): string {
  return inlineLines(tokens, theme, header ? ['strong'] : []).join(' ')
}

/** The width of each column; null if they cannot all be wide enough. */
function fittedWidths(rows: readonly (readonly string[])[], columns: number): number[] | null {
  const count = rows[0]?.length ?? 0
  const room = columns - GAP * (count - 1)
  if (room < count * 3) return null
  const wanted = Array.from({ length: count }, (_, i) => Math.max(1, ...rows.map(row => widthOf(row[i] ?? ''))))
  let limit = Math.max(...wanted)
  while (wanted.reduce((sum, width) => sum + Math.min(width, limit), 0) > room) limit--
  return limit < Math.min(NARROWEST_COLUMN, ...[Math.max(...wanted)])
    ? null
    : wanted.map(width => Math.min(width, limit))
}

function rowLines(cells: readonly string[], widths: readonly number[], align: Tokens.Table['align']): string[] {
  const wrapped = widths.map((width, i) => wrapLine(cells[i] ?? '', width))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, row) =>
    widths
      .map((width, i) => aligned(wrapped[i]?.[row] ?? '', width, align[i] ?? null))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
}

function aligned(text: string, width: number, align: Tokens.Table['align'][number]): string {
  const room = Math.max(0, width - widthOf(text))
  switch (align) {
    case 'right':
      return ' '.repeat(room) + text
    case 'center':
      return padLine(' '.repeat(Math.floor(room / 2)) + text, width)
    default:
      return padLine(text, width)
  }
}

function rowsAsLists(header: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  return rows.flatMap((row, i) => [
    ...(i > 0 ? [''] : []),
    ...row.flatMap((cell, column) => wrapLine(`${header[column] ?? ''}: ${cell}`, columns)),
  ])
}
