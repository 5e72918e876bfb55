import { cutLine, wrapLine } from '../cells.ts'
import { formatCount } from '../format-count.ts'
import { safeText } from '../safe-text.ts'
import type { Role } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { clipText } from './clip-text.ts'
import { firstRows } from './first-rows.ts'
import type { DiffRow } from './read-diff.ts'
import { underPrefix } from './under-prefix.ts'

const MOST_ROWS_OF_A_LINE = 3
const LEAST_CLIPPED = 1000

const SIGNS: Readonly<Record<'added' | 'removed' | 'same', { sign: string; role: Role }>> = {
  added: { sign: '+ ', role: 'added' },
  removed: { sign: '- ', role: 'removed' },
  same: { sign: '  ', role: 'dim' },
}

/** At most `most` rows of a diff with their line numbers, and how many are left out; long ones wrapped behind them; if not in full, at most three rows of each. */
export function diffLines(rows: readonly DiffRow[], most: number, options: BlockOptions): string[] {
  const shown = rows.slice(0, most)
  const left = rows.length - shown.length
  const digits = String(shown.reduce((highest, { number }) => Math.max(highest, number ?? 0), 0)).length
  const more = `… ${formatCount(left, 'more line')}`
  return [
    ...shown.flatMap(row => rowLines(row, digits, options)),
    ...(left > 0 ? wrapLine(options.theme.paint('dim', more), options.columns) : []),
  ]
}

function rowLines({ kind, number, text }: DiffRow, digits: number, { columns, theme, full }: BlockOptions): string[] {
  if (kind === 'gap')
    return [theme.paint('hunk', cutLine(`${' '.repeat(digits)} ${theme.symbols ? '⋮' : '...'}`, columns))]
  const looked = full ? text : clipText(text, LEAST_CLIPPED + MOST_ROWS_OF_A_LINE * columns)
  const safe = safeText(looked).replaceAll('\n', ' ')
  if (kind === 'note') return wrapLine(theme.paint('dim', safe), columns)
  const { sign, role } = SIGNS[kind]
  const first = `${theme.paint('dim', String(number ?? '').padStart(digits))} ${theme.paint(role, sign)}`
  return underPrefix({ first, columns }, inner => {
    const lines = wrapLine(safe, inner)
    return firstRows(lines, full ? lines.length : MOST_ROWS_OF_A_LINE, inner).map(line => theme.paint(role, line))
  })
}
