import { expect } from 'vitest'
import { message, reply } from '../../../../src/demo/model/reply.ts'
import { cpuMsOf, timesSlower } from '../../../support/cpu-time.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { openScene } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'
import { leavesAsFound, rowsWith, started } from './manners.ts'

test('ten thousand pasted lines are a chip at once, and the model gets them whole', async () => {
  await using scene = await openRealScene([[reply(message('Read.'))]])
  await using seen = startInEmulator(scene.place, ['--rounds', '1'])
  await started(seen)
  const lines = Array.from({ length: 10_000 }, (_, n) => `${n}: été 漢字 👩‍👩‍👧 \t and so on`)
  seen.type('Read this: ')
  await seen.until('Read this:')
  const before = cpuMsOf(await seen.pid())
  seen.paste(lines.join('\n'))
  await seen.until('[10,000 lines pasted]')
  expect(cpuMsOf(await seen.pid()) - before).toBeLessThan(3_000 * timesSlower())
  seen.type(' to the end')
  await seen.until('pasted] to the end')
  expect(rowsWith(seen.screen(), '9999:')).toEqual([])
  seen.press('enter')
  await seen.untilInAll(/To continue: (?:codemachine |\/)resume/)
  const created = JSON.parse(/^.*"session-created".*$/m.exec(scene.recorded('journal.ndjson'))?.[0] ?? '{}')
  expect(created.goal).toBe(`Read this: ${lines.join('\n')} to the end`)
  seen.press('ctrl+d')
  await leavesAsFound(seen)
})

test.each([
  ['typed', (text: string) => text],
  ['pasted', (text: string) => `\x1b[200~${text}\x1b[201~`],
])('wide, joined and combined characters that are %s take their cells, and go as a whole', async (_, wrap) => {
  await using scene = await openScene([])
  await using seen = drawHere(scene, [])
  await started(seen)
  const written = [
    ['漢', 2],
    ['👩‍👩‍👧', 2],
    ['e\u0301', 1],
    ['🇩🇪', 2],
    ['👍🏽', 2],
    ['ก็', 1],
    ['a', 1],
  ] as const
  let x = 2
  for (const [text, cells] of written) {
    seen.type(wrap(text))
    x += cells
    await seen.until(() => seen.cursor().x === x)
  }
  expect(seen.screen().find(row => row.startsWith('› '))).toBe(`› ${written.map(([text]) => text).join('')}`)
  for (const [, cells] of written.toReversed()) {
    seen.press('left')
    x -= cells
    await seen.until(() => seen.cursor().x === x)
  }
  seen.press('end')
  for (const [, cells] of written.toReversed()) x += cells
  await seen.until(() => seen.cursor().x === x)
  for (const [text, cells] of written.toReversed()) {
    seen.press('backspace')
    x -= cells
    await seen.until(() => seen.cursor().x === x)
    expect(seen.screen().find(row => row.startsWith('›'))).not.toContain(text)
  }
  expect(x).toBe(2)
})

promise('O135')
test('what is typed before the screen is up waits in the field, and a digit goes nowhere; nothing begins', async () => {
  await using scene = await openScene([])
  await using seen = drawHere(scene, [])
  seen.type('2\r')
  await started(seen)
  expect(seen.screen().find(row => row.startsWith('›'))).toBe('›')
  await using early = drawHere(scene, [])
  early.type('build X\r')
  await early.until('› build X')
  await early.until('Enter sends it')
  expect(scene.hasRecorded('journal.ndjson')).toBe(false)
  for (const each of [seen, early]) each.press('ctrl+c', 'ctrl+c', 'ctrl+c')
})

test('what is typed upon a refused command takes its place', async () => {
  await using scene = await openScene([])
  await using seen = drawHere(scene, [])
  await started(seen)
  seen.type('/logout\r')
  await seen.until('There is no /logout')
  seen.type('/version')
  await seen.until(/^› \/version/m)
  seen.press('enter')
  await seen.until(/codemachine \d.*codex \d/)
  seen.press('up')
  await seen.until(/^› \/logout/m)
  expect(scene.hasRecorded('journal.ndjson')).toBe(false)
  seen.press('ctrl+c')
  await seen.until('Cleared')
  seen.press('ctrl+d')
  await seen.ended
})
