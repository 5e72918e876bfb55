import { PassThrough } from 'node:stream'
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.ts'
import { askHidden, HiddenTyping } from '../../../../src/doors/screen/terminal/hidden-field.ts'
import { NO_PROCESS } from '../../../support/no-process.ts'

const MOST_BYTES = 64

/** What has become of it after each read of the terminal has been handed over. */
function typed(...reads: string[]) {
  const typing = new HiddenTyping(MOST_BYTES)
  let end = null
  for (const read of reads) end ??= typing.take(read)
  return end
}

const text = (value: string) => ({ kind: 'typed', text: value, isTooLong: false })

test.each([
  ['as it is typed', ['s', 'k', '-1', '\r'], 'sk-1'],
  ['with Enter as a terminal of another kind sends it', ['sk-1\n'], 'sk-1'],
  ['without what was taken back, a sign of several bytes too', ['sx👍🏽\x7f\x08k-1\r'], 'sk-1'],
  ['without what Ctrl+U took back', ['wrong\x15sk-1\r'], 'sk-1'],
  ['without the word that Ctrl+W took back', ['two words\x17x\r'], 'two x'],
  ['without the keys that only steer', ['\x1b[A', 's\x1b[1;5D', 'k\x1bOP-\x1b[[A1\t\x01\x1a\r'], 'sk-1'],
  ['behind Esc', ['\x1b', 'sk-1\r'], 'sk-1'],
  [
    'pasted, with its line ends',
    ['\x1b[200~-----BEGIN\r\nKEY\r-----END\r\x1b[201~', '\r'],
    '-----BEGIN\nKEY\n-----END\n',
  ],
  ['pasted, with what steers a terminal elsewhere', ['\x1b[200~a\x03b\x15c\td\x1b[201~\r'], 'a\x03b\x15c\td'],
  ['pasted in pieces', ['\x1b', '[200~ab\r', 'cd\x1b[20', '1~', 'e\r'], 'ab\ncde'],
  ['pasted where a terminal does not say so', ['first\rsecond\r'], 'first\nsecond'],
  ['as nothing', ['\r'], ''],
])('what is typed hidden is taken %s', (_how, reads, value) => {
  expect(typed(...reads)).toEqual(text(value))
})

test.each([
  ['Ctrl+C', ['sk-1', '\x03', '\r'], 'ctrl-c'],
  ['Ctrl+D', ['sk-1\x04'], 'ctrl-d'],
])('%s leaves it, whatever was typed', (_key, reads, by) => {
  expect(typed(...reads)).toEqual({ kind: 'left', by })
})

test('what is too long is told as that, and no more of it is kept than the bound', () => {
  expect(typed('x'.repeat(MOST_BYTES), '\r')).toEqual(text('x'.repeat(MOST_BYTES)))
  expect(typed('x'.repeat(MOST_BYTES + 1), '\r')).toMatchObject({ kind: 'typed', isTooLong: true })
  expect(typed('ü'.repeat(MOST_BYTES), '\r')).toMatchObject({ kind: 'typed', isTooLong: true })
  const typing = new HiddenTyping(MOST_BYTES)
  for (let i = 0; i < 1000; i++) typing.take('x'.repeat(1000))
  expect(JSON.stringify(typing).length).toBeLessThan(10 * MOST_BYTES)
  typing.take('\x15')
  expect(typing.take('short\r')).toEqual(text('short'))
})

/** Somebody at a terminal that tells how it was set. */
function sit() {
  const ending = new AbortController()
  const modes: boolean[] = []
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => void modes.push(mode) })
  const stdout = Object.assign(new PassThrough(), { isTTY: true })
  let shown = ''
  stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
  })
  const crash = new Set<() => void>()
  let now = ''
  const host = {
    ...NO_PROCESS,
    writeNow: (chunk: string) => {
      now += chunk
    },
    rawModeOff: () => void modes.push(false),
    beforeCrash: (listener: () => void) => {
      crash.add(listener)
      return () => crash.delete(listener)
    },
  }
  const context = { stdin, stdout, signal: ending.signal, host, env: {} }
  return { context, stdin, modes, crash, ending, shown: () => shown, now: () => now }
}

const ask = {
  prompt: 'Value of KEY: ',
  mostBytes: MOST_BYTES,
  problemOf: (text: string) => (text === '' ? 'It is empty.' : null),
}

test('a value is asked for again while there is something wrong with it, and the terminal is as before', async () => {
  const { context, stdin, modes, crash, shown } = sit()
  const end = askHidden(context, ask)
  await nextTick()
  expect(modes).toEqual([true])
  stdin.write('\r')
  await nextTick()
  stdin.write('sk-1\r')
  expect(await end).toEqual({ kind: 'typed', text: 'sk-1' })
  await nextTick()
  expect(shown()).toBe('\x1b[?2004hValue of KEY: \nIt is empty.\nValue of KEY: \n\x1b[?2004l')
  expect(modes).toEqual([true, false])
  expect(crash.size + stdin.listenerCount('data') + stdin.listenerCount('end')).toBe(0)
  expect(stdin.isPaused()).toBe(true)
})

test('a signal, and the end of the input, leave it with the terminal as before', async () => {
  const asked = sit()
  const end = askHidden(asked.context, ask)
  await nextTick()
  asked.stdin.write('sk-')
  asked.ending.abort('SIGTERM')
  expect(await end).toEqual({ kind: 'left', by: 'signal' })
  expect(asked.modes).toEqual([true, false])
  const gone = sit()
  const over = askHidden(gone.context, ask)
  gone.stdin.end('sk-')
  expect(await over).toEqual({ kind: 'left', by: 'ctrl-d' })
  expect(gone.modes).toEqual([true, false])
})

test('a field that is taken back takes what is typed on up to Ctrl+C, or for a minute', async () => {
  const taken = async (wait: () => Promise<void>) => {
    const { context, stdin, modes, shown } = sit()
    const over = new AbortController()
    const clock = { ...systemClock, wait }
    const end = askHidden(context, { ...ask, takenBack: { signal: over.signal, note: 'It is over.', clock } })
    await nextTick()
    stdin.write('sk-')
    await nextTick()
    over.abort()
    return { stdin, modes, shown, end }
  }
  const waits: (() => void)[] = []
  const typing = await taken(() => new Promise(resolve => waits.push(resolve)))
  typing.stdin.write('12')
  await nextTick()
  expect([typing.modes, typing.shown().split(ask.prompt)[1]]).toEqual([[true], 'It is over.\n'])
  typing.stdin.write('\x03')
  expect(await typing.end).toEqual({ kind: 'left', by: 'signal' })
  const away = await taken(async () => {})
  expect(await away.end).toEqual({ kind: 'left', by: 'signal' })
  expect([typing.modes, away.modes, waits.length]).toEqual([[true, false], [true, false], 1])
})

test('a crash gives the terminal back before its error is shown', async () => {
  const { context, modes, crash, now } = sit()
  void askHidden(context, ask)
  await nextTick()
  for (const listener of crash) listener()
  expect({ modes, now: now() }).toEqual({ modes: [true, false], now: '\x1b[?2004l\n' })
})
