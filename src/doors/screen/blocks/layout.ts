import type { PlanStep } from '../../../core/state/state.ts'
import { cutLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import type { Description, Tone } from '../../../tell/words/names.ts'
import { describeOutcome } from '../../../tell/words/outcome.ts'
import type { SessionReport } from '../../../tell/words/status.ts'
import type { Role, Theme } from '../terminal/theme.ts'

/** Where lines are drawn: `columns` is the width in cells, at least 2. */
export interface LineOptions {
  columns: number
  theme: Theme
}

/** Where what changes in place is drawn: on at most `rows` lines, at the time `now` (Unix time, ms). */
export interface LiveOptions extends LineOptions {
  rows: number
  now: number
}

/** How a finished block is drawn. `full`: all of it, for the pager; otherwise cut to what the scrollback should hold. */
export interface BlockOptions extends LineOptions {
  full: boolean
  /** The agent's plan before the event, of which only what changes is told; left out: all of it is. */
  planBefore?: readonly PlanStep[]
}

/** The most characters of one text that are drawn, in full too: more than an event holds. */
export const MOST_TEXT = 72 * 1024

/** The text; if it is longer than `most` characters, its first `most` and an ellipsis. */
export function clipText(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…` : text
}

/** The first `most` rows, with an ellipsis at the end of the last if rows were left out; each at most `columns` cells wide. */
export function firstRows(rows: readonly string[], most: number, columns: number): string[] {
  const last = rows[most - 1]
  if (last === undefined || rows.length <= most) return [...rows]
  const marked = widthOf(last) < columns ? `${last}…` : cutLine(`${last}…`, columns)
  return [...rows.slice(0, most - 1), marked]
}

// Narrower than this, content is not indented any further.
const NARROWEST = 8

/** Lines behind a prefix: `first` before the first line, spaces (with `repeats`: `first` again) before the others. */
interface Prefix {
  first: string
  repeats?: boolean
  columns: number
}

/** The lines that `draw` returns for the columns beside the prefix; without the prefix where it leaves fewer than 8. */
export function underPrefix({ first, repeats, columns }: Prefix, draw: (columns: number) => string[]): string[] {
  const width = widthOf(first)
  if (columns - width < NARROWEST) return draw(columns)
  const spaces = ' '.repeat(width)
  return draw(columns - width).map((line, i) => {
    if (i === 0 || repeats) return first + line
    return line === '' ? '' : spaces + line
  })
}

/** The lines that `draw` returns for the columns beside a vertical bar; without the bar for a screen reader. */
export function behindBar({ columns, theme }: LineOptions, draw: (columns: number) => string[]): string[] {
  return underPrefix({ first: theme.symbols ? theme.paint('dim', '┃ ') : '', repeats: true, columns }, draw)
}

/**
 * What an agent says, behind a mark in the margin: `draw` returns its lines for the columns beside it. `goesOn`: the mark stands
 * above already. Without it for a screen reader.
 */
export function besideWordsMark(
  { columns, theme, goesOn = false }: LineOptions & { goesOn?: boolean },
  draw: (columns: number) => string[],
): string[] {
  if (!theme.symbols) return draw(columns)
  return underPrefix({ first: goesOn ? '  ' : theme.paint('accent', WORDS_MARK), columns }, draw)
}

/** That of a command is `$`, that of a changed file `✎`. */
const WORDS_MARK = '◆ '

/** A description as lines, with its further lines indented; `[]` for null. Painted as `role`; by its tone when that is null. */
export function describedLines(
  description: Description | null,
  { columns, theme }: LineOptions,
  role: Role | null = null,
): string[] {
  if (description === null) return []
  const { text, tone } = description
  return [
    ...wrapLine(theme.paint(role ?? roleOf(tone), text), columns),
    ...linesBelow(description, { columns, theme }, role),
  ]
}

/** The further lines of a description, indented. */
export function linesBelow(
  { more, tone, moreTone = tone }: Description,
  { columns, theme }: LineOptions,
  role: Role | null = null,
): string[] {
  const painted = (line: string) => theme.paint(role ?? roleOf(moreTone), line)
  return underPrefix({ first: '  ', columns }, inner => more.flatMap(line => wrapLine(painted(line), inner)))
}

/** The role that a tone is painted in. */
export function roleOf(tone: Tone): Role {
  return tone === 'quiet' ? 'dim' : tone
}

/** How the standing of a session is painted: `accent` where it is at work, `warning` where a person may want to look. */
export function roleOfStanding({
  outcome,
  activity,
  standing,
}: Pick<SessionReport, 'outcome' | 'activity' | 'standing'>): Role {
  if (outcome !== null) return roleOf(describeOutcome(outcome).tone)
  return standing === 'running' && activity !== 'deciding' && activity !== 'paused' ? 'accent' : 'warning'
}
