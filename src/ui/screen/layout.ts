/** The rows that change in place at the bottom of the terminal, and the cell of the caret among them. */
export interface Frame {
  /** Each at most as wide as the terminal. */
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** Lines in which a person types. */
export interface Input {
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** The parts of a frame, from top to bottom; each draws at most the rows it is given. */
export interface Parts {
  /** What happens just now, or the start screen; takes what the others leave. */
  main(rows: number): readonly string[]
  /** What was opened above the composer; null if nothing is. */
  panel: ((rows: number) => readonly string[]) | null
  progress(): string | null
  header(rows: number): readonly string[]
  /** `isDialog`: it may be as high as the frame. */
  input: { isDialog: boolean; draw(rows: number): Input }
  hint(): string | null
}

/** Below these heights of a frame, parts are left out or drawn smaller. */
const ROWS_FOR_HINT = 6
const ROWS_FOR_TWO_HEADER_LINES = 14
const ROWS_FOR_PROGRESS = 18
const ROWS_FOR_SPACE = 14

/**
 * Shares the rows of a frame among its parts. It stays below the height of the terminal, so that nothing of it is ever
 * scrolled away and left behind. Pure.
 */
export function layOut(parts: Parts, terminalRows: number): Frame {
  const rows = Math.max(1, terminalRows - 1)
  const header = parts.header(rows >= ROWS_FOR_TWO_HEADER_LINES ? 2 : 1).slice(0, rows >= 3 ? 2 : 0)
  const hint = rows >= ROWS_FOR_HINT ? parts.hint() : null
  const fixed = header.length + (hint === null ? 0 : 1)
  const forInput = parts.input.isDialog ? rows - fixed : Math.min(rows - fixed, Math.floor(rows / 3))
  const input = parts.input.draw(Math.max(1, forInput))
  let left = Math.max(0, rows - fixed - input.lines.length)
  const progress = rows >= ROWS_FOR_PROGRESS && left > 0 ? parts.progress() : null
  if (progress !== null) left -= 1
  const panel = parts.panel === null ? [] : parts.panel(Math.min(left, Math.ceil((left * 2) / 3))).slice(0, left)
  left -= panel.length
  const space = rows >= ROWS_FOR_SPACE && left > 2 && header.length > 0 ? 1 : 0
  const main = parts.main(left - space).slice(0, left - space)
  const above = [...main, ...(space ? [''] : []), ...panel, ...(progress === null ? [] : [progress])]
  const top = above.length + header.length
  return {
    lines: [...above, ...header, ...input.lines, ...(hint === null ? [] : [hint])],
    caret: input.caret && { x: input.caret.x, y: top + input.caret.y },
  }
}
