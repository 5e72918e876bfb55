import type { Colour, ScreenCell } from '../tests/support/emulator-screen.ts'

export type Scheme = 'light' | 'dark'

/** What is to be drawn. */
export interface Picture {
  /** Each row has a cell for each column. */
  rows: readonly (readonly ScreenCell[])[]
  columns: number
  /** Null: none is seen. */
  caret: { x: number; y: number } | null
  /** In the bar of the window. */
  title: string
  /** For those who cannot see it. */
  label: string
}

const CELL = { width: 8.4, height: 17 }
const PADDING = 14
const BAR = 30
const FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
const PALETTES = {
  dark: {
    back: '#0d1117',
    text: '#e6edf3',
    bar: '#161b22',
    edge: '#30363d',
    colours:
      '484f58 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4 6e7681 ffa198 56d364 e3b341 79c0ff d2a8ff 56d4dd f0f6fc',
  },
  light: {
    back: '#ffffff',
    text: '#1f2328',
    bar: '#f6f8fa',
    edge: '#d0d7de',
    colours:
      '24292f cf222e 116329 9a6700 0969da 8250df 1b7c83 6e7781 57606a a40e26 1a7f37 633c01 218bff a475f9 3192aa 8c959f',
  },
}

/** A window with the screen of a terminal, as an SVG without anything from elsewhere. */
export function pictureSvg(picture: Picture, scheme: Scheme): string {
  const { rows, columns, caret, title, label } = picture
  const palette = PALETTES[scheme]
  const [width, height] = [columns * CELL.width + 2 * PADDING, rows.length * CELL.height + 2 * PADDING + BAR]
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, i) => `<circle cx="${18 + i * 18}" cy="15" r="5.5" fill="${fill}"/>`,
  )
  const drawn = rows.map((row, y) => drawRow(runsOf(row), y, scheme)).filter(text => text !== '')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${height}" role="img" aria-label="${escapeXml(label)}">
