import { once } from 'node:events'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { narrowingOf, TerminalOutput } from '../../../../src/doors/screen/terminal/output.ts'
import { draw } from './drawn.ts'
import { Screen } from './screen.ts'

const FINISHED = Array.from({ length: 6 }, (_, at) => `finished ${at + 1}`)
const frameOf = (columns: number) => [
  '═'.repeat(columns),
  '漢'.repeat(Math.floor(columns / 2)),
  'short',
  '> typed',
  'hint',
]

test.each([
  ['breaks every row', { reflowCursorLine: true }, 'breaks'],
  ['breaks all rows but that of the cursor', { reflowCursorLine: false }, 'breaks-but-caret-row'],
] as const)(
  'a window that gets narrower leaves nothing of the old frame where the terminal %s',
  async (_, options, narrowing) => {
    const screen = new Screen(80, 24, options)
    const { show, print } = draw(screen, narrowing)
    await show({ lines: frameOf(80), caret: { x: 7, y: 3 } })
    await print(`${FINISHED.join('\n')}\n`)
    for (const columns of [61, 33, 20]) {
      await screen.resize(columns, 24)
      await show({ lines: frameOf(columns), caret: { x: 7, y: 3 } })
      expect(screen.all()).toEqual([...FINISHED, ...frameOf(columns)])
    }
  },
)

test('a row that is typed in and does not fit any more leaves nothing behind either', async () => {
  const screen = new Screen(80, 24, { reflowCursorLine: true })
  const { show, print } = draw(screen, 'breaks')
  const typed = (columns: number) => ['─'.repeat(columns), `> ${'typed '.repeat(20)}`.slice(0, columns - 1), 'hint']
  await show({ lines: typed(80), caret: { x: 79, y: 1 } })
  await print(`${FINISHED.join('\n')}\n`)
  await screen.resize(30, 24)
  await show({ lines: typed(30), caret: { x: 29, y: 1 } })
  expect(screen.all()).toEqual([...FINISHED, ...typed(30)])
})

test('without a cursor in the frame a narrower window leaves nothing behind either', async () => {
  const screen = new Screen(80, 24)
  const { show, print } = draw(screen, 'breaks')
  await show({ lines: frameOf(80), caret: null })
  await print(`${FINISHED.join('\n')}\n`)
  await screen.resize(30, 24)
  await show({ lines: frameOf(30), caret: null })
  expect(screen.all()).toEqual([...FINISHED, ...frameOf(30)])
})

test('when the broken frame is higher than the screen, what was finished before it is still there', async () => {
  const screen = new Screen(80, 10, { reflowCursorLine: true })
  const { show, print } = draw(screen, 'breaks')
  await show({ lines: frameOf(80), caret: { x: 7, y: 3 } })
  await print(`${FINISHED.join('\n')}\n`)
  await screen.resize(12, 8)
  await show({ lines: frameOf(12), caret: { x: 7, y: 3 } })
  expect(screen.all().slice(0, FINISHED.length)).toEqual(FINISHED)
  expect(screen.rows().slice(0, 6).join('\n')).toContain(frameOf(12).join('\n'))
})

test('where a terminal cuts rows instead, nothing above the frame is erased', async () => {
  const screen = new Screen(80, 24)
  const { show, print } = draw(screen, 'cuts')
  await show({ lines: frameOf(80), caret: { x: 7, y: 3 } })
  await print(`${FINISHED.join('\n')}\n`)
  screen.written = ''
  // The emulator would break them; to cut is to leave its rows alone.
  Object.assign(screen.stream, { columns: 30 })
  screen.stream.emit('resize')
  await show({ lines: frameOf(30), caret: { x: 7, y: 3 } })
  expect(screen.all()).toEqual([...FINISHED, ...frameOf(30)])
})

test('a window that gets wider, higher and lower leaves nothing behind', async () => {
  const screen = new Screen(60, 20)
  const { show, print } = draw(screen, 'breaks-but-caret-row')
  await show({ lines: frameOf(60), caret: { x: 7, y: 3 } })
  await print(`${FINISHED.join('\n')}\n`)
  for (const [columns, rows] of [
    [90, 20],
    [90, 30],
    [90, 9],
    [50, 12],
  ] as const) {
    await screen.resize(columns, rows)
    await show({ lines: frameOf(columns), caret: { x: 7, y: 3 } })
    expect(screen.all()).toEqual([...FINISHED, ...frameOf(columns)])
  }
})

