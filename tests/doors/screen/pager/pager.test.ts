import { expect, test } from 'vitest'
import { Pager } from '../../../../src/doors/screen/pager/pager.ts'
import { compileSearch, LineBuffer } from '../../../../src/doors/screen/pager/source.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import type { FullView } from '../../../../src/doors/screen/view/full-view.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { cpuMs } from '../../../support/cpu-time.ts'
import { typed } from './keys.ts'

const theme = openTheme({ theme: 'plain', env: {}, reader: false })
const SIZE = { columns: 60, rows: 11 }

function pagerOf(lines: readonly string[], at: 'start' | 'end' = 'start', keymap = new Keymap()) {
  const source = new LineBuffer<readonly string[]>({ render: event => event })
  source.add(lines)
  const pager = new Pager({ title: 'Logs', source, theme, at, keymap })
  const stage = new TestStage()
  pager.attach(stage)
  pager.frame(SIZE)
  return {
    source,
    pager,
    stage,
    press: (...names: string[]) => {
      for (const name of names) for (const each of typed(name)) pager.press(each, stage)
      return stage.isClosed
    },
    lines: (size = SIZE) => pager.frame(size).lines.slice(0, -1),
    status: (size = SIZE) => pager.frame(size).lines.at(-1)?.trimEnd() ?? '',
  }
}

