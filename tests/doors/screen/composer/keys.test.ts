import { PassThrough } from 'node:stream'
import { render, useInput } from 'ink'
import { createElement } from 'react'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chordOf, keysFromInk } from '../../../../src/doors/screen/composer/keys.ts'

// What Ink makes of the bytes of a terminal is Ink's: they go through it.
let seen: string[] = []
let arrived: () => void = () => {}
const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {}, ref: () => {}, unref: () => {} })
const stdout = Object.assign(new PassThrough(), { columns: 80, rows: 24, isTTY: false })

function Keys() {
  useInput((input, ink) => {
    const keys = keysFromInk(input, ink)
    seen.push(...keys.map(key => chordOf(key) || JSON.stringify(key.input)))
    if (input === '.') arrived()
  })
  return null
}

let app: ReturnType<typeof render>

beforeAll(async () => {
  app = render(createElement(Keys), {
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: stdout as unknown as NodeJS.WriteStream,
    exitOnCtrlC: false,
    patchConsole: false,
  })
  await keysOf('')
})

afterAll(() => app.unmount())

/** The keys that a person pressed who made the terminal send these bytes at once. */
async function keysOf(bytes: string): Promise<string[]> {
  seen = []
  const end = new Promise<void>(resolve => {
    arrived = resolve
  })
  if (bytes !== '') stdin.write(bytes)
  await new Promise(resolve => setImmediate(resolve))
  stdin.write('.')
  await end
  return seen.slice(0, -1)
}

test.each([
  ['Enter', '\r', 'return'],
  ['Ctrl+J', '\n', 'ctrl+j'],
  ['Alt+Enter', '\x1b\r', 'alt+return'],
  ['Shift+Enter of the kitty protocol', '\x1b[13;2u', 'shift+return'],
  ['Backspace', '\x7f', 'backspace'],
  ['Ctrl+H', '\b', 'backspace'],
  ['Ctrl+H of the kitty protocol', '\x1b[104;5u', 'backspace'],
  ['Ctrl+J of the kitty protocol', '\x1b[106;5u', 'ctrl+j'],
  ['Alt+Backspace', '\x1b\x7f', 'alt+backspace'],
  ['Delete', '\x1b[3~', 'delete'],
  ['Ctrl+_', '\x1f', 'ctrl+_'],
  ['Ctrl+Space', '\0', 'ctrl+ '],
  ['Ctrl+K', '\x0b', 'ctrl+k'],
  ['Alt+B', '\x1bb', 'alt+b'],
  ['Alt+Up', '\x1b[1;3A', 'alt+up'],
  ['Alt+Up of older terminals', '\x1b\x1b[A', 'alt+up'],
  ['Ctrl+Left', '\x1b[1;5D', 'ctrl+left'],
  ['Home', '\x1b[H', 'home'],
  ['End', '\x1b[4~', 'end'],
  ['PageUp', '\x1b[5~', 'pageup'],
  ['Tab', '\t', 'tab'],
  ['Shift+Tab', '\x1b[Z', 'shift+tab'],
  ['Escape of the kitty protocol', '\x1b[27u', 'escape'],
  ['Escape twice', '\x1b\x1b\x1b[27u', 'escape,escape'],
  ['a letter', 'ä', '"ä"'],
  ['an emoji', '👩‍👩‍👧', '"👩‍👩‍👧"'],
])('%s is known by the bytes that terminals send for it', async (_name, bytes, chords) => {
  expect((await keysOf(bytes)).join()).toBe(chords)
})

test('keys that are let go and keys without a name do nothing', async () => {
  expect(await keysOf('\x1b[97;1:3u\x1b[13;1:3u\x1b[1;1:3A\x1b[15~\x1b[2~\x1b[107;9u')).toEqual([])
})

// What Windows Terminal and conhost send beside keys: answers, reports, and what another program has left switched on.
test.each([
  ['the window gets and loses the focus', '\x1b[I\x1b[O'],
  ['keys of win32-input-mode', '\x1b[65;30;97;1;0;1_\x1b[65;30;97;0;0;1_\x1b[13;28;13;1;0;1_'],
  ['device attributes of Windows Terminal', '\x1b[?61;4;6;7;14;21;22;23;24;28;32;42c\x1b[>0;10;1c'],
  ['device attributes of conhost', '\x1b[?1;0c'],
  ['keyboard modes, of a terminal that has none of them switched on', '\x1b[?0u'],
  ['the state of modes', '\x1b[?2026;2$y\x1b[?2004;1$y\x1b[?9001;0$y'],
  ['a new size, without a signal', '\x1b[8;30;120t\x1b[48;30;120;600;960t'],
  ['where the cursor is', '\x1b[30;1R\x1b[1;1R'],
  ['the mouse, which is not switched on here', '\x1b[<0;10;5M\x1b[<0;10;5m\x1b[<64;10;5M'],
])('%s: nothing is typed', async (_name, bytes) => {
  expect(await keysOf(bytes)).toEqual([])
  expect(await keysOf(`a${bytes}b`)).toEqual(['"a"', '"b"'])
})

test.each([
  ['Ctrl+C, as a byte in text', 'ab\x03', '"ab",ctrl+c'],
  ['Ctrl+Backspace of conhost', '\b', 'backspace'],
  ['Ctrl+Enter', '\n', 'ctrl+j'],
  ['Alt+Enter', '\x1b\r', 'alt+return'],
  ['Shift+Tab', '\x1b[Z', 'shift+tab'],
])('%s is a key in a terminal of Windows', async (_name, bytes, chords) => {
  expect((await keysOf(bytes)).join()).toBe(chords)
})

test('an answer that comes in two reads is not typed', async () => {
  stdin.write('\x1b[65;30;97')
  await new Promise(resolve => setImmediate(resolve))
  expect(await keysOf(';1;0;1_x')).toEqual(['"x"'])
})

test('what is typed quickly with Enter at its end is typed and then sent', async () => {
  expect(await keysOf('yes\r')).toEqual(['"yes"', 'return'])
  expect(await keysOf('\x01\x0bno\t')).toEqual(['ctrl+a', 'ctrl+k', '"no"', 'tab'])
})

test('lines that come at once were pasted: no newline in them is Enter', async () => {
  expect(await keysOf('one\rtwo\r')).toEqual(['"one\\rtwo\\r"'])
  expect(await keysOf(`${'x'.repeat(1_001)}\r`)).toEqual([`"${'x'.repeat(1_001)}\\r"`])
})
