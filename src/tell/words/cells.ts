import sliceAnsi from 'slice-ansi'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

// More than the longest text that an event holds, and room for its colours; a terminal shows far less of a line.
const MOST_WRAPPED = 96 * 1024
const MOST_CUT = 16 * 1024

/** Returns how many terminal cells a line takes; colour and link sequences take none. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  const plain = text.includes(ESC) ? text.replace(SEQUENCES, '') : text
  return EVEN.test(plain) ? plain.length + (plain.match(WIDE)?.length ?? 0) : stringWidth(plain)
}

/**
 * Wraps a line into rows (at least one) of `columns` cells (at least 2). It breaks at spaces, and inside a word only if the
 * word is wider than a row; there after a slash, if it has one. It keeps the indentation (up to half the columns), and drops
 * spaces at row ends. Colours and links continue from row to row, and each row ends what it began. It reads at most 96 Ki
 * characters.
 */
export function wrapLine(text: string, columns: number): string[] {
  const whole = bounded(text, MOST_WRAPPED)
  if (widthOf(whole) <= columns) return [whole.trimEnd()]
  const line = openedAtSlashes(whole, columns)
  const [, styles = '', indent = ''] = INDENTED.exec(line) ?? []
  const kept = ' '.repeat(Math.min(indent.length, Math.floor(columns / 2)))
  const rest = line.slice(styles.length + indent.length)
  if (EVEN.test(rest)) return wrapEven(kept + rest, kept.length, columns)
  // The library drops spaces at a row's start, and keeps text that looks like part of the first word.
  const rows = wrapAnsi(styles + kept.replaceAll(' ', 'x') + rest, columns, { hard: true }).split('\n')
  const first = rows[0] ?? ''
  rows[0] = styles + kept + first.slice(styles.length + kept.length)
  return rows.flatMap(row => narrowed(row, columns))
}

/**
 * Returns a line unchanged if it fits into `columns` cells, else its beginning with an ellipsis. From 20 cells on, that ends
 * with a whole word, if one ends in its second half.
 */
export function cutLine(text: string, columns: number): string {
  const line = bounded(text, MOST_CUT)
  if (line === text && widthOf(text) <= columns) return text
  for (let cells = columns - 1; cells > 0; cells--) {
    const start = sliceAnsi(line, 0, cells)
    if (widthOf(start) < columns) return `${columns < LEAST_FOR_WORDS ? start : wholeWords(line, start)}…`
  }
  return columns < 1 ? '' : '…'
}

const LEAST_FOR_WORDS = 20

/** The beginning of a line without the word that it is cut in, nor spaces at its end. A path or the like is cut as it is. */
function wholeWords(line: string, start: string): string {
  const [whole, plain] = [line, start].map(each => each.replace(SEQUENCES, '')) as [string, string]
  const words = plain.replace(/\S+$/, '')
  const [word = ''] = /^\S*/.exec(whole.slice(words.length)) ?? []
  if (word === plain.slice(words.length)) return plain.trimEnd() === plain ? start : endedAt(line, plain)
  // In a script of wide characters a text has no spaces.
  const isPlain = word.length <= LONGEST_WORD && widthOf(word) <= word.length
  return isPlain && words.length >= plain.length / 2 ? endedAt(line, words) : start
}

const LONGEST_WORD = 20

function endedAt(line: string, words: string): string {
  return sliceAnsi(line, 0, widthOf(words.trimEnd()))
}

/** Returns a line in exactly `columns` cells: cut, or padded with spaces. */
export function padLine(text: string, columns: number): string {
  const line = cutLine(text, columns)
  return line + ' '.repeat(Math.max(0, columns - widthOf(line)))
}

const ESC = String.fromCharCode(0x1b)
const BEL = String.fromCharCode(0x07)
const SEQUENCES = new RegExp(`${ESC}(?:\\[[\\d;]*m|\\]8;;[^${BEL}${ESC}]*${BEL})`, 'g')
const INDENTED = new RegExp(`^((?:${ESC}\\[[\\d;]*m)*)( *)`)
const TORN_SEQUENCE = new RegExp(`${ESC}(?:\\[[\\d;]*|\\][^${BEL}${ESC}]*)?$`)
const END_ALL = `${ESC}[0m${ESC}]8;;${BEL}`

const ASCII = /^[ -~]*$/
// The library needs microseconds per character, too slow for a Chinese text. In these scripts and symbols each character is
// separate: none joins its neighbour, and none becomes an emoji.
const EVEN = /^[ -~¡-¬®-˿Α-ϿЀ-҂‐-‧←-↓␀-␤─-◼ぁ-ゖァ-ヺ、-】一-鿿가-힣！-～]*$/
const WIDE = /[ぁ-ゖァ-ヺ、-】一-鿿가-힣！-～]/g
const FIRST_WIDE = 0x3001

