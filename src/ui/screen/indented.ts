import { wrapLine } from '../cells.ts'

/** A line in rows that all begin as far in as the first; a list's sign counts as its indent, and so do short columns. */
export function indented(line: string, columns: number): string[] {
  const indent = /^(?:\S+ {2,}\S+ {2,}|\s*(?:[-•✔✘!?→]\s+)?)/.exec(line)?.[0].length ?? 0
  if (indent === 0 || indent > columns / 2) return wrapLine(line, columns)
  const [first = '', ...more] = wrapLine(line.slice(indent), columns - indent)
  return [line.slice(0, indent) + first, ...more.map(row => ' '.repeat(indent) + row)]
}
