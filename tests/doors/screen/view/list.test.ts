import { expect, test } from 'vitest'
import { slashCommands } from '../../../../src/doors/screen/host/slash.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import type { FullView, Stage } from '../../../../src/doors/screen/view/full-view.ts'
import { pointersIn } from '../../../../src/doors/screen/view/full-view.ts'
import { KeyOverlay } from '../../../../src/doors/screen/view/key-overlay.ts'
import { ListView } from '../../../../src/doors/screen/view/list.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { cpuMs } from '../../../support/cpu-time.ts'
import { promise } from '../../../support/promise.ts'
import { typed } from '../pager/keys.ts'

const theme = openTheme({ theme: 'plain', env: {}, reader: false })

/** What a view asks of the stage that shows it. */
class TestStage implements Stage {
  isClosed = false
  copied: string | null = null
  opened: FullView[] = []
  open(view: FullView) {
    this.opened.push(view)
  }
  close() {
    this.isClosed = true
  }
  leaveFor(action: () => void) {
    this.isClosed = true
    action()
  }
  changed() {}
  async lend(action: () => Promise<void>) {
    await action()
  }
  start(action: Promise<void>) {
    void action
  }
  copy(text: string) {
    this.copied = text
    return true
  }
}

interface Fruit {
  id: string
  name: string
}

function listOf(fruits: Fruit[], search: 'typed' | 'asked' = 'asked') {
  const stage = new TestStage()
  const opened: string[] = []
  const view = new ListView<Fruit>({
    title: () => 'Fruit',
    noun: 'fruit',
    theme,
    keymap: new Keymap(),
    rows: () => fruits,
    columns: [
      { head: 'Id', cell: ({ id }) => id, most: 8 },
      { head: 'Name', cell: ({ name }) => name },
      { head: 'Letters', cell: ({ name }) => String(name.length), most: 7, align: 'right', from: 60 },
    ],
    textOf: ({ name }) => name,
    idOf: ({ id }) => id,
    empty: 'There is none.',
    open: ({ id }) => void opened.push(id),
    actions: {
      copy_here: (row, to) => {
        if (row !== null) to.copy(row.id)
        return 'copied'
      },
    },
    search,
    hints: () => ['Enter opens', 'q back'],
  })
  const lines = (columns = 60, rows = 10) => view.frame({ columns, rows }).lines.map(line => line.trimEnd())
  lines()
  const press = (...names: string[]) => {
    for (const name of names) for (const each of typed(name)) view.press(each, stage)
    return lines()
  }
  return { view, stage, opened, lines, press }
}

const FRUITS: Fruit[] = ['apple', 'banana', 'cherry', 'date', 'elderberry', 'fig', 'grape', 'honeydew'].map(
  (name, at) => ({
    id: `f${at}`,
    name,
  }),
)

test('a list shows its rows in columns, and Enter opens the chosen one', () => {
  const { lines, press, opened } = listOf(FRUITS)
  expect(lines()).toEqual([
    'Fruit · 8 fruits',
    '  Id  Name                                           Letters',
    '› f0  apple                                                5',
    '  f1  banana                                               6',
    '  f2  cherry                                               6',
    '  f3  date                                                 4',
    '  f4  elderberry                                          10',
    '  f5  fig                                                  3',
    '  f6  grape                                                5',
    '1 more below · Enter opens · q back',
  ])
  expect(press('down', 'end')[8]).toBe('› f7  honeydew                                             8')
  press('return')
  expect(opened).toEqual(['f7'])
})

test('j and k move in a list, and are typed where the letters search', () => {
  const { press } = listOf(FRUITS)
  expect(press('j', 'j', 'k')[3]).toMatch(/^› f1 {2}banana/)
  expect(press('/', 'j').at(-1)).toMatch(/^\/j /)
  expect(listOf(FRUITS, 'typed').press('j', 'k').at(-1)).toMatch(/^› jk /)
})

