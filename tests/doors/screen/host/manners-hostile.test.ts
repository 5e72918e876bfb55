import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { type Drawn, startInEmulator } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { writeTasks } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'
import { gate, leavesAsFound, rowsWith, started, wipesIn } from './manners.ts'

/** A title, the clipboard, a clear, the cursor, other modes, a C1 control, and letters that run backwards. */
const ATTACK =
  '\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[3J\x1b[1;1Howned\x1b[?1000h\x1b[?1049h\x9b2J\u202egnp.exe\u2066\x07'

function isUnharmed(seen: Drawn): void {
  expect(seen.title()).not.toMatch(/^owned/)
  expect(seen.modes()).toMatchObject({ alternateScreen: false, mouse: 'none' })
  expect(wipesIn(seen)).toEqual([])
  for (const taken of ['\x1b]52', '\x1b[1;1H', '\x9b', '\u202e', '\u2066']) expect(seen.bytes()).not.toContain(taken)
}

test('what a model, a command, a task, a file name and a paste try with the terminal is shown, never obeyed', async () => {
  const { opened, open } = gate()
  const attack = `printf '%b' '${ATTACK.replaceAll('\x1b', '\\033').replaceAll('\x07', '\\007').replaceAll('\x9b', '\\302\\233')}'`
  await using scene = await openScene([
    [
      reply(
        message(`Marker one ${ATTACK}`),
        shell(`echo marker two; ${attack}; ${attack} >&2`),
        shell(writeTasks([{ id: 'T1', name: `Marker three ${ATTACK}`, done: false }])),
      ),
      reply(message(`Marker four ${ATTACK} and on`), hold(opened), shell('true')),
      reply(message('Over.')),
    ],
  ])
  await writeFile(join(scene.place.directory, `five${ATTACK.replaceAll('/', '')}`), '')
  await using seen = drawHere(scene, ['--rounds', '1'])
  await started(seen)
  seen.paste(`Goal ${ATTACK}`)
  await seen.until('Goal')
  seen.type(' @five')
  await seen.until(/❯ .*gnp\.exe/)
  isUnharmed(seen)
  seen.press('esc')
  await seen.until(rows => rowsWith(rows, '❯').length === 0)
  seen.press('enter')
  await seen.until('Marker four')
  seen.press('ctrl+t')
  await seen.until('Marker three')
  isUnharmed(seen)
  open()
  await seen.untilInAll(/To continue: (?:codemachine |\/)resume/)
  isUnharmed(seen)
  expect(rowsWith(seen.all(), 'marker two')).not.toEqual([])
  await started(seen)
  seen.press('ctrl+d')
  await leavesAsFound(seen)
})

test('a line of five megabytes, a message of sixty thousand characters and a quick stream do not hold up typing', async () => {
  const { opened, open } = gate()
  const long = 'a long message that goes on and on, '.repeat(1_700)
  await using scene = await openRealScene([
    [
      reply(shell(`head -c 5000000 /dev/zero | tr '\\0' x; echo`)),
      reply(message(`${long}the-end.`, { chunkSize: 200 }), shell('true')),
      { ...reply(message('quick words '.repeat(2_000), { chunkSize: 12 }), shell('true')), deltaMs: 4 },
      reply(message('Over.'), hold(opened)),
    ],
  ])
  await using seen = startInEmulator(scene.place, ['--rounds', '1', 'Be long'])
  await seen.until(/R1|round 1/)
  const typed = 'a draft that grows letter by letter'
  const pid = await seen.pid()
  const waits: number[] = []
  for (const [at, letter] of [...typed].entries()) {
    const before = cpuMsOf(pid)
    seen.type(letter)
    await seen.until(`› ${typed.slice(0, at + 1).trimEnd()}`)
    waits.push(cpuMsOf(pid) - before)
  }
  waits.sort((a, b) => a - b)
  expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(250)
  await seen.untilInAll('the-end.')
  expect(seen.bytes().length).toBeLessThan(3_000_000)
  open()
  seen.press('ctrl+u')
  await seen.until(/› *\n/)
  await seen.kill('SIGTERM')
  await leavesAsFound(seen)
})
