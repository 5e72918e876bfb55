import { liveItemLines } from '../blocks/live-item-lines.ts'
import { cutLine } from '../cells.ts'
import type { Theme } from '../theme.ts'
import type { LiveItem } from './live-board.ts'

/** A place for the lines of what runs. */
export interface LiveLinesPlace {
  columns: number
  /** The most lines. */
  rows: number
  theme: Theme
  /** Unix time, ms. */
  now: number
}

/** Rows that what is not looked at most gets, if it wants them: what it is, and its last line. */
const MODEST_ROWS = 2

/**
 * What codex does just now, the latest last, in at most `rows` lines: each has a line if there are enough, and the
 * latest message or command gets the most of them.
 */
export function liveLines(items: readonly LiveItem[], { columns, rows, theme, now }: LiveLinesPlace): string[] {
  if (rows <= 0) return []
  const linesOf = (live: LiveItem, most: number) => liveItemLines(live, { columns, theme, rows: most, now })
  // More than one line for each would only push another out.
  const looked = items.slice(-rows).map(live => ({ live, lines: linesOf(live, rows) }))
  const seen = looked.filter(({ lines }) => lines.length > 0)
  const isCut = items.length > looked.length && rows > 2
  const shares = sharesOf(seen, isCut ? rows - 1 : rows)
  const shown = seen.flatMap(({ live, lines }, i) => {
    const share = shares[i] ?? 0
    if (lines.length <= share) return lines
    return share === 0 ? [] : linesOf(live, share).slice(0, share)
  })
  if (!isCut) return shown
  const left = items.length - shares.filter(share => share > 0).length
  return [theme.paint('dim', cutLine(`${theme.symbols ? '… ' : ''}${left} more running`, columns)), ...shown]
}

interface Seen {
  live: LiveItem
  lines: readonly string[]
}

/** How many rows each gets. */
function sharesOf(seen: readonly Seen[], rows: number): number[] {
  const shares = seen.map(() => 0)
  let left = rows
  const give = (at: number, most: number) => {
    const more = Math.max(0, Math.min(left, Math.min(most, seen[at]?.lines.length ?? 0) - (shares[at] ?? 0)))
    shares[at] = (shares[at] ?? 0) + more
    left -= more
  }
  const latestFirst = seen.map((_, at) => at).reverse()
  const main = seen.findLastIndex(({ live }) => live.item.kind === 'agent-message' || live.item.kind === 'command')
  for (const at of latestFirst) give(at, 1)
  give(main, Math.ceil(rows / 2))
  for (const at of latestFirst) give(at, MODEST_ROWS)
  give(main, rows)
  for (const at of latestFirst) give(at, rows)
  return shares
}
