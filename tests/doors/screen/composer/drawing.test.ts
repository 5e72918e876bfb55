import xterm from '@xterm/headless'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { EMPTY_BUFFER, paste, type } from '../../../../src/doors/screen/composer/buffer.ts'
import { Composer } from '../../../../src/doors/screen/composer/composer.ts'
import { composerLines, popupLines } from '../../../../src/doors/screen/composer/drawing.ts'
import { graphemesOf, placeCaret } from '../../../../src/doors/screen/composer/text.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { measureAsTodaysTerminals } from '../../../support/emulator-widths.ts'
import { press, PLAIN_THEME as theme, write } from './press.ts'

const terminal = new xterm.Terminal({ cols: 40, rows: 12, allowProposedApi: true, scrollback: 0 })
measureAsTodaysTerminals(terminal)
afterAll(() => terminal.dispose())

const coloured = { ...theme, paint: (_role: unknown, text: string) => `\u001b[1;36m${text}\u001b[0m` }

async function screenOf(lines: readonly string[], columns: number) {
  terminal.reset()
  terminal.resize(columns, 12)
  await new Promise<void>(resolve => terminal.write(lines.join('\r\n'), resolve))
  return terminal.buffer.active
}

const CHARACTERS = [
  'a',
  'b',
  ' ',
  '世',
  'e\u0301',
  '👩‍👩‍👧',
  '👍🏽',
  '🇨🇭',
  '🫠',
  '❤️',
  '한',
  '\t',
  '\u202e',
  '\n',
  'wörd',
  'もじ',
]

test('the caret is in the cell of its character, whatever the text is made of, and no row is too wide', async () => {
  const texts = fc.array(fc.constantFrom(...CHARACTERS, 'PASTE'), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(
      texts,
      fc.integer({ min: 8, max: 40 }),
      fc.integer({ min: 1, max: 10 }),
      fc.nat(),
      fc.nat(),
      async (pieces, columns, maxRows, row, column) => {
        let buffer = pieces.reduce(
          (all, piece) => (piece === 'PASTE' ? paste(all, 'x\n'.repeat(20)) : type(all, piece)),
          EMPTY_BUFFER,
        )
        const line = buffer.text.lines[row % buffer.text.lines.length] ?? ''
        buffer = {
          ...buffer,
          text: placeCaret(buffer.text, { row: row % buffer.text.lines.length, column: column % (line.length + 1) }),
        }
        const { lines, caret } = composerLines(
          { buffer, search: null, popup: null },
          { columns, maxRows, theme: coloured },
        )
        expect(lines.length).toBeLessThanOrEqual(maxRows)
        for (const each of lines) expect(widthOf(each)).toBeLessThan(columns)
        const screen = await screenOf(lines, columns)
        expect(screen.cursorY).toBe(lines.length - 1)
        const [under = ''] = graphemesOf(line.slice(buffer.text.column))
        const cell = screen.getLine(caret?.y ?? -1)?.getCell(caret?.x ?? -1)
        expect(cell).toBeDefined()
        const shown = cell?.getChars() ?? ''
        if (under === '' || under === ' ') expect(shown.trim()).toBe('')
        else if (under === '\t') expect(shown).toBe(' ')
        else if (under === '\u202e') expect(shown).toBe('<')
        else expect(shown).toBe(buffer.chips.has(under) ? '[' : under)
      },
    ),
  )
})

function open(): Composer {
  return new Composer({ keymap: new Keymap(), searchFiles: async () => [] })
}

function shown(composer: Composer, columns = 20, maxRows = 5): string[] {
  const { lines, caret } = composerLines(composer.snapshot(), { columns, maxRows, theme })
  if (caret === null) return lines
  const line = lines[caret.y] ?? ''
  return lines.with(caret.y, `${line.slice(0, caret.x)}|${line.slice(caret.x)}`)
}

test('words are kept whole, and a row that is full leaves room for the caret', () => {
  const composer = open()
  write(composer, 'hello world of composers')
  expect(shown(composer, 14)).toEqual(['› hello world', '  of ', '  composers|'])
  composer.setText('x'.repeat(17))
  expect(shown(composer)).toEqual([`› ${'x'.repeat(17)}|`])
})

test('an empty field is its prompt and the caret', () => {
  expect(shown(open(), 40, 1)).toEqual(['› |'])
})

test('a long text scrolls around the caret and tells where there is more', () => {
  const composer = open()
  composer.setText(Array.from({ length: 30 }, (_, line) => `line ${line}`).join('\n'))
  expect(shown(composer, 20, 3)).toEqual(['↑ line 27', '  line 28', '  line 29|'])
  press(composer, 'up', 'up', 'up')
  expect(shown(composer, 20, 3)).toEqual(['↑ line 25', '  line 26|', '↓ line 27'])
  expect(shown(composer, 20, 1)).toEqual(['↕ line 26|'])
})

test('a chip is shown by its label, and characters that would steer the terminal by their names', () => {
  const composer = open()
  composer.paste('line\n'.repeat(312))
  write(composer, ' a\u202eb')
  expect(shown(composer, 60)).toEqual(['› [312 lines pasted] a<U+202E>b|'])
  expect(shown(composer, 16)).toEqual(['› [312 lines p…', '  a<U+202E>b|'])
})

test('without symbols the prompt and the marks are ASCII', () => {
  const composer = open()
  composer.setText('a\nb\nc\nd')
  press(composer, 'up')
  const plain = { ...theme, symbols: false }
  expect(composerLines(composer.snapshot(), { columns: 20, maxRows: 1, theme: plain }).lines).toEqual(['| c'])
  expect(composerLines(composer.snapshot(), { columns: 20, maxRows: 4, theme: plain }).lines[0]).toBe('> a')
})

test('a search shows what is looked for and what was found, on one line', () => {
  const composer = open()
  composer.setHistory(['mend\nthe build of everything'])
  press(composer, 'ctrl+r')
  expect(shown(composer, 40)).toEqual(['(search) |: '])
  write(composer, 'me')
  expect(shown(composer, 40)).toEqual(['(search) me|: mend ⏎ the build of…'])
  write(composer, 'x'.repeat(60))
  expect(shown(composer, 40)).toEqual([`…${'x'.repeat(38)}|…`])
})

test('the popup shows the chosen option among its neighbours, each on one row', () => {
  const composer = open()
  composer.setCommands(
    ['alpha', 'beta', 'gamma', 'delta'].map(name => ({
      name,
      description: `The ${name}\u0007 command`,
      note: name === 'beta' ? 'soon' : null,
    })),
  )
  write(composer, '/')
  press(composer, 'down')
  expect(popupLines(composer.snapshot(), { columns: 60, maxRows: 2, theme })).toEqual([
    '  /alpha  The alpha␇ command',
    '❯ /beta   The beta␇ command (soon)',
  ])
  press(composer, 'down')
  expect(popupLines(composer.snapshot(), { columns: 12, maxRows: 1, theme })).toEqual(['❯ /gamma  T…'])
  press(composer, 'escape')
  expect(popupLines(composer.snapshot(), { columns: 60, maxRows: 2, theme })).toEqual([])
})

test('of a long path its end is shown', async () => {
  const composer = new Composer({ keymap: new Keymap(), searchFiles: async () => ['a/very/long/path/to/file.ts'] })
  write(composer, '@f')
  await Promise.resolve()
  expect(popupLines(composer.snapshot(), { columns: 14, maxRows: 5, theme })).toEqual(['❯ …/to/file.ts'])
})