/** Ends of the parts of a path or URL: after a slash, but not after the root's, nor inside a character. */
const PARTS = /(?<=[^/]\/)(?=[^/\p{M}\p{Cf}])/u

/** Adds a space after each slash at which a too wide word must break. */
function openedAtSlashes(line: string, columns: number): string {
  if (!line.includes('/')) return line
  const breaks = breaksAtSlashes(line.replace(SEQUENCES, ''), columns)
  if (breaks.length === 0) return line
  let [opened, at, next] = ['', 0, 0]
  const copy = (text: string) => {
    let from = 0
    for (let place = breaks[next]; place !== undefined && place <= at + text.length; place = breaks[++next]) {
      opened += `${text.slice(from, place - at)} `
      from = place - at
    }
    opened += text.slice(from)
    at += text.length
  }
  let from = 0
  for (const { index, 0: sequence } of line.matchAll(SEQUENCES)) {
    copy(line.slice(from, index))
    opened += sequence
    from = index + sequence.length
  }
  copy(line.slice(from))
  return opened
}

/** Returns the break positions of words wider than a row, as offsets into a text without sequences. */
function breaksAtSlashes(text: string, columns: number): number[] {
  const breaks: number[] = []
  let [at, row] = [0, 0]
  for (const word of text.split(' ')) {
    const width = widthOf(word)
    const beside = row === 0 ? 0 : row + 1
    if (width > columns) row = breakWord(word, { at, row: beside, columns }, breaks)
    else row = beside + width <= columns ? beside + width : width
    at += word.length + 1
  }
  return breaks
}

/** Adds the breaks of a word that begins at the offset `at` and the cell `row` of its row; returns the cell after it. */
function breakWord(word: string, start: { at: number; row: number; columns: number }, breaks: number[]): number {
  const { columns } = start
  let { at, row } = start
  for (const part of word.split(PARTS)) {
    const cells = widthOf(part)
    if (row > 0 && row + cells > columns) {
      if (at > start.at) breaks.push(at)
      row = 0
    }
    row = row + cells <= columns ? row + cells : endOfBroken(part, row, columns)
    at += part.length
  }
  return row
}

/** Returns the cell after a text that breaks at each row end: a character of two cells does not fit into the last cell. */
function endOfBroken(text: string, start: number, columns: number): number {
  let row = start
  for (const sign of text) {
    const cells = widthOf(sign)
    row = row + cells <= columns ? row + cells : cells
  }
  return row
}

/** Cuts a line to at most `limit` characters, without torn or open sequences. */
function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text
  const start = text
    .slice(0, limit)
    .replace(/[\uD800-\uDBFF]$/, '')
    .replace(TORN_SEQUENCE, '')
  return start.includes(ESC) ? start + END_ALL : start
}

/** Returns a row unchanged, or as two if the library measured characters with marks too narrow. */
function narrowed(row: string, columns: number): string[] {
  if (widthOf(row) <= columns) return [row]
  const [start, end] = [sliceAnsi(row, 0, columns - 1), sliceAnsi(row, columns - 1)]
  if (start === '' || end === '') return unjoined(row.replace(SEQUENCES, ''), columns)
  return [...narrowed(start, columns), ...narrowed(end, columns)]
}

/** Breaks one character that has more marks than fit into a row. */
function unjoined(sign: string, columns: number): string[] {
  const rows = ['']
  for (const part of sign) {
    const row = (rows.at(-1) ?? '') + part
    if (widthOf(row) <= columns) rows[rows.length - 1] = row
    else rows.push(part)
  }
  return rows
}

function wrapEven(line: string, indent: number, columns: number): string[] {
  const rows: string[] = []
  let start = 0
  for (let end = rowEnd(line, 0, columns); end < line.length; end = rowEnd(line, start, columns)) {
    const first = start === 0 ? indent : start
    let space = end
    while (space > first && line.charAt(space) !== ' ') space--
    const cut = space > first ? space : end
    rows.push(line.slice(start, cut).trimEnd())
    start = cut
    while (line.charAt(start) === ' ') start++
  }
  if (start < line.length) rows.push(line.slice(start).trimEnd())
  return rows
}

/** Returns the end of a row from `start`, with as many characters as fit. */
function rowEnd(line: string, start: number, columns: number): number {
  let end = start
  let width = 0
  while (end < line.length) {
    width += line.charCodeAt(end) < FIRST_WIDE ? 1 : 2
    if (width > columns) break
    end++
  }
  return end
}
