import type { Frame } from './layout.ts'

/**
 * A frame of at least so many rows: what is typed in stays in its place where there is less to show above it than there
 * was before.
 */
export function atLeastAsHigh(frame: Frame, rows: number): Frame {
  const { lines, caret } = frame
  const missing = rows - lines.length
  if (missing <= 0) return frame
  const blank = Array.from({ length: missing }, () => '')
  return { lines: [...blank, ...lines], caret: caret && { x: caret.x, y: caret.y + missing } }
}

/** Whether two frames look the same. */
export function isSame(a: Frame, b: Frame): boolean {
  if (a.caret?.x !== b.caret?.x || a.caret?.y !== b.caret?.y || a.lines.length !== b.lines.length) return false
  return a.lines.every((line, at) => line === b.lines[at])
}
