import { wrapLine } from '../cells.ts'
import type { Description } from '../description.ts'
import type { BlockOptions } from './block-options.ts'
import { underPrefix } from './under-prefix.ts'

/** A question that is noted for the person: it stands out, and what belongs to it does not. */
export function askedLines({ text, more }: Description, { columns, theme }: BlockOptions): string[] {
  const sign = theme.symbols ? theme.paint('accent', '? ') : ''
  return [
    ...wrapLine(sign + theme.paint('strong', text), columns),
    ...underPrefix({ first: '  ', columns }, inner =>
      more.flatMap((line, i) => wrapLine(i === more.length - 1 ? theme.paint('dim', line) : line, inner)),
    ),
  ]
}
