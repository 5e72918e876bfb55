import { wrapLine } from '../cells.ts'
import type { Theme } from '../theme.ts'
import { underPrefix } from './under-prefix.ts'

/** What a reviewer did, told apart from what the agent does: behind a line at its side, or for a reader below a word. */
export function reviewerLines(
  { columns, theme }: { columns: number; theme: Theme },
  draw: (columns: number) => string[],
): string[] {
  if (theme.symbols) return underPrefix({ first: theme.paint('dim', '┃ '), repeats: true, columns }, draw)
  const lines = draw(columns)
  return lines.length === 0 ? [] : [...wrapLine('reviewer:', columns), ...lines]
}
