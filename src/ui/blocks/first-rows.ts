import { cutLine, widthOf } from '../cells.ts'

/** The first `most` of some rows, with an ellipsis at the end of the last if there are more; each at most `columns` cells wide. */
export function firstRows(rows: readonly string[], most: number, columns: number): string[] {
  const last = rows[most - 1]
  if (last === undefined || rows.length <= most) return [...rows]
  return [...rows.slice(0, most - 1), ellipted(last, columns)]
}

function ellipted(row: string, columns: number): string {
  return widthOf(row) < columns ? `${row}…` : cutLine(`${row}…`, columns)
}