/** What a pager asks of the stage that shows it. */
class TestStage {
  isClosed = false
  copied: string | null = null
  opened: FullView[] = []
  open = (view: FullView) => {
    this.opened.push(view)
  }
  changed = () => {}
  close = () => {
    this.isClosed = true
  }
  copy = (text: string) => {
    this.copied = text
    return true
  }
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`)
const first = (pager: { lines(): string[] }) => pager.lines()[0]

test.each([
  [['down'], 'line 2'],
  [['j', 'j', 'k'], 'line 2'],
  [['jjj'], 'line 4'],
  [['up'], 'line 1'],
  [[' '], 'line 11'],
  [['pagedown', 'pagedown', 'b'], 'line 11'],
  [['ctrl+d', 'ctrl+d', 'ctrl+u'], 'line 6'],
  [['G'], 'line 91'],
  [['end', 'up'], 'line 90'],
  [['end', 'home'], 'line 1'],
  [['G', 'g'], 'line 1'],
  [['>', 'pageup'], 'line 81'],
])('%j leads to the row that a person expects at the top', (names, top) => {
  const shown = pagerOf(numbered(100))
  for (const name of names) {
    shown.press(name)
    shown.lines()
  }
  expect(first(shown)).toBe(top)
})

test('at the end it follows what is added until one moves up, and again after G', () => {
  const shown = pagerOf(numbered(30), 'end')
  expect(shown.lines().at(-1)).toBe('line 30')
  shown.source.add(['line 31'])
  expect(shown.lines().at(-1)).toBe('line 31')
  expect(shown.status()).toContain('following')
  shown.press('up')
  shown.source.add(['line 32'])
  expect(shown.lines().at(-1)).toBe('line 30')
  expect(shown.status()).not.toContain('following')
  shown.press('G')
  expect(shown.lines().at(-1)).toBe('line 32')
})

test.each(['q', 'escape', 'ctrl+e', 'ctrl+c', 'ctrl+o'])('%s leaves', name => {
  expect(pagerOf(['a']).press(name)).toBe(true)
})

test('a search goes from hit to hit, forward and back, round the ends, and counts the lines', () => {
  const shown = pagerOf(numbered(100))
  shown.press('/', '5', '0', 'return')
  shown.pager.workOn()
  expect(first(shown)).toBe('line \x1b[7m50\x1b[27m')
  expect(shown.status()).toContain('50: 1 of 1')
  shown.press('/', '7', 'return')
  shown.pager.workOn()
  expect(first(shown)).toBe('line 5\x1b[7m7\x1b[27m')
  shown.press('n')
  expect(first(shown)).toBe('line 6\x1b[7m7\x1b[27m')
  expect(shown.status()).toContain('7: 7 of 19')
  shown.press('N', 'N')
  expect(first(shown)).toBe('line 4\x1b[7m7\x1b[27m')
  shown.press('/', '9', '8', 'return', 'N')
  expect(shown.status()).toContain('continued from the end')
  expect(shown.lines().join('\n')).toContain('line \x1b[7m98\x1b[27m')
  shown.press('/', 'n', 'o', 'n', 'e', 'return')
  expect(shown.status()).toContain('not found')
})

test('how to go back stays in the last line, and what was found, where the place has no room', () => {
  const shown = pagerOf(numbered(1_000))
  expect(shown.status({ columns: 20, rows: 5 })).toMatch(/^1–4 of 1,00… +q back$/)
  shown.press('/', 'line 999', 'return')
  while (shown.pager.workOn()) {}
  expect(shown.status({ columns: 40, rows: 5 })).toMatch(/^line 999: 1 of 1 +q back$/)
})

test('? shows the keys, those of the log first; a key that is given to it searches backwards', () => {
  const shown = pagerOf(numbered(100))
  shown.press('?')
  const overlay = shown.stage.opened[0]?.frame({ columns: 80, rows: 24 }).lines ?? []
  expect(overlay[0]).toBe('In the log')
  expect(overlay.join('\n')).not.toMatch(/backwards/i)
  const remapped = { preset: null, remapped: new Map([['find_back', ['\\']] as const]) }
  const other = pagerOf(numbered(100), 'start', new Keymap(remapped))
  other.press('\\', '98', 'return')
  expect(other.status()).toContain('continued from the end')
})

test('while a search is typed its letters are no commands, and Escape takes only the search back', () => {
  const shown = pagerOf(numbered(100))
  expect(shown.press('/', 'q', 'gq', 'backspace')).toBe(false)
  expect(shown.pager.frame(SIZE)).toMatchObject({ caret: { x: 3, y: 10 } })
  expect(shown.status()).toBe('/qg')
  expect(shown.press('escape')).toBe(false)
  expect(shown.press('q')).toBe(true)
})

test('letters that come at once with the key that opens a search belong to the search', () => {
  const shown = pagerOf(numbered(100))
  shown.press('/30')
  expect(shown.status()).toBe('/30')
})

test.each([
  [
    '\x1b[31mre\x1b[0md and \x1b[1mRED\x1b[22m',
    'red',
    '\x1b[31m\x1b[7mre\x1b[0m\x1b[7md\x1b[27m and \x1b[1m\x1b[7mRED\x1b[27m\x1b[22m',
  ],
  ['red and RED', 'RED', 'red and \x1b[7mRED\x1b[27m'],
  ['a.b(c)*', '.b(c)*', 'a\x1b[7m.b(c)*\x1b[27m'],
  ['\x1b]8;;https://red\x07link\x1b]8;;\x07', 'red', '\x1b]8;;https://red\x07link\x1b]8;;\x07'],
  ['\x1b[31m31\x1b[0m', '31', '\x1b[31m\x1b[7m31\x1b[27m\x1b[0m'],
  ['漢字 \ud800', '字', '漢\x1b[7m字\x1b[27m \ud800'],
  ['aaa', '\ud83d', 'aaa'],
])('in %j a search for %j marks what a person reads', (line, text, marked) => {
  expect(compileSearch(text).mark(line)).toBe(marked)
})

test('long lines are broken at the width, and a narrower window keeps the line that is at the top', () => {
  const words = (word: string) => Array.from({ length: 20 }, () => word).join(' ')
  const shown = pagerOf(['start', words('alpha'), words('beta'), ...numbered(50)])
  shown.press('down')
  expect(
    shown
      .lines()
      .slice(0, 3)
      .map(line => line.slice(0, 5)),
  ).toEqual(['alpha', 'alpha', 'beta '])
  expect(shown.lines({ columns: 20, rows: 6 })[0]).toBe('alpha alpha alpha')
  expect(shown.lines({ columns: 20, rows: 6 })).toHaveLength(5)
})

test.each([
  { columns: 40, rows: 10 },
  { columns: 10, rows: 3 },
  { columns: 1, rows: 1 },
])('a screen of %o is filled and never overfilled', size => {
  const shown = pagerOf(['漢'.repeat(100), ...numbered(100)])
  shown.press('/', 'line', 'return')
  const { lines } = shown.pager.frame(size)
  expect(lines).toHaveLength(Math.max(2, size.rows))
  if (size.columns > 2)
    for (const line of lines) expect([...line.replace(/漢/g, 'xx')].length).toBeLessThanOrEqual(size.columns + 12)
})

test('only as much as there is room for is kept, what is read stays where it is, and it is said', () => {
  const source = new LineBuffer<string>({ render: line => [line], maxChars: 40_000 })
  const pager = new Pager({ title: 'Logs', source, theme, at: 'start', keymap: new Keymap() })
  const stage = new TestStage()
  pager.attach(stage)
  for (let at = 1; at <= 4_000; at++) source.add(`line ${at}`.padEnd(10))
  pager.frame(SIZE)
  for (const each of typed('/')) pager.press(each, stage)
  for (const each of typed('line 3500')) pager.press(each, stage)
  for (const each of typed('return')) pager.press(each, stage)
  expect(pager.frame(SIZE).lines[0]).toContain('line 3500')
  for (let at = 4_001; at <= 5_500; at++) source.add(`line ${at}`.padEnd(10))
  expect(pager.frame(SIZE).lines[0]).toContain('line 3500')
  for (const each of typed('g')) pager.press(each, stage)
  expect(pager.frame(SIZE).lines.slice(0, 2)).toEqual(['… 2,048 earlier lines are not kept.', 'line 2049'])
  expect(source.line(source.count - 1)).toBe('line 5500 ')
})

test('a line of 5 MB is paged through as several, with its colours and characters whole', () => {
  const line = `\x1b[31m${'a'.repeat(16_377)}\x1b[32m😀${'b'.repeat(5_000_000)}\x1b[0m`
  const source = new LineBuffer<string>({ render: text => [text] })
  source.add(line)
  const parts = Array.from({ length: source.count }, (_, at) => source.line(at))
  expect(parts.join('')).toBe(line)
  for (const part of parts) {
    expect(part.isWellFormed()).toBe(true)
    const plain = ['\x1b[31m', '\x1b[32m', '\x1b[0m'].reduce((text, sequence) => text.replaceAll(sequence, ''), part)
    expect(plain).not.toContain('\x1b')
  }
})

test('300,000 lines are searched and paged through without a wait', () => {
  const shown = pagerOf(Array.from({ length: 300_000 }, (_, at) => `\x1b[2m12:00\x1b[22m line ${at} of a long night`))
  const started = cpuMs()
  shown.press('G')
  shown.lines()
  shown.press('g', '/', 'line 299999', 'return')
  expect(shown.lines().join('\n')).toContain('line 299999')
  while (shown.pager.workOn()) {}
  expect(shown.status()).toContain('1 of 1')
  // Measured: 0.2 s.
  expect(cpuMs() - started).toBeLessThan(5_000)
})
