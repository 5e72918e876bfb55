import { expect, test } from 'vitest'
import { applyPatch, message, reply, shell, updatePlan } from '../../../../src/demo/model/reply.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, folder, round, says, writeTasks } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'
import { expectOnceEach } from '../../../support/screen-scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { stopsMidway } from '../../../support/stops-midway.ts'

/** Every kind of block that is finished at another moment while it streams. */
const FOUND = [
  '# What there is',
  'The first paragraph, with **bold** words and a `name`, is longer than a line of this terminal and so it is wrapped.',
  '- apples\n- pears\n  - williams\n- plums',
  '```js\nconst alpha = 1\n\nexport function beta() {\n  return alpha\n}\n```',
  '1. walk\n2. run',
  '| fruit | price |\n| --- | --- |\n| quince | seven |',
  '> said before',
  'The sixth paragraph.',
  'The words at the end.',
].join('\n\n')
const FOUND_IN_ORDER = [
  'What there is',
  'The first paragraph, with bold words',
  'apples',
  'pears',
  'williams',
  'plums',
  'const alpha = 1',
  'export function beta() {',
  'return alpha',
  'walk',
  'quince',
  'said before',
  'The sixth paragraph.',
  'The words at the end.',
]
const tasks = (done: number) =>
  writeTasks([1, 2, 3, 4].map(n => ({ id: `T${n}`, name: `Piece ${n}`, done: n <= done })))

promise('E29', 'A session is seen on the screen as it happens')
test('a whole session is seen as it happens, stays in the scrollback once, and leaves the terminal as it was', async () => {
  const writes = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const later = Promise.withResolvers<void>()
  const rounds = [
    [
      {
        ...reply(message(FOUND, { chunkSize: 5 }), shell('seq -f "out %g" 30; exit 3')),
        deltaMs: 2,
      },
      reply(applyPatch('*** Begin Patch\n*** Add File: hello.js\n+const one = 1\n*** End Patch')),
      reply(
        updatePlan([
          { step: 'Look around', status: 'completed' },
          { step: 'Build it', status: 'in_progress' },
        ]),
      ),
      reply(shell(tasks(1))),
      reply(
        shell(
          `sed -i 's/^short_title:.*/short_title: All the fruit/; s/^## In progress/&\\n\\n- [ ] T2 Piece 2/' ${folder}/MAIN.md`,
        ),
      ),
      reply(message('Half of a sentence'), hold(gate.promise), shell('true')),
      reply(shell('echo begun; sleep 0.2; echo over'), hold(later.promise)),
      says('That was the first round.'),
    ],
    round(tasks(4), 'echo two >> hello.js', `sed -i '/Piece 2/d' ${folder}/MAIN.md`, claimDone),
    round(claimDone),
  ]
  await using scene = await openRealScene(rounds, { modelClock: stopsMidway(10, writes.promise) })
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 40 })
  await terminal.until(/\S running · build X · round 1 of 10 · \d:\d\d/)
  writes.resolve()
  await terminal.until(/^\S running · Piece 2 · 1 of 4 tasks · round 1 of 10 · /m)
  await terminal.until(/ · [\d.]+k tokens.*\n─+\n›/)
  await terminal.until('Half of a sentence')
  await terminal.until(() => terminal.title().includes('All the fruit'))
  terminal.press('ctrl+t')
  await terminal.until(/✔ T1 {2}Piece 1\n.*▸ T2 {2}Piece 2\n.*○ T3 {2}Piece 3\n.*○ T4 {2}Piece 4\n/)
  terminal.press('ctrl+t')
  await terminal.until(rows => !rows.some(row => row.includes('T3')))
  gate.resolve()
  later.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })

  expectOnceEach(terminal, [
    '── round 1  ',
    ...FOUND_IN_ORDER,
    '$ seq -f "out %g" 30; exit 3  ✘ exit 3',
    'out 30',
    '✎ new hello.js  +1',
    '1 + const one = 1',
    '✔ Look around',
    '▸ Build it',
    'Half of a sentence',
    'That was the first round.',
    '── round 1 ended: worked, ',
    '── round 2  ',
    '── round 3 ended: worked, ',
    '_1 ended ─',
  ])
  expect(terminal.all().join('\n')).not.toContain('out 1\n')
  expect(terminal.all().filter(row => /1 of 4 tasks|Esc interrupts|^›|^─+$/.test(row))).toEqual([])
  for (const wipe of ['\x1b[2J', '\x1b[3J']) expect(terminal.bytes()).not.toContain(wipe)
  expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  expect(terminal.modes()).toMatchObject({ cursorVisible: true, bracketedPaste: false, kitty: 0 })
})

test('at a limit the card says which, below it stands how to go on, and the exit code is that of the limit', async () => {
  await using scene = await openScene([round('echo one > one.txt')])
  await using terminal = drawHere(scene, ['--rounds', '1', 'build X'], { columns: 40, rows: 10 })
  expect(await terminal.ended).toEqual({ exitCode: 3 })
  expect(terminal.all().join('\n')).toMatch(/╰─+╯\n\nproof {4}[\s\S]*\nTo continue: codemachine resume\s+\d{8}_1\s/)
})
