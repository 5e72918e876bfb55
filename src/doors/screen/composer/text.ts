import { formatNumber } from '../../../tell/words/numbers.ts'

/** A position in a text: its line, and the UTF-16 units before it in that line. */
export interface Place {
  readonly row: number
  readonly column: number
}

/** A text of one or more lines without newlines, and its caret, which is never inside a grapheme cluster. */
export interface Text extends Place {
  readonly lines: readonly string[]
}

/** An empty text. */
export const EMPTY_TEXT: Text = { lines: [''], row: 0, column: 0 }

/** Whether the text is empty. */
export function isEmpty({ lines }: Text): boolean {
  return lines.length === 1 && lines[0] === ''
}

/** The line with the caret. */
export function caretLine({ lines, row }: Text): string {
  return lines[row] ?? ''
}

/** Whether the caret is at the end of its line. */
export function isAtLineEnd(text: Text): boolean {
  return text.column === caretLine(text).length
}

/** Inserts a text, which may have newlines, before the caret. */
export function insertAt(text: Text, added: string): Text {
  const line = caretLine(text)
  const [before, after] = [line.slice(0, text.column), line.slice(text.column)]
  const pieces = added.split('\n')
  const last = pieces.length - 1
  const column = (last === 0 ? text.column : 0) + (pieces[last] ?? '').length
  pieces[0] = before + (pieces[0] ?? '')
  pieces[last] += after
  const lines = last === 0 ? text.lines.with(text.row, pieces[0] ?? '') : splice(text.lines, text.row, 1, pieces)
  return settle({ lines, row: text.row + last, column })
}

// `Array#splice` cannot take 100,000 lines as arguments.
function splice(lines: readonly string[], at: number, count: number, added: readonly string[]): string[] {
  return lines.slice(0, at).concat(added, lines.slice(at + count))
}

/** Moves the caret out of a cluster: an inserted character may join its neighbours (a combining mark, half a flag). */
function settle(text: Text): Text {
  const line = caretLine(text)
  if (text.column === 0) return text
  const column = nextBoundary(line, previousBoundary(line, text.column))
  return column === text.column ? text : { ...text, column }
}

/** Removes the text between the caret and another place. */
export function removeTo(text: Text, other: Place): { text: Text; removed: string } {
  const [from, to] = isBefore(other, text) ? [other, text] : [text, other]
  const [first, last] = [text.lines[from.row] ?? '', text.lines[to.row] ?? '']
  const removed =
    from.row === to.row
      ? first.slice(from.column, to.column)
      : [first.slice(from.column), ...text.lines.slice(from.row + 1, to.row), last.slice(0, to.column)].join('\n')
  const joined = first.slice(0, from.column) + last.slice(to.column)
  const lines = splice(text.lines, from.row, to.row - from.row + 1, [joined])
  return { text: settle({ lines, row: from.row, column: from.column }), removed }
}

function isBefore(one: Place, other: Place): boolean {
  return one.row < other.row || (one.row === other.row && one.column < other.column)
}

/** The same text with the caret at the nearest valid place. */
export function placeCaret(text: Text, { row, column }: Place): Text {
  const inside = Math.max(0, Math.min(row, text.lines.length - 1))
  const line = text.lines[inside] ?? ''
  return settle({ lines: text.lines, row: inside, column: Math.max(0, Math.min(column, line.length)) })
}

/** The end of the text. */
export function endOf({ lines }: Text): Place {
  return { row: lines.length - 1, column: lines.at(-1)?.length ?? 0 }
}

/** One character to the left; before a line, the end of the one above. */
export function left(text: Text): Place {
  const { row, column } = text
  if (column > 0) return { row, column: previousBoundary(caretLine(text), column) }
  return row === 0 ? text : { row: row - 1, column: text.lines[row - 1]?.length ?? 0 }
}

/** One character to the right; behind a line, the start of the one below. */
export function right(text: Text): Place {
  const { row, column, lines } = text
  const line = caretLine(text)
  if (column < line.length) return { row, column: nextBoundary(line, column) }
  return row === lines.length - 1 ? text : { row: row + 1, column: 0 }
}

/** The start of the caret's line. */
export function lineStart({ row }: Text): Place {
  return { row, column: 0 }
}

/** The end of the caret's line. */
export function lineEnd(text: Text): Place {
  return { row: text.row, column: caretLine(text).length }
}

/** The start of the word before the caret. `kind` matches the characters of a word. */
export function wordLeft(text: Text, kind: RegExp = WORD): Place {
  let { row } = text
  let before = caretLine(text).slice(0, text.column)
  while (row > 0 && !kind.test(before)) {
    row -= 1
    before = text.lines[row] ?? ''
  }
  let start = 0
  for (const { part, at } of wordsOf(before, kind)) if (part !== '') start = at
  return { row, column: start }
}

