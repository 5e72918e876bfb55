import { widthOf } from '../cells.ts'

/** A line without colours as it is if it fits into `columns` cells (at least 1), else as much of its end as does, with an ellipsis. */
export function keepEnd(line: string, columns: number): string {
  if (line.length <= columns * 8 && widthOf(line) <= columns) return line
  let end = line.slice(-columns).toWellFormed()
  while (end !== '' && widthOf(end) >= columns) end = end.slice(1).toWellFormed()
  return `…${end}`
}
