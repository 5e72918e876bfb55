import { widthOf } from '../../words/cells.ts'

/** A place in a text: its line, and the UTF-16 units before it in that line. */
export interface Place {
  readonly row: number
  readonly column: number
}

/** A text of one or more lines, none with a newline in it, and the caret, which is never inside a character. */
export interface Text extends Place {
  readonly lines: readonly string[]
}

/** A text with nothing in it. */
export const EMPTY_TEXT: Text = { lines: [''], row: 0, column: 0 }

/** Whether nothing has been written. */
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

/** Puts a text, which may have newlines, at the caret, and the caret behind it. */
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

// With 100,000 lines more arguments than a call can take.
function splice(lines: readonly string[], at: number, count: number, added: readonly string[]): string[] {
  return lines.slice(0, at).concat(added, lines.slice(at + count))
}

/** What is inserted may join the character before it or behind it (a mark, a half of a flag): the caret steps out. */
function settle(text: Text): Text {
  const line = caretLine(text)
  if (text.column === 0) return text
  const column = nextBoundary(line, previousBoundary(line, text.column))
  return column === text.column ? text : { ...text, column }
}

/** Takes away what is between the caret and another place. */
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

/** The same text with the caret at a place, which is moved into the text and out of a character. */
export function placeCaret(text: Text, { row, column }: Place): Text {
  const inside = Math.max(0, Math.min(row, text.lines.length - 1))
  const line = text.lines[inside] ?? ''
  return settle({ lines: text.lines, row: inside, column: Math.max(0, Math.min(column, line.length)) })
}

/** Where the text ends. */
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

/** The start of the word before the caret. What a word is made of is told by `kind`. */
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

// A word of Alt+B and its like: letters, digits and their marks, or a chip.
const WORD = /[\p{L}\p{N}\p{M}_\u{100000}-\u{10FFFD}]/u

/** A word of Ctrl+W: whatever is not white space. */
export const SPACED_WORD = /\S/u

/** The words of a piece of a line, a chip being one by itself. */
function* wordsOf(piece: string, kind: RegExp): Generator<{ part: string; at: number }> {
  const words = new RegExp(`(?:(?!${CHIP.source})${kind.source})+|${CHIP.source}`, 'gu')
  for (const match of piece.matchAll(words)) yield { part: match[0], at: match.index }
}

/** A text that stands in the field as one thing: what is sent for it, and what is shown of it. */
export interface Chip {
  readonly text: string
  readonly label: string
}

/** The chips of a field by the character that stands for each, one of plane 16. */
export type Chips = ReadonlyMap<string, Chip>

/** Whether a text is a character that stands for a chip. */
export function isChip(text: string): boolean {
  const code = text.codePointAt(0) ?? 0
  return code >= FIRST && code <= LAST
}

/** What stands for chips, apart: to split a line at them or to replace them. */
export const CHIP = /([\u{100000}-\u{10FFFD}])/gu

/** A text as it is taken into a field: newlines as LF, no control characters but them and tabs, whole surrogate pairs. */
export function cleanText(text: string): string {
  const lines = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  return lines.toWellFormed().replace(CONTROLS, '')
}

// Every control character but newline and tab.
const CONTROLS = /[^\n\t\P{Cc}]+/gu

/** A cleaned text with every character that would pass for a chip made into one, so that it is sent as it came. */
export function withoutImpostors(text: string, chips: Chips): { text: string; chips: Chips } {
  if (!MAY_BE_CHIP.test(text)) return { text, chips }
  let all = chips
  const held = text.replace(CHIP, character => {
    const label = `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}>`
    const added = addChip(all, { text: character, label })
    all = added.chips
    return added.character
  })
  return { text: held, chips: all }
}

// The first halves of the surrogate pairs of plane 16.
const MAY_BE_CHIP = /[\uDBC0-\uDBFF]/

/** A cleaned text as a chip if it is a large one (more than 10 lines or 2,000 characters), else null. */
export function foldLarge(text: string): Chip | null {
  const lines = countLines(text)
  if (lines <= MOST_LINES && text.length <= MOST_CHARACTERS) return null
  const [count, noun] = lines > MOST_LINES ? [lines, 'lines'] : [text.length, 'characters']
  return { text, label: `[${count.toLocaleString('en-US')} ${noun} pasted]` }
}

const MOST_LINES = 10
const MOST_CHARACTERS = 2_000

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/**
 * The chips with one more, or the one with the same text that they hold already, and the character that stands for it.
 * Of more chips than anybody makes by hand nothing is kept but a replacement character.
 */
export function addChip(chips: Chips, chip: Chip): { chips: Chips; character: string } {
  let next = FIRST
  for (const [character, { text, label }] of chips) {
    if (text === chip.text && label === chip.label) return { chips, character }
    next = Math.max(next, (character.codePointAt(0) ?? 0) + 1)
  }
  if (chips.size >= MOST_CHIPS) return { chips, character: '\ufffd' }
  const character = String.fromCodePoint(next)
  return { chips: new Map([...chips, [character, chip]]), character }
}

const MOST_CHIPS = 10_000
const FIRST = 0x100000
const LAST = 0x10fffd

/** A text of the field with its chips replaced by what they stand for. */
export function expandChips(text: string, chips: Chips): string {
  return MAY_BE_CHIP.test(text) ? text.replace(CHIP, character => chips.get(character)?.text ?? '') : text
}

/** What a person takes for the characters of a line, one after the other; a chip is one. */
export function* graphemesOf(line: string): Generator<string> {
  if (PLAIN.test(line)) return yield* line
  // A mark after a chip would join it.
  for (const piece of line.split(CHIP)) {
    if (isChip(piece)) yield piece
    else for (const { segment } of SEGMENTER.segment(piece)) yield segment
  }
}

const PLAIN = /^[ -~]*$/
const SEGMENTER = new Intl.Segmenter()

/** Where the next character of a line ends, from a place in it (UTF-16 units). */
function nextBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.min(column + 1, line.length)
  let end = 0
  for (const grapheme of graphemesOf(line)) {
    end += grapheme.length
    if (end > column) return end
  }
  return line.length
}

/** Where the character before a place in a line begins, from that place (UTF-16 units). */
export function previousBoundary(line: string, column: number): number {
  if (PLAIN.test(line)) return Math.max(column - 1, 0)
  let start = 0
  for (const grapheme of graphemesOf(line)) {
    if (start + grapheme.length >= column) return start
    start += grapheme.length
  }
  return start
}

/** A line without colours as it is if it fits into `columns` cells (at least 1), else as much of its end as does, with an ellipsis. */
export function keepEnd(line: string, columns: number): string {
  if (line.length <= columns * 8 && widthOf(line) <= columns) return line
  let end = line.slice(-columns).toWellFormed()
  while (end !== '' && widthOf(end) >= columns) end = end.slice(1).toWellFormed()
  return `…${end}`
}

/** Which of `count` rows are shown where only `room` fit: the selected one is among them, in the middle if it can be. */
export function scrolled(count: number, selected: number, room: number): { from: number; to: number } {
  const shown = Math.max(0, Math.min(count, room))
  const from = Math.max(0, Math.min(selected - Math.floor(shown / 2), count - shown))
  return { from, to: from + shown }
}