/** The end of the word behind the caret. */
export function wordRight(text: Text): Place {
  let { row, column } = text
  while (row < text.lines.length - 1 && !WORD.test((text.lines[row] ?? '').slice(column))) {
    row += 1
    column = 0
  }
  const line = text.lines[row] ?? ''
  for (const { part, at } of wordsOf(line.slice(column), WORD)) {
    if (part !== '') return { row, column: column + at + part.length }
  }
  return { row, column: line.length }
}

// A word for Alt+B and the like: letters, digits and their marks, or a chip.
const WORD = /[\p{L}\p{N}\p{M}_\u{100000}-\u{10FFFD}]/u

/** The characters of a word for Ctrl+W: all but white space. */
export const SPACED_WORD = /\S/u

/** The words of a part of a line; a chip is a word of its own. */
function* wordsOf(piece: string, kind: RegExp): Generator<{ part: string; at: number }> {
  const words = new RegExp(`(?:(?!${CHIP.source})${kind.source})+|${CHIP.source}`, 'gu')
  for (const match of piece.matchAll(words)) yield { part: match[0], at: match.index }
}

/** The grapheme clusters of a line; a chip is one. */
export function* graphemesOf(line: string): Generator<string> {
  if (PLAIN.test(line)) return yield* line
  // A combining mark after a chip would join it.
  for (const piece of line.split(CHIP)) {
    if (isChip(piece)) yield piece
    else for (const { segment } of SEGMENTER.segment(piece)) yield segment
  }
}

const PLAIN = /^[ -~]*$/
const SEGMENTER = new Intl.Segmenter()

/** The end of the cluster at a column of a line (UTF-16 units). */
function nextBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.min(column + 1, line.length)
  let end = 0
  for (const grapheme of graphemesOf(line)) {
    end += grapheme.length
    if (end > column) return end
  }
  return line.length
}

/** The start of the cluster before a column of a line (UTF-16 units). */
export function previousBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.max(column - 1, 0)
  let start = 0
  for (const grapheme of graphemesOf(line)) {
    if (start + grapheme.length >= column) return start
    start += grapheme.length
  }
  return start
}

/** A text as the field takes it: newlines as LF, no control characters but them and tabs, no lone surrogates. */
export function cleanText(text: string): string {
  const lines = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  return lines.toWellFormed().replace(CONTROLS, '')
}

// Every control character but newline and tab.
const CONTROLS = /[^\n\t\P{Cc}]+/gu

/** A pasted text that is shown and edited as one character: `text` is sent, `label` is shown. */
interface Chip {
  readonly text: string
  readonly label: string
}

/** The chips of a field by their placeholder, a private-use character of plane 16. */
export type Chips = ReadonlyMap<string, Chip>

/** Whether a text begins with the placeholder of a chip. */
export function isChip(text: string): boolean {
  const code = text.codePointAt(0) ?? 0
  return code >= FIRST && code <= LAST
}

/** Matches the placeholder of a chip, to split a line at them or to replace them. */
export const CHIP = /([\u{100000}-\u{10FFFD}])/gu

/** A text with every placeholder character that was typed or pasted turned into a chip of itself, so that it is sent as it is. */
export function escapePlaceholders(text: string, chips: Chips): { text: string; chips: Chips } {
  if (!MAY_BE_CHIP.test(text)) return { text, chips }
  let all = chips
  const escaped = text.replace(CHIP, character => {
    const label = `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}>`
    const added = addChip(all, { text: character, label })
    all = added.chips
    return added.text
  })
  return { text: escaped, chips: all }
}

// The high surrogates of plane 16.
const MAY_BE_CHIP = /[\uDBC0-\uDBFF]/

/** The chip for a large text (more than 10 lines or 2,000 characters); null for any other. */
export function foldLarge(text: string): Chip | null {
  const lines = countLines(text)
  if (lines <= MOST_LINES && text.length <= MOST_CHARS) return null
  const [count, noun] = lines > MOST_LINES ? [lines, 'lines'] : [text.length, 'characters']
  return { text, label: `[${formatNumber(count)} ${noun} pasted]` }
}

const MOST_LINES = 10
const MOST_CHARS = 2_000

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/**
 * The chips with one more (or with the equal one that they hold already), and its placeholder as `text`. Beyond 10,000 chips the
 * text is lost: the placeholder is U+FFFD.
 */
export function addChip(chips: Chips, chip: Chip): { text: string; chips: Chips } {
  let next = FIRST
  for (const [character, { text, label }] of chips) {
    if (text === chip.text && label === chip.label) return { text: character, chips }
    next = Math.max(next, (character.codePointAt(0) ?? 0) + 1)
  }
  if (chips.size >= MOST_CHIPS) return { text: '\ufffd', chips }
  const character = String.fromCodePoint(next)
  return { text: character, chips: new Map([...chips, [character, chip]]) }
}

const MOST_CHIPS = 10_000
const FIRST = 0x100000
const LAST = 0x10fffd

/** A text with the placeholders replaced by the texts of their chips. */
export function expandChips(text: string, chips: Chips): string {
  return MAY_BE_CHIP.test(text) ? text.replace(CHIP, character => chips.get(character)?.text ?? '') : text
}
