import { CHIP } from './chips.ts'
import { nextBoundary, previousBoundary } from './graphemes.ts'

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