test('/ shows only what has the text, Enter keeps it, and going back shows all again before it leaves', () => {
  const { press, stage, opened } = listOf(FRUITS)
  const found = press('/', 'berry')
  expect(found[0]).toBe('Fruit · 1 of 8 fruits')
  expect(found[2]).toContain('elderberry')
  expect(found.at(-1)).toContain('/berry')
  press('return', 'return')
  expect(opened).toEqual(['f4'])
  expect(press('q')[0]).toBe('Fruit · 8 fruits')
  expect(stage.isClosed).toBe(false)
  press('q')
  expect(stage.isClosed).toBe(true)
})

test('a palette searches with the first letter that is typed, and Esc closes it', () => {
  const { press, stage, opened } = listOf(FRUITS, 'typed')
  press('q')
  expect(stage.isClosed).toBe(false)
  press('ctrl+u', 'grp', 'return')
  expect(opened).toEqual(['f6'])
  press('escape', 'escape')
  expect(stage.isClosed).toBe(true)
})

promise('O74', 'A list keeps its choice while rows come and go')
test('the choice stays on its row while others come and go, and moves on when its own has gone', () => {
  const rows = [...FRUITS]
  const { press, lines } = listOf(rows)
  press('down', 'down')
  rows.unshift({ id: 'new', name: 'apricot' })
  expect(lines().find(line => line.startsWith('›'))).toContain('cherry')
  rows.splice(
    rows.findIndex(({ name }) => name === 'cherry'),
    1,
  )
  expect(lines().filter(line => line.startsWith('›'))).toHaveLength(1)
})

test('of the keys in the last line the way out is the last to go', () => {
  const { lines, press } = listOf(FRUITS)
  expect(lines(20).at(-1)).toBe('Enter opens · q back')
  expect(lines(19).at(-1)).toBe('q back')
  press('/')
  expect(lines(24).at(-1)).toBe('/   Esc shows all')
})

test('a key for a row does what it says, and the last line tells it', () => {
  const { press, stage } = listOf(FRUITS)
  expect(press('down', 'y').at(-1)).toBe('copied')
  expect(stage.copied).toBe('f1')
})

test('a click chooses, another opens, and the wheel moves', () => {
  const { view, stage, lines, opened } = listOf(FRUITS)
  view.point({ kind: 'press', x: 3, y: 4 }, stage)
  expect(lines()[4]).toContain('› f2')
  view.point({ kind: 'press', x: 3, y: 4 }, stage)
  expect(opened).toEqual(['f2'])
  view.point({ kind: 'wheel', rows: 3, x: 0, y: 0 }, stage)
  expect(lines().find(line => line.startsWith('›'))).toContain('fig')
})

test.each([
  ['\x1b[<0;4;5M', '', [{ kind: 'press', x: 3, y: 4 }], ''],
  ['\x1b[<0;4;5m', '', [], ''],
  ['\x1b[<64;1;1M', '', [{ kind: 'wheel', rows: -3, x: 0, y: 0 }], ''],
  ['\x1b[<65;300;100M', '', [{ kind: 'wheel', rows: 3, x: 299, y: 99 }], ''],
  ['\x1b[<2;1;1M', '', [], ''],
  ['a\x1b[<64;1;1Mb\x1b[<64;1;1M', 'ab', Array(2).fill({ kind: 'wheel', rows: -3, x: 0, y: 0 }), ''],
  ['q\x1b[<0;4', 'q', [], '\x1b[<0;4'],
  ['q\x1b[A\x1b', 'q\x1b[A\x1b', [], ''],
])('what a terminal sends of its mouse is read, and taken out of the keys: %j', (sent, text, pointers, rest) => {
  expect(pointersIn(sent)).toEqual({ text, pointers, rest })
})

