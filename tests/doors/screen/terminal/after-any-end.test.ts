import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EmulatorOptions, startInEmulator } from '../../../support/emulator.ts'
import { UNTOUCHED } from '../../../support/emulator-modes.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { bundleProgram } from './bundle-program.ts'

let place: TestPlace
let program: string

beforeAll(async () => {
  place = await makePlace('', { git: false })
  program = await bundleProgram(place.root)
})

afterAll(() => place[Symbol.asyncDispose]())

async function started(options: EmulatorOptions = {}) {
  const terminal = startInEmulator(place, [program], { command: [process.execPath], ...options })
  await terminal.until('running on')
  return terminal
}

test.each([
  ['it ends by itself', 'q', 0, 'It is over.'],
  ['it exits at once', 'x', 3, '> draft'],
  ['an error is not caught', 'c', 70, 'It fell: broken'],
  ['a promise is not caught', 'r', 70, 'It fell: refused'],
])('when %s, the terminal is as it was', async (_, key, code, lastWords) => {
  await using terminal = await started()
  expect(terminal.title()).toBe('a session')
  expect(terminal.modes()).toMatchObject({ bracketedPaste: true, kitty: 1, cursorVisible: false })
  terminal.type(key)
  expect(await terminal.ended).toEqual({ exitCode: code })
  await terminal.until(lastWords)
  expect(terminal.modes()).toEqual(UNTOUCHED)
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  expect(terminal.title()).toBe('')
  // What comes next begins on a row of its own, below all that was shown.
  const rows = terminal.screen().filter(row => row !== '')
  expect(rows.at(-1)).toBe(lastWords)
  expect(rows.slice(0, 3)).toEqual(['ready, said: nothing', 'running on', '> draft'])
  expect(terminal.cursor()).toMatchObject({ x: 0, y: rows.length })
  for (const wipe of ['\x1b[2J', '\x1b[3J']) expect(terminal.bytes()).not.toContain(wipe)
})

promise('O10', 'The screen leaves the terminal as it was, whatever ended it')
test('when it is ended in the pager, the terminal is as it was, and the pager is gone', async () => {
  await using terminal = await started()
  terminal.type('\x05')
  await terminal.until('logged 1000')
  await terminal.kill('SIGTERM')
  expect(await terminal.ended).toEqual({ exitCode: 143 })
  expect(terminal.modes()).toEqual(UNTOUCHED)
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  expect(terminal.all().filter(row => row !== '')).toEqual([])
})

test('Ctrl+Z gives the shell the terminal, and fg brings the screen back, as wide as the window is now', async () => {
  await using terminal = await started()
  terminal.type('\x1a')
  await terminal.stopped()
  expect(terminal.modes()).toEqual(UNTOUCHED)
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  terminal.resize(61, 20)
  terminal.foreground()
  await terminal.until('said: back true 61')
  expect(terminal.modes()).toMatchObject({ bracketedPaste: true, kitty: 1 })
  terminal.type('k')
  await terminal.until('said: typed k')
})

test('in the background it waits for the terminal instead of taking it, and fg goes on', async () => {
  await using terminal = startInEmulator(place, [], { command: ['bash', '--norc', '--noprofile', '-i'] })
  const stops = (count: number) => (rows: readonly string[]) =>
    rows.filter(row => row.includes('Stopped')).length >= count
  terminal.type(`'${process.execPath}' '${program}'\r`)
  await terminal.until('running on')
  terminal.type('\x1a')
  await terminal.until(stops(1))
  terminal.type('bg; wait; jobs\r')
  await terminal.until(stops(2))
  terminal.type('fg\r')
  await terminal.until('said: back true')
  terminal.type('k')
  await terminal.until('said: typed k')
  // The shell of the test would not end it: it is a job of the one inside.
  terminal.type('q')
  await terminal.until('It is over.')
})

test('the pager, and back: the screen is as it was, and keys and pastes arrive', async () => {
  await using terminal = await started()
  terminal.type('\x05')
  await terminal.until('logged 1000')
  terminal.type('g')
  await terminal.until(rows => rows[0] === 'logged 1')
  terminal.resize(40, 10)
  await terminal.until(rows => rows[0] === 'logged 1' && rows[8] === 'logged 9')
  terminal.type('q')
  await terminal.until('said: back undefined 40')
  expect(terminal.all().filter(row => row !== '')).toEqual(['ready, said: back undefined 40', 'running on', '> draft'])
  expect(terminal.modes()).toMatchObject({ bracketedPaste: true, kitty: 1, alternateScreen: false })
  terminal.paste('two\nlines')
  await terminal.until('said: pasted two')
})
