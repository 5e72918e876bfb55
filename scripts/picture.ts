import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'

// Runs the demo in a real pseudo-terminal and writes what stands on its screen at the end as docs/demo.svg.
const COLUMNS = 112
const ROWS = 34
const CELL = { width: 8.4, height: 18 }
/** The 16 colours of a terminal, dark and light, as CSS variables. */
const PALETTE = {
  dark: {
    back: '#0d1117',
    text: '#e6edf3',
    colours: ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'],
  },
  light: {
    back: '#ffffff',
    text: '#1f2328',
    colours: ['#24292f', '#cf222e', '#116329', '#9a6700', '#0969da', '#8250df', '#1b7c83', '#6e7781'],
  },
}

const terminal = new xterm.Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true, scrollback: 10_000 })
const folder = await mkdtemp(join(tmpdir(), 'codemachine-picture-'))
const pty = spawn('node', ['dist/bin.js', 'demo', '--fast'], {
  cols: COLUMNS,
  rows: ROWS,
  env: { ...process.env, TMPDIR: folder, HOME: folder },
})
let written = Promise.resolve()
pty.onData(data => {
  written = written.then(() => new Promise<void>(resolve => terminal.write(data, resolve)))
})
const exitCode = await new Promise<number>(resolve => pty.onExit(({ exitCode }) => resolve(exitCode)))
await rm(folder, { recursive: true })
if (exitCode !== 0) throw new Error(`The demo ended with exit code ${exitCode}.`)
await written

const lines = lastRound()
await writeFile('docs/demo.svg', svg(lines))
console.log(`docs/demo.svg: ${lines.length} lines`)

interface Cell {
  text: string
  style: string
}

/** The screenful that ends with the session. */
function lastRound(): Cell[][] {
  const buffer = terminal.buffer.active
  const all = Array.from({ length: buffer.length }, (_, y) => cellsOf(y))
  const text = (line: Cell[]) => line.map(cell => cell.text).join('')
  const end = all.findLastIndex(line => /session \S+ ended/.test(text(line))) + 1
  return all.slice(Math.max(0, end - ROWS), end)
}

function cellsOf(y: number): Cell[] {
  const line = terminal.buffer.active.getLine(y)
  const runs: Cell[] = []
  for (let x = 0; line && x < COLUMNS; x++) {
    const cell = line.getCell(x)
    if (!cell || cell.getWidth() === 0) continue
    const style = [
      cell.isFgPalette() ? `c${cell.getFgColor() % 8}` : '',
      cell.isBold() ? 'bold' : '',
      cell.isDim() ? 'dim' : '',
    ]
      .filter(Boolean)
      .join(' ')
    const last = runs.at(-1)
    const text = cell.getChars() || ' '
    if (last?.style === style) last.text += text
    else runs.push({ text, style })
  }
  return runs
}

function svg(lines: readonly Cell[][]): string {
  const [width, height] = [COLUMNS * CELL.width + 32, lines.length * CELL.height + 32]
  const rows = lines.map((line, y) => {
    const spans = line
      .map(({ text, style }) => `<tspan${style ? ` class="${style}"` : ''}>${escapeXml(text)}</tspan>`)
      .join('')
    return `<text x="16" y="${(y + 1) * CELL.height + 10}" xml:space="preserve">${spans}</text>`
  })
  const theme = ({ back, text, colours }: typeof PALETTE.dark) =>
    `.back{fill:${back}}text{fill:${text}}${colours.map((colour, i) => `.c${i}{fill:${colour}}`).join('')}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="codemachine at work in a terminal">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.bold{font-weight:600}.dim{opacity:.65}${theme(PALETTE.light)}@media(prefers-color-scheme:dark){${theme(PALETTE.dark)}}</style>
<rect class="back" width="${width}" height="${height}" rx="8"/>
${rows.join('\n')}
</svg>
`
}

function escapeXml(text: string): string {
  return text.trimEnd() === '' ? text : text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
