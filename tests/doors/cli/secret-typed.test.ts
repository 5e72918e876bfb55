import { join } from 'node:path'
import { expect } from 'vitest'
import { openSecrets } from '../../../src/secrets/store.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { type Emulator, startInEmulator } from '../../support/emulator.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'

const KEY = 'SERVICE_API_KEY'
const VALUE = 'sk-live-0123456789abcdef'
const PROMPT = `Value of ${KEY} (your typing is hidden`

const stored = async (place: TestPlace) => {
  const records = await openRecords({ ...cliContext(place), directory: place.directory })
  return (await openSecrets(records.secrets).get(KEY))?.value ?? null
}

const asked = async (place: TestPlace, args: readonly string[] = []): Promise<Emulator> => {
  const terminal = startInEmulator(place, ['secret', 'set', KEY, ...args], { columns: 100 })
  await terminal.until(PROMPT)
  return terminal
}

/** Nothing of what was typed can be seen, and the terminal is as it was. */
async function isAsBefore(terminal: Emulator): Promise<void> {
  expect(terminal.bytes()).not.toContain(VALUE.slice(0, 7))
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  expect(terminal.modes().bracketedPaste).toBe(false)
}

promise(
  'T40',
  'A secret is typed where nothing shows it, nor its length; an empty, too long or short one is told; whatever ends the typing, nothing of it is kept and the terminal is as before',
)
test('what is typed is not shown, is stored, and leaves the terminal as it was', async () => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  for (const letter of `${VALUE}x`) terminal.type(letter)
  terminal.press('backspace', 'enter')
  await terminal.until(`${KEY} is stored for`)
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  await isAsBefore(terminal)
  expect(await stored(place)).toBe(VALUE)
})

test('an empty one is asked for again, and what Ctrl+U took back is not stored', async () => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  terminal.press('enter')
  await terminal.until('The value is empty')
  terminal.type('something else')
  terminal.press('ctrl+u')
  terminal.type(VALUE)
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  await isAsBefore(terminal)
  expect(await stored(place)).toBe(VALUE)
})

test('several lines are pasted as they are, and a long value whole', async () => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  const long = `-----BEGIN KEY-----\n${'0123456789abcdef\n'.repeat(1000)}-----END KEY-----\n`
  terminal.paste(long)
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(terminal.bytes()).not.toContain('0123456789abcdef')
  expect(await stored(place)).toBe(long.trimEnd())
})

test('what is longer than it may be is asked for again', async () => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  terminal.paste('x'.repeat(64 * 1024 + 1))
  terminal.press('enter')
  await terminal.until('It is longer than 64 KiB.')
  terminal.press('ctrl+c')
  expect(await terminal.ended).toEqual({ exitCode: 130 })
  expect(await stored(place)).toBeNull()
})

test.each<['ctrl+c' | 'ctrl+d', number]>([
  ['ctrl+c', 130],
  ['ctrl+d', 4],
])('%s leaves it with nothing stored and the terminal as before', async (key, exitCode) => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  terminal.type(VALUE)
  terminal.press(key)
  await terminal.until('Left without a value; nothing is stored.')
  expect(await terminal.ended).toEqual({ exitCode })
  await isAsBefore(terminal)
  expect(await stored(place)).toBeNull()
})

test('a signal leaves it with nothing stored and the terminal as before', async () => {
  await using place = await makePlace('')
  await using terminal = await asked(place)
  // What it answers to shows that all of it has been read: what comes after the signal is the shell's.
  terminal.type(`${VALUE}\x15\r`)
  await terminal.until('The value is empty')
  await terminal.kill('SIGTERM')
  expect(await terminal.ended).toEqual({ exitCode: 143 })
  await isAsBefore(terminal)
  expect(await stored(place)).toBeNull()
})

test('the prompt goes to the terminal where stdout is a file', async () => {
  await using place = await makePlace('')
  const said = join(place.root, 'said')
  const program = [process.execPath, new URL('../../../dist/bin.js', import.meta.url).pathname]
  const line = `exec ${program.join(' ')} secret set ${KEY} > ${said}`
  await using terminal = startInEmulator(place, [], { command: ['sh', '-c', line], columns: 100 })
  await terminal.until(PROMPT)
  terminal.type(VALUE)
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  await isAsBefore(terminal)
  expect(await stored(place)).toBe(VALUE)
})
