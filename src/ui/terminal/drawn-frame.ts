import stringWidth from 'string-width'
import { widthOf } from '../cells.ts'

/** The live region as it was last written to the terminal. */
export interface DrawnFrame {
  lines: readonly string[]
  /** Where the cursor was left, counted from the frame's first cell; null: at the start of the row below the frame. */
  caret: { x: number; y: number } | null
  /** How wide and high the terminal was. */
  columns: number
  rows: number
}

/**
 * What a terminal that gets narrower does to rows that no longer fit: it breaks them in two, it does so with all but
 * the row of the cursor (xterm.js), or it cuts them.
 */
export type Narrowing = 'breaks' | 'breaks-but-caret-row' | 'cuts'

/** What the terminal of this environment does; most that are in use break rows. */
export function narrowingOf(env: Readonly<Record<string, string | undefined>>): Narrowing {
  const { TERM = '' } = env
  if (TERM.startsWith('tmux') || env.TMUX !== undefined) return 'breaks'
  if (env.TERM_PROGRAM === 'vscode') return 'breaks-but-caret-row'
  if (env.XTERM_VERSION !== undefined || env.STY !== undefined) return 'cuts'
  return /^(?:linux|screen|rxvt|vt\d|dumb|cygwin)/.test(TERM) ? 'cuts' : 'breaks'
}

/** How many rows further down in the frame than it was left the cursor is, now that the terminal is of this size. */
export function addedRows(
  { lines, caret, columns: before, rows: rowsBefore }: DrawnFrame,
  { columns, rows }: { columns: number; rows: number },
  narrowing: Narrowing,
): number {
  if (columns >= before || columns < 1 || narrowing === 'cuts') return 0
  const addedBy = (some: readonly string[]) => some.reduce((sum, line) => sum + rowsOf(line, before, columns) - 1, 0)
  const added = addedBy(caret ? lines.slice(0, caret.y) : lines)
  if (!caret) return added
  // Such a terminal moves the cursor down for the rows below it too; one that gets lower has dropped those first.
  if (narrowing === 'breaks-but-caret-row') return added + (rows < rowsBefore ? 0 : addedBy(lines.slice(caret.y + 1)))
  const isBroken = rowsOf(lines[caret.y] ?? '', before, columns) > 1
  return added + (isBroken ? Math.floor(caret.x / columns) : 0)
}

/** How many rows down from the cursor the first one below the frame is. */
export function rowsBelow({ lines, caret }: DrawnFrame): number {
  return caret ? Math.max(0, lines.length - caret.y) : 0
}

/** A line that was cut at `before` columns takes so many rows of `columns`; no wide character is broken in two. */
function rowsOf(line: string, before: number, columns: number): number {
  const text = line.trimEnd()
  const width = Math.min(widthOf(text), before)
  if (width <= columns) return 1
  if (width === text.length) return Math.ceil(width / columns)
  let [rows, column, used] = [1, 0, 0]
  for (const { segment } of GRAPHEMES.segment(text.replace(SEQUENCES, ''))) {
    const cells = stringWidth(segment)
    if (used + cells > before) break
    used += cells
    if (column + cells > columns) [rows, column] = [rows + 1, 0]
    column += cells
  }
  return rows
}

const GRAPHEMES = new Intl.Segmenter()
const ESC = String.fromCharCode(0x1b)
const SEQUENCES = new RegExp(`${ESC}\\[[\\d;:]*m|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')
