import { widthOf } from '../cells.ts'
import type { Doing } from './words-for-doing.ts'

/** Below so many columns one line has no room for all that is said in words. */
const NARROW_COLUMNS = 60
const SEPARATOR_CELLS = 3
/** Cells for an activity and its time, which change while it works: `npm run tes… 0:12`. */
const AT_WORK = 17
/** The most that is kept for it. */
const MOST_SHARE = 0.6
/** Cells of `T2/8 · R2/20`. */
const LEAST_REST = 14

/**
 * The cells of a narrow line of `columns` for all but what goes on. As long as a session works they are always as many.
 * Null if the line is wide, or too narrow for that.
 */
export function roomBesideDoing({ kind, short, time, next }: Doing, columns: number): number | null {
  if (columns >= NARROW_COLUMNS) return null
  const still = widthOf(short) + (time === null ? 0 : widthOf(time) + 1)
  const then = next === null ? 0 : widthOf(next.split(' ', 1)[0] ?? '') + SEPARATOR_CELLS
  const now = Math.min((kind === 'at-work' ? AT_WORK : still) + then, Math.ceil(columns * MOST_SHARE))
  const room = columns - now - SEPARATOR_CELLS
  return room < LEAST_REST ? null : room
}
