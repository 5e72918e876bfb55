import xterm from '@xterm/headless'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { visibleRows } from '../../../support/emulator-screen.ts'
import { openScene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'
import { gate, leavesAsFound, rowsWith, wipesIn } from './manners.ts'

const SIZES = [
  [60, 24],
  [35, 24],
  [35, 9],
  [110, 9],
  [110, 30],
  [50, 30],
  [80, 24],
] as const

test('a window that changes its size while a message streams in leaves no debris', async () => {
  const gates = SIZES.map(gate)
  const part = (n: number) =>
    `Paragraph ${n}.1 comes as a whole, with 漢字 in it and more words than fit into one row.\n\nParagraph ${n}.2 is long enough to be broken`
  const parts = gates.flatMap(({ opened }, n) => [
    message(`${part(n)}${n % 2 ? ' 👩‍👩‍👧' : ''}.\n\nAnd a half`),
    hold(opened),
  ])
  await using scene = await openScene([[reply(...parts, shell('true')), reply(message('The last words.'))]])
  // The emulator is the terminal of this editor.
  await using seen = drawHere(scene, ['--rounds', '1', 'Resize it'], { env: { TERM_PROGRAM: 'vscode' } })
  for (const [n, [columns, rows]] of SIZES.entries()) {
    await seen.untilInAll(`Paragraph ${n}.2`)
    await seen.until(/And a half\n(?:.*\n)*\S running · .*\n(?:─.*\n)?› *(?:\n─.*)?\n/)
    seen.type('x')
    await seen.until('› x')
    // What is on its way to the terminal while it changes its size was drawn for the size before: after a second has
    // been counted, nothing is drawn by itself for another one.
    const drawsMore = () => {
      const written = seen.bytes().length
      return seen.until(() => seen.bytes().length > written)
    }
    await drawsMore()
    const redrawn = drawsMore()
    seen.resize(columns, rows)
    await redrawn
    await seen.until('› x')
    seen.press('backspace')
    await seen.until(/\S running · .*\n(?:─.*\n)?› *(?:\n─.*)?\n/)
    gates[n]?.open()
  }
  await leavesAsFound(seen)
  const all = seen.all()
  for (const [n] of SIZES.entries()) {
    expect(rowsWith(all, `Paragraph ${n}.1`), all.join('\n')).toHaveLength(1)
    expect(rowsWith(all, `Paragraph ${n}.2`), all.join('\n')).toHaveLength(1)
  }
  expect(rowsWith(all, /^ {2}And a half/), all.join('\n')).toHaveLength(SIZES.length)
  expect(rowsWith(all, / · Resize it|^›|Ctrl\+C |^─+$/)).toEqual([])
  expect(wipesIn(seen)).toEqual([])
})

test('what is printed leaves the frame in the same step: nothing is there twice for a moment', async () => {
  const sentences = Array.from({ length: 8 }, (_, n) => `Sentence ${n} is said once.`)
  await using scene = await openScene([
    [
      { ...reply(message(sentences.join('\n\n'), { chunkSize: 8 }), shell('seq 1 40')), deltaMs: 40 },
      reply(message('Over.')),
    ],
  ])
  await using seen = drawHere(scene, ['--rounds', '1', 'Show it'])
  await seen.ended
  const updates = seen.bytes().split('\x1b[?2026l')
  expect(updates.length).toBeGreaterThan(10)
  const terminal = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true })
  for (const update of updates) {
    await new Promise<void>(resolve => terminal.write(update, resolve))
    const rows = visibleRows(terminal)
    for (const sentence of sentences) expect(rowsWith(rows, sentence).length, rows.join('\n')).toBeLessThan(2)
  }
})

test('when a command has ended, no row is left empty below the keys, and its outcome stays on the screen', async () => {
  const { opened, open } = gate()
  const fails = shell('for n in $(seq 1 30); do echo line $n; done; sleep 2; exit 1')
  await using scene = await openScene([[reply(fails), reply(message('Seen.'), hold(opened), shell('true'))]])
  await using seen = drawHere(scene, ['--rounds', '1', 'Fail'], { columns: 80, rows: 24 })
  await seen.until(/line 30\n(?:.*\n)*.* · Fail · /)
  await seen.until(/✘ exit 1/)
  await seen.until('Seen.')
  expect(seen.screen().at(-2), seen.screen().join('\n')).toMatch(/^Esc interrupts/)
  expect(rowsWith(seen.screen(), /✘ exit 1/)).toHaveLength(1)
  open()
})