test('nothing is erased for a frame that is not on the screen while the terminal is lent out', async () => {
  const screen = new Screen(80, 24)
  const { show, output } = draw(screen, 'breaks')
  await show({ lines: frameOf(80), caret: { x: 7, y: 3 } })
  output.frameGone()
  screen.written = ''
  const heard = once(output, 'resize')
  Object.assign(screen.stream, { columns: 30 })
  screen.stream.emit('resize')
  await heard
  expect(screen.written).toMatch(/^.\[\?25l.\[3A/)
})

test('what wipes the screen or the scrollback does not get through, and all else is counted', async () => {
  const screen = new Screen(80, 24)
  const output = new TerminalOutput({ stream: screen.stream, narrowing: 'breaks' })
  output.write('kept\x1b[2J\x1b[3J\x1bc ✓')
  await screen.drawn()
  expect(screen.written).toBe('kept ✓')
  expect(output.bytes).toBe(8)
})

test('a frame at the very top is erased in a way that tmux does not take for a wipe, which would scroll it away', async () => {
  const screen = new Screen(80, 24)
  const { show, print } = draw(screen, 'breaks')
  await show({ lines: frameOf(80), caret: { x: 7, y: 3 } })
  screen.written = ''
  await print('finished\n')
  // What goes before it has put the cursor into the second column.
  expect(
    screen.written
      .split('\x1b[J')
      .slice(0, -1)
      .every(before => before.endsWith('\x1b[K\x1b[2G')),
  ).toBe(true)
  expect(screen.written).toContain('\x1b[J')
  expect(screen.all()).toEqual(['finished', ...frameOf(80)])
})

test('a terminal that is gone is told of once, and the program goes on', async () => {
  let gone = 0
  const stream = Object.assign(
    new Writable({ write: (_text, _encoding, done) => done(Object.assign(new Error('write EIO'), { code: 'EIO' })) }),
    { isTTY: true, columns: 80, rows: 24 },
  )
  const output = new TerminalOutput({ stream, narrowing: 'breaks', onGone: () => gone++ })
  await new Promise<void>(resolve => output.write('a', () => resolve()))
  await new Promise<void>(resolve => output.write('b', () => resolve()))
  await new Promise(resolve => setImmediate(resolve))
  await new Promise<void>(resolve => output.write('c', () => resolve()))
  expect([gone, output.writable, output.isFull]).toEqual([1, false, false])
})

test('while the terminal does not read it is said to be full, until it reads again', async () => {
  const waiting: (() => void)[] = []
  const stream = Object.assign(
    new Writable({ highWaterMark: 10, write: (_text, _encoding, done) => void waiting.push(done) }),
    { isTTY: true, columns: 80, rows: 24 },
  )
  const output = new TerminalOutput({ stream, narrowing: 'breaks' })
  expect(output.isFull).toBe(false)
  output.write('a frame of a session')
  expect(output.isFull).toBe(true)
  let isReady = false
  const ready = output.ready().then(() => {
    isReady = true
  })
  await new Promise(resolve => setImmediate(resolve))
  expect(isReady).toBe(false)
  for (const done of waiting) done()
  await ready
  expect(output.isFull).toBe(false)
})

test.each([
  [{ TERM: 'xterm-256color' }, 'breaks'],
  [{ TERM: 'xterm-256color', TERM_PROGRAM: 'vscode' }, 'breaks-but-caret-row'],
  [{ TERM: 'xterm-256color', XTERM_VERSION: 'XTerm(390)' }, 'cuts'],
  [{ TERM: 'screen-256color', TMUX: '/tmp/tmux', XTERM_VERSION: 'XTerm(390)' }, 'breaks'],
  [{ TERM: 'screen', STY: '1.pts' }, 'cuts'],
  [{ TERM: 'linux' }, 'cuts'],
])('what a terminal does to rows that do not fit is known from its environment: %o', (env, expected) => {
  expect(narrowingOf(env)).toBe(expected)
})
