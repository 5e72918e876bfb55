import { cutLine, padLine, wrapLine } from '../cells.ts'
import type { Theme } from '../theme.ts'

const NARROWEST = 24
const WIDEST = 84
// Its two sides, and the space between them and a row.
const FRAME = 4

/** What fits into a row of a card. */
export function cardRowColumns({ columns, theme }: { columns: number; theme: Theme }): number {
  return isFramed(columns, theme) ? Math.min(columns, WIDEST) - FRAME : columns
}

/** A card: a title and rows, which are painted already, in a frame; without the frame where it would be in the way. */
export function cardLines(
  { title, rows }: { title: string; rows: readonly string[] },
  { columns, theme }: { columns: number; theme: Theme },
): string[] {
  if (!isFramed(columns, theme)) {
    return [theme.paint('strong', title), ...rows].flatMap(row => wrapLine(row, columns))
  }
  const inner = cardRowColumns({ columns, theme })
  const width = inner + FRAME
  const edge = (text: string) => theme.paint('accent', text)
  const name = cutLine(title, width - 6)
  const top = padLine(`╭─ ${name} `, width - 1).replace(/ +$/, spaces => ` ${'─'.repeat(spaces.length - 1)}`)
  return [
    edge(`${top}╮`),
    ...rows.flatMap(row => wrapLine(row, inner)).map(row => `${edge('│')} ${padLine(row, inner)} ${edge('│')}`),
    edge(`╰${'─'.repeat(width - 2)}╯`),
  ]
}

function isFramed(columns: number, theme: Theme): boolean {
  return theme.symbols && columns >= NARROWEST
}
