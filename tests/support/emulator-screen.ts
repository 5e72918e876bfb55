import type { IBuffer, IBufferCell, Terminal } from '@xterm/headless'

/** What stands in one cell. */
export interface ScreenCell {
  chars: string
  /** 0 for the right half of a wide character. */
  width: number
  /** `default`, one of the 256 colours by its number, or `#rrggbb`. */
  fg: Colour
  bg: Colour
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  inverse: boolean
  strikethrough: boolean
}

export type Colour = 'default' | number | `#${string}`

/** The rows that are seen, without the blanks at their ends. */
export function visibleRows(terminal: Terminal): string[] {
  const { active } = terminal.buffer
  return rows(active, active.baseY, active.baseY + terminal.rows)
}

/** What has scrolled out of the screen and the screen, of the normal buffer. */
export function allRows(terminal: Terminal): string[] {
  return rows(terminal.buffer.normal, 0, terminal.buffer.normal.length)
}

/** A cell of the screen, counted from 0 at the top left. */
export function cellAt(terminal: Terminal, x: number, y: number): ScreenCell {
  const { active } = terminal.buffer
  const cell = active.getLine(active.baseY + y)?.getCell(x)
  if (!cell) throw new Error(`There is no cell ${x}, ${y} on a screen of ${terminal.cols}x${terminal.rows}.`)
  return {
    chars: cell.getChars(),
    width: cell.getWidth(),
    fg: colour(cell.isFgDefault(), cell.isFgRGB(), cell.getFgColor()),
    bg: colour(cell.isBgDefault(), cell.isBgRGB(), cell.getBgColor()),
    ...attributes(cell),
  }
}

function rows(buffer: IBuffer, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => buffer.getLine(from + i)?.translateToString(true) ?? '')
}

function colour(isDefault: boolean, isRgb: boolean, value: number): Colour {
  if (isDefault) return 'default'
  return isRgb ? `#${value.toString(16).padStart(6, '0')}` : value
}

function attributes(cell: IBufferCell) {
  return {
    bold: cell.isBold() !== 0,
    dim: cell.isDim() !== 0,
    italic: cell.isItalic() !== 0,
    underline: cell.isUnderline() !== 0,
    inverse: cell.isInverse() !== 0,
    strikethrough: cell.isStrikethrough() !== 0,
  }
}
