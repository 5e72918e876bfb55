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

test('what is typed quickly with Enter at its end is typed and then sent', async () => {
  expect(await keysOf('yes\r')).toEqual(['"yes"', 'return'])
  expect(await keysOf('\x01\x0bno\t')).toEqual(['ctrl+a', 'ctrl+k', '"no"', 'tab'])
})

test('lines that come at once were pasted: no newline in them is Enter', async () => {
  expect(await keysOf('one\rtwo\r')).toEqual(['"one\\rtwo\\r"'])
  expect(await keysOf(`${'x'.repeat(1_001)}\r`)).toEqual([`"${'x'.repeat(1_001)}\\r"`])
})
