import { cutLine, wrapLine } from '../cells.ts'
import type { Theme } from '../theme.ts'
import { highlightCode } from './highlight-code.ts'
import { underPrefix } from './under-prefix.ts'

const LABEL_CELLS = 30

/** A code block: its language, then its lines, moved in, painted by the rules of that language. The code is safe. */
export function codeLines(
  code: string,
  language: string,
  { columns, theme }: { columns: number; theme: Theme },
): string[] {
  const label = theme.symbols ? language : `code ${language}`.trimEnd()
  return underPrefix({ first: '  ', columns }, inner => [
    ...(label === '' ? [] : wrapLine(theme.paint('dim', cutLine(label, LABEL_CELLS)), inner)),
    ...highlightCode(code.replace(/\n+$/, ''), language, theme).flatMap(line => wrapLine(line, inner)),
  ])
}
