import sliceAnsi from 'slice-ansi'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

// More than the longest text that an event holds, and room for its colours; a terminal shows far less of a line.
const MOST_WRAPPED = 96 * 1024
const MOST_CUT = 16 * 1024

/** How many cells of a terminal a line takes; sequences for colours and links take none. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  const plain = text.includes(ESC) ? text.replace(SEQUENCES, '') : text
  return EVEN.test(plain) ? plain.length + (plain.match(WIDE)?.length ?? 0) : stringWidth(plain)
}

/**
 * The rows (at least one) that a line takes when it is broken at its spaces, and inside a word only where one is wider
 * than `columns`, which is at least 2; there behind a slash, if it has one. Its indentation stays (up to half the columns), spaces at the end go. Colours
 * and links go on from row to row, and each row ends what it began. At most 96 Ki characters of a line are wrapped.
 */
export function wrapLine(text: string, columns: number): string[] {
  const whole = bounded(text, MOST_WRAPPED)
  if (widthOf(whole) <= columns) return [whole.trimEnd()]
  const line = openedAtSlashes(whole, columns)
  const [, styles = '', indent = ''] = INDENTED.exec(line) ?? []
  const kept = ' '.repeat(Math.min(indent.length, Math.floor(columns / 2)))
  const rest = line.slice(styles.length + indent.length)
  if (EVEN.test(rest)) return wrapEven(kept + rest, kept.length, columns)
  // The library takes away spaces at the beginning of a row, and keeps what looks like a part of the first word.
  const rows = wrapAnsi(styles + kept.replaceAll(' ', 'x') + rest, columns, { hard: true }).split('\n')
  const first = rows[0] ?? ''
  rows[0] = styles + kept + first.slice(styles.length + kept.length)
  return rows.flatMap(row => narrowed(row, columns))
}

/** A line as it is if it fits into `columns` cells, else as much of its beginning as does, with an ellipsis. */
export function cutLine(text: string, columns: number): string {
  const line = bounded(text, MOST_CUT)
  if (line === text && widthOf(text) <= columns) return text
  for (let cells = columns - 1; cells > 0; cells--) {
    const start = sliceAnsi(line, 0, cells)
    if (widthOf(start) < columns) return `${start}…`
  }
  return columns < 1 ? '' : '…'
}

/** The same, cut behind a word where one ends in its second half. */
export function cutAtWord(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  const cut = cutLine(text, columns).slice(0, -1)
  const space = cut.lastIndexOf(' ')
  const isInWord = !/\s$/.test(cut) && !text.slice(cut.length).startsWith(' ')
  const whole = isInWord && space > cut.length / 2 ? cut.slice(0, space) : cut
  return `${whole.trimEnd()}…`
}

/** A line in exactly `columns` cells: cut, or filled up with spaces. */
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
// The library measures a character in microseconds, which is too slow for a text in Chinese. In these scripts and
// symbols each character stands for itself: none joins with its neighbour, and none is shown as an emoji.
const EVEN = /^[ -~¡-¬®-˿Α-ϿЀ-҂‐-‧←-↓␀-␤─-◼ぁ-ゖァ-ヺ、-】一-鿿가-힣！-～]*$/
const WIDE = /[ぁ-ゖァ-ヺ、-】一-鿿가-힣！-～]/g
const FIRST_WIDE = 0x3001

/** The ends of the parts of a path or URL: behind a slash, but not behind that of its root, nor inside of a sign. */
const PARTS = /(?<=[^/]\/)(?=[^/\p{M}\p{Cf}])/u

/** A line with a space behind each slash at which a word has to be broken that is wider than a row. */
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

/** Where words that are wider than a row are broken, as offsets into a text without sequences. */
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

/** Adds where a word is broken that begins at the offset `at` and the cell `row` of its row; returns the cell behind it. */
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

/** The cell behind a text that is broken where a row ends, sign by sign: one of two cells does not fit into the last one. */
function endOfBroken(text: string, start: number, columns: number): number {
  let row = start
  for (const sign of text) {
    const cells = widthOf(sign)
    row = row + cells <= columns ? row + cells : cells
  }
  return row
}

/** At most `limit` characters of a line, with no sequence torn and none left open. */
function bounded(text: string, limit: number): string {
  if (text.length <= limit) return text
  const start = text
    .slice(0, limit)
    .replace(/[\uD800-\uDBFF]$/, '')
    .replace(TORN_SEQUENCE, '')
  return start.includes(ESC) ? start + END_ALL : start
}

/** A row as it is, or in two where the library has taken signs with marks on them for narrower than they are. */
function narrowed(row: string, columns: number): string[] {
  if (widthOf(row) <= columns) return [row]
  const [start, end] = [sliceAnsi(row, 0, columns - 1), sliceAnsi(row, columns - 1)]
  if (start === '' || end === '') return unjoined(row.replace(SEQUENCES, ''), columns)
  return [...narrowed(start, columns), ...narrowed(end, columns)]
}

/** Rows of what counts as one sign, and has more marks on it than fit. */
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

/** Where a row ends that starts there, if it takes as many characters as fit. */
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