test.each([
  [20, 5],
  [1, 1],
  [40, 10],
  [200, 50],
])('5,000 hostile rows fit a terminal of %i columns and %i rows, and are searched without a wait', (columns, rows) => {
  const many = Array.from({ length: 5_000 }, (_, at) => ({
    id: `s${at}`,
    name: `\x1b[31m漢字 ${at}\n\x07 of a long night`,
  }))
  const { view, press } = listOf(many)
  const started = cpuMs()
  press('/', '4999', 'return')
  const { lines } = view.frame({ columns, rows })
  expect(cpuMs() - started).toBeLessThan(5_000)
  expect(lines).toHaveLength(rows)
  for (const line of lines) {
    expect(line).not.toMatch(/\p{Cc}/u)
    if (columns > 2) expect(widthOf(line)).toBeLessThanOrEqual(columns)
  }
})

test('an empty list says so', () => {
  expect(listOf([]).lines()[2]).toBe('  There is none.')
})

test('the overlay of keys has two columns on 80x24, scrolls to its end, and fits every terminal', () => {
  const stage = new TestStage()
  const commands = [{ name: 'doctor', description: 'Check the setup', note: null }]
  const overlay = new KeyOverlay({ keymap: new Keymap(), theme, commands })
  const first = overlay.frame({ columns: 80, rows: 24 }).lines
  expect(first[0]).toBe('In the field')
  expect(first.join('\n')).toMatch(/Ctrl\+X .*Ctrl\+T|Ctrl\+C .*Ctrl\+L/s)
  expect(first.at(-1)).toMatch(/^\d+ more below · ↓ ↑ scroll · q back/)
  for (const each of typed('end')) overlay.press(each, stage)
  expect(overlay.frame({ columns: 80, rows: 24 }).lines.join('\n')).toContain('/doctor')
  for (const [columns, rows] of [
    [20, 5],
    [40, 10],
    [120, 40],
    [3, 2],
  ] as const) {
    const { lines } = overlay.frame({ columns, rows })
    expect(lines).toHaveLength(rows)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
  }
  for (const each of typed('?')) overlay.press(each, stage)
  expect(stage.isClosed).toBe(true)
})

test('the overlay fits 60 rows of 120 columns, with each key once in a group, and the commands by name', () => {
  const commands = slashCommands({ login: null, showsSession: true })
  const { lines } = new KeyOverlay({ keymap: new Keymap(), theme, commands }).frame({ columns: 120, rows: 60 })
  expect(lines.at(-1)?.trimEnd()).toBe('↓ ↑ scroll · q back')
  expect(lines.join('\n').match(/^ {2}Tab /gm)).toHaveLength(1)
  for (const { name } of commands) expect(lines.join('\n')).toContain(`/${name}`)
})

test('the overlay says what Enter and Tab do as they are set', () => {
  const rows = (enter: 'queue' | 'tell') =>
    new KeyOverlay({ keymap: new Keymap(undefined, enter), theme, commands: [] }).frame({ columns: 80, rows: 24 }).lines
  expect(rows('queue')[1]).toMatch(/^ {2}Enter +Start, or queue as the next /)
  expect(rows('queue')[2]).toMatch(/^ {2}Tab +Tell the agent; if the /)
  expect(rows('tell')[1]).toMatch(/^ {2}Enter +Start, or tell the agent /)
  expect(rows('tell')[2]).toMatch(/^ {2}Tab +Queue as the next; if the /)
})

test('the overlay cuts no key and no meaning, and a list opens it at the keys of lists', () => {
  const overlay = new KeyOverlay({ keymap: new Keymap(), theme, commands: [] })
  for (const columns of [40, 80, 120]) {
    const shown = overlay.frame({ columns, rows: 300 }).lines.join('\n')
    expect(shown).not.toContain('…')
    for (const word of ['Shift+Enter', 'Alt+Enter', 'Ctrl+Backspace', 'deleted']) expect(shown).toContain(word)
  }
  const { press, stage } = listOf(FRUITS)
  press('?')
  expect(stage.opened[0]?.frame({ columns: 80, rows: 24 }).lines[0]).toBe('In lists')
})

test('where everything that is typed searches, Esc closes at once, as the last line says', () => {
  const { press, stage } = listOf(FRUITS, 'typed')
  expect(press('j', 'k').at(-1)).toContain('Esc closes')
  press('escape')
  expect(stage.isClosed).toBe(true)
})
