import { widthOf } from '../cells.ts'

// Narrower than this, what is inside of something is not moved in any further.
const NARROWEST = 8

/** What stands before the first of some lines, and if it `repeats` before the others too, which else have spaces. */
interface Prefix {
  first: string
  repeats?: boolean
  columns: number
}

/** Lines behind a prefix, drawn in the columns that are left of it; alone where it leaves too few. */
export function underPrefix({ first, repeats, columns }: Prefix, draw: (columns: number) => string[]): string[] {
  const width = widthOf(first)
  if (columns - width < NARROWEST) return draw(columns)
  const spaces = ' '.repeat(width)
  return draw(columns - width).map((line, i) => {
    if (i === 0 || repeats) return first + line
    return line === '' ? '' : spaces + line
  })
}
