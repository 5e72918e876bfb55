import { CHIP, isChip } from './chips.ts'

/** What a person takes for the characters of a line, one after the other; a chip is one. */
export function* graphemesOf(line: string): Generator<string> {
  if (PLAIN.test(line)) return yield* line
  // A mark after a chip would join it.
  for (const piece of line.split(CHIP)) {
    if (isChip(piece)) yield piece
    else for (const { segment } of SEGMENTER.segment(piece)) yield segment
  }
}

const PLAIN = /^[ -~]*$/
const SEGMENTER = new Intl.Segmenter()

/** Where the next character of a line ends, from a place in it (UTF-16 units). */
export function nextBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.min(column + 1, line.length)
  let end = 0
  for (const grapheme of graphemesOf(line)) {
    end += grapheme.length
    if (end > column) return end
  }
  return line.length
}

/** Where the character before a place in a line begins, from that place (UTF-16 units). */
export function previousBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.max(column - 1, 0)
  let start = 0
  for (const grapheme of graphemesOf(line)) {
    if (start + grapheme.length >= column) return start
    start += grapheme.length
  }
  return start
}