<style>text{font-family:${FONT};font-size:14px;fill:${palette.text};white-space:pre}.b{font-weight:600}.d{fill-opacity:.62}.i{font-style:italic}.u{text-decoration:underline}.s{text-decoration:line-through}g rect{shape-rendering:crispEdges}</style>
<rect x=".5" y=".5" width="${round(width - 1)}" height="${height - 1}" rx="9" fill="${palette.back}" stroke="${palette.edge}"/>
<path d="M1 ${BAR}V9.5A8.5 8.5 0 0 1 9.5 1H${round(width - 9.5)}a8.5 8.5 0 0 1 8.5 8.5V${BAR}z" fill="${palette.bar}"/>
${dots.join('')}<text x="${round(width / 2)}" y="20" text-anchor="middle" class="d">${escapeXml(cut(title, columns - 16))}</text>
<g>
${drawn.join('\n')}${caret ? `\n${rect(caret.x, caret.y, 1, palette.text, ' opacity=".5"')}` : ''}
</g>
</svg>
`
}

interface Run {
  x: number
  /** In cells. */
  width: number
  text: string
  cell: ScreenCell
}

/** Neighbours that look alike together; a wide character or a block by itself, as fonts differ in how wide they are. */
function runsOf(row: readonly ScreenCell[]): Run[] {
  const runs: Run[] = []
  for (const [x, cell] of row.entries()) {
    if (cell.width === 0) continue
    const last = runs.at(-1)
    const text = cell.chars || ' '
    if (last && !standsAlone(last) && !standsAlone({ text, width: cell.width }) && looksAlike(last.cell, cell)) {
      last.text += text
      last.width += cell.width
    } else if (last && isBlock(text) && last.text.endsWith(text) && looksAlike(last.cell, cell)) {
      last.text += text
      last.width += 1
    } else {
      runs.push({ x, width: cell.width, text, cell })
    }
  }
  return runs
}

function standsAlone({ text, width }: { text: string; width: number }): boolean {
  return isBlock(text) || (width === 2 && [...text].length < 2) || (width === 2 && text.length > 2)
}

function isBlock(text: string): boolean {
  return BLOCKS[text[0] ?? ''] !== undefined
}

function looksAlike(a: ScreenCell, b: ScreenCell): boolean {
  return (['fg', 'bg', 'bold', 'dim', 'italic', 'underline', 'inverse', 'strikethrough'] as const).every(
    name => a[name] === b[name],
  )
}

function drawRow(runs: readonly Run[], y: number, scheme: Scheme): string {
  const backs: string[] = []
  const texts: string[] = []
  for (const run of runs) {
    const { fg, bg } = coloursOf(run.cell, scheme)
    if (bg !== null) backs.push(rect(run.x, y, run.width, bg))
    if (run.text.trim() === '' && !run.cell.underline) continue
    const block = BLOCKS[run.text[0] ?? '']
    if (block) backs.push(drawBlock(block, run, y, fg ?? PALETTES[scheme].text))
    else texts.push(drawText(run, fg))
  }
  const baseline = top(y) + 13
  return backs.join('') + (texts.length > 0 ? `<text y="${baseline}">${texts.join('')}</text>` : '')
}

function drawText(run: Run, fill: string | null): string {
  const { cell } = run
  const names = { b: cell.bold, d: cell.dim, i: cell.italic, u: cell.underline, s: cell.strikethrough }
  const classes = Object.entries(names).flatMap(([name, isOn]) => (isOn ? [name] : []))
  const look = (classes.length > 0 ? ` class="${classes.join(' ')}"` : '') + (fill ? ` style="fill:${fill}"` : '')
  const parts = cell.underline ? [run] : partsOf(run)
  return parts.map(({ x, text }) => `<tspan x="${left(x)}"${look}>${escapeXml(text)}</tspan>`).join('')
}

/** What stands between wide gaps is placed by itself, so that columns stay columns in any font. */
function partsOf({ x, text, width }: Run): { x: number; text: string }[] {
  if (text.length !== width) return [{ x, text }]
  return [...text.matchAll(/\S+(?: \S+)*/g)].map(match => ({ x: x + match.index, text: match[0] }))
}

/** Parts of a cell that fonts leave gaps between: left, top, width, height, each of 1. */
const BLOCKS: Record<string, readonly [number, number, number, number]> = {
  '█': [0, 0, 1, 1],
  '▀': [0, 0, 1, 0.5],
  '▄': [0, 0.5, 1, 0.5],
  '▌': [0, 0, 0.5, 1],
  '▐': [0.5, 0, 0.5, 1],
}

function drawBlock(
  [x, y, width, height]: readonly [number, number, number, number],
  run: Run,
  row: number,
  fill: string,
) {
  const isWhole = width === 1
  const across = isWhole ? run.width : width
  const at = { x: left(run.x + x), y: round(top(row) + y * CELL.height) }
  return `<rect x="${at.x}" y="${at.y}" width="${round(across * CELL.width + 0.2)}" height="${round(height * CELL.height + 0.2)}" fill="${fill}"/>`
}

function rect(x: number, y: number, width: number, fill: string, more = ''): string {
  return `<rect x="${left(x)}" y="${top(y)}" width="${round(width * CELL.width)}" height="${CELL.height}" fill="${fill}"${more}/>`
}

function left(x: number): number {
  return round(PADDING + x * CELL.width)
}

function top(y: number): number {
  return BAR + PADDING + y * CELL.height
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Null: the window's own. */
function coloursOf(cell: ScreenCell, scheme: Scheme): { fg: string | null; bg: string | null } {
  const [fg, bg] = [cssColour(cell.fg, scheme), cssColour(cell.bg, scheme)]
  const { text, back } = PALETTES[scheme]
  return cell.inverse ? { fg: bg ?? back, bg: fg ?? text } : { fg, bg }
}

const STEPS = [0, 95, 135, 175, 215, 255]

function cssColour(colour: Colour, scheme: Scheme): string | null {
  if (colour === 'default') return null
  if (typeof colour === 'string') return colour
  const named = PALETTES[scheme].colours.split(' ')[colour]
  if (named !== undefined) return `#${named}`
  if (colour >= 232) return hex(Array(3).fill(8 + (colour - 232) * 10))
  const cube = colour - 16
  return hex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level => STEPS[level] ?? 0))
}

function hex(levels: readonly number[]): string {
  return `#${levels.map(level => level.toString(16).padStart(2, '0')).join('')}`
}

function cut(text: string, length: number): string {
  const characters = [...text]
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
