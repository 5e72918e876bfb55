import { cutLine, widthOf, wrapLine } from '../../words/cells.ts'
import type { Description, Tone } from '../../words/names.ts'
import type { Role, Theme } from '../terminal/theme.ts'

/** Where and how a finished thing is drawn. */
export interface BlockOptions {
  /** Cells in a line; at least 2. */
  columns: number
  theme: Theme
  /** All of it, for the pager; else as much as is wanted in the terminal's scrollback. */
  full: boolean
}

/** A text as it is, or its first `most` characters and an ellipsis. */
export function clipText(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…` : text
}

/** The first `most` of some rows, with an ellipsis at the end of the last if there are more; each at most `columns` cells wide. */
export function firstRows(rows: readonly string[], most: number, columns: number): string[] {
  const last = rows[most - 1]
  if (last === undefined || rows.length <= most) return [...rows]
  return [...rows.slice(0, most - 1), ellipted(last, columns)]
}

function ellipted(row: string, columns: number): string {
  return widthOf(row) < columns ? `${row}…` : cutLine(`${row}…`, columns)
}

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

const ROLES: Readonly<Record<Tone, Role>> = {
  plain: 'plain',
  quiet: 'dim',
  strong: 'strong',
  good: 'good',
  warning: 'warning',
  bad: 'bad',
}

/** How a tone is painted. */
export function roleOf(tone: Tone): Role {
  return ROLES[tone]
}

/** A description as lines, what belongs to it moved in; none for null. In the colour of its tone, or as `role`. */
export function describedLines(
  description: Description | null,
  { columns, theme }: { columns: number; theme: Theme },
  role: Role | null = null,
): string[] {
  if (description === null) return []
  const { text, more, tone } = description
  const painted = (line: string) => theme.paint(role ?? roleOf(tone), line)
  return [
    ...wrapLine(painted(text), columns),
    ...underPrefix({ first: '  ', columns }, inner => more.flatMap(line => wrapLine(painted(line), inner))),
  ]
}

/**
 * How many characters from the start are complete blocks of Markdown, which will not change however the text goes on.
 * Looks at each line once.
 */
export function finishedPart(markdown: string): number {
  return blockStarts(markdown, false).at(-1) ?? 0
}

/** A whole Markdown text in pieces to be read one by one: what `finishedPart` would have cut off, block by block, and the rest. */
export function partsOf(markdown: string): string[] {
  const starts = [0, ...blockStarts(markdown, true)]
  return starts.map((start, i) => markdown.slice(start, starts[i + 1]))
}

const LIST_MARKER = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
// What may be seen of a list marker while it arrives.
const TORN_LIST_MARKER = /^(?:[-*+]|\d{1,10}[.)]?)$/
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/
const FENCE_IN_LIST = /^(?:(?:[-*+]|\d{1,9}[.)]) {1,9}){0,4}(`{3,}(?=[^`]*$)|~{3,})/
const HTML_ENDS: readonly (readonly [start: RegExp, end: RegExp])[] = [
  [/^ {0,3}<(?:pre|script|style|textarea)\b/i, /<\/(?:pre|script|style|textarea)>/i],
  [/^ {0,3}<!--/, /-->/],
  [/^ {0,3}<\?/, /\?>/],
  [/^ {0,3}<!\[CDATA\[/, /\]\]>/],
  [/^ {0,3}<![A-Z]/i, />/],
]

// No marker stands behind that many characters of a line.
const MARKER_CHARS = 200

/** Where blocks start that a blank line parts from what is before, so that neither changes the other. */
function blockStarts(markdown: string, isWhole: boolean): number[] {
  const starts: number[] = []
  const lines = new BlockScan()
  for (let start = 0; start < markdown.length; ) {
    const newline = markdown.indexOf('\n', start)
    const end = newline === -1 ? markdown.length : newline
    if (lines.startsBlock(markdown.slice(start, end), isWhole || newline !== -1) && start > 0) starts.push(start)
    start = end + 1
  }
  return starts
}

/** What has to be known of the lines before, to tell whether a line starts a block. */
class BlockScan {
  #fence: string | null = null
  #htmlEnd: RegExp | null = null
  #isList = false
  #isAfterBlank = true

  startsBlock(line: string, isComplete: boolean): boolean {
    if (this.#goesOn(line)) {
      this.#isAfterBlank = false
      return false
    }
    if (/^[ \t]*\r?$/.test(line)) {
      this.#isAfterBlank = true
      return false
    }
    const starts = this.#isAfterBlank && !/^[ \t]/.test(line) && !(this.#isList && mayBeItem(line, isComplete))
    if (starts) this.#isList = false
    this.#isAfterBlank = false
    this.#open(line.slice(0, MARKER_CHARS), line)
    return starts
  }

  /** Whether the line is inside of a code block or of HTML, and has no meaning of its own. */
  #goesOn(line: string): boolean {
    if (this.#fence !== null) {
      const text = line.slice(0, MARKER_CHARS).trim()
      if (text.startsWith(this.#fence) && text === text.charAt(0).repeat(text.length)) this.#fence = null
      return true
    }
    if (this.#htmlEnd === null) return false
    if (this.#htmlEnd.test(line)) this.#htmlEnd = null
    return true
  }

  #open(start: string, line: string): void {
    if (LIST_MARKER.test(start)) this.#isList = true
    this.#fence = (this.#isList ? FENCE_IN_LIST.exec(start.trim()) : FENCE.exec(start))?.[1] ?? null
    const html = HTML_ENDS.find(([opening]) => opening.test(start))
    this.#htmlEnd = html === undefined || html[1].test(line) ? null : html[1]
  }
}

/** Whether a line may be a further item of the list before it. */
function mayBeItem(line: string, isComplete: boolean): boolean {
  return LIST_MARKER.test(line) || (!isComplete && TORN_LIST_MARKER.test(line))
}
