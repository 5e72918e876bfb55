import type { ScreenCell } from '../tests/support/emulator-screen.ts'

/** Puts another text where a path of this machine stands; what comes after it in the row stays where it was. */
export function replaceInRow(row: readonly ScreenCell[], pattern: RegExp, text: string): ScreenCell[] {
  const shown = row.map(cell => (cell.width === 0 ? '' : [...(cell.chars || ' ')][0])).join('')
  const match = pattern.exec(shown)
  const first = match && row[match.index]
  // Counted in cells: rows with wide characters before the path are left as they are.
  if (!match || !first || shown.length !== row.length || text.length > match[0].length) return [...row]
  const after = match.index + match[0].length
  const gap = shown.slice(after).search(/ {2,}|$/) + after
  const missing = match[0].length - text.length
  const put = [...text].map(chars => ({ ...first, chars, width: 1 }))
  const blank = Array.from({ length: missing }, (): ScreenCell => ({ ...(row[gap] ?? first), chars: '', width: 1 }))
  return [...row.slice(0, match.index), ...put, ...row.slice(after, gap), ...blank, ...row.slice(gap)]
}
