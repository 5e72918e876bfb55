import { expect, test } from 'vitest'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator, type Terminal } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'
import { openScene, type Scene } from '../../../support/scene.ts'
import { expectOnceEach } from '../../../support/screen-scene.ts'

const never = new Promise<never>(() => {})
const START = 'Enter starts it'
/** As terminals send it that tell keys from pasted text. */
const ENTER = '\x1b[13u'
const EMPTY = 'Type a goal'
const start = (scene: Scene) => drawHere(scene, [], { columns: 100, rows: 40 })
const type = async (terminal: Terminal, text: string) => {
  terminal.type(text)
  await terminal.until(`› ${text}`)
  terminal.press('enter')
}

test('goals are typed one after the other on the start screen, and /exit leaves', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round(claimDone), round(claimDone)])
  await using terminal = start(scene)
  await terminal.until(EMPTY)
  await terminal.until(scene.place.directory)
  terminal.type('build X')
  await terminal.until(START)
  terminal.press('enter')
  await terminal.untilInAll('_1 ended ─')
  await terminal.until(EMPTY)
  terminal.press('up')
  await terminal.until('› build X')
  terminal.type(' and Y')
  await terminal.until('› build X and Y')
  terminal.press('enter')
  await terminal.untilInAll('_2 ended ─')
  await terminal.until(EMPTY)
  terminal.press({ text: '?' })
  await terminal.until('Everything possible now')
  terminal.press('esc')
  await terminal.until(EMPTY)
  await type(terminal, '/exit')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, ['_1 ───', '_1 ended ─', '_2 ───', '_2 ended ─'])
  expect(terminal.all().filter(row => /Directory|Enter starts/.test(row))).toEqual([])
})

test('what is sent before the first goal has begun waits as the next session', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round(claimDone), round(claimDone)])
  await using terminal = start(scene)
  await terminal.until(EMPTY)
  terminal.type(`build X${ENTER}then Y${ENTER}`)
  await terminal.untilInAll('_2 ended ─')
  await terminal.until(EMPTY)
  expectOnceEach(terminal, ['_1 ended ─', '_2 ended ─'])
  expect(terminal.all().join('\n')).toMatch(/then Y/)
  terminal.press('ctrl+d')
  expect(await terminal.ended).toMatchObject({ exitCode: expect.any(Number) })
})

test('a session that was cut off is offered at the start, and gone on with', async () => {
  await using scene = await openRealScene([[held(never)], round(claimDone), round(claimDone)])
  const running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await running[Symbol.asyncDispose]()
  await using terminal = startInEmulator(scene.place, [], { columns: 100, rows: 40 })
  await terminal.until('How do you want to start?')
  await terminal.until(/Resume: build X +.*cut off/)
  terminal.press('enter')
  await terminal.untilInAll('_1 ended ─')
  await terminal.until(EMPTY)
  await type(terminal, '/resume')
  await terminal.until('No session to resume')
  terminal.press('ctrl+c')
  await terminal.until('Ctrl+C again leaves')
  terminal.press('ctrl+c')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})

test('/queue, /resume and /model are chosen from lists, what is chosen is done, and a prompt keeps its kind in the field', async () => {
  await using scene = await openScene([
    round('echo one > one.txt'),
    round(claimDone),
    round(claimDone),
    round(claimDone),
  ])
  expect((await scene.run('--rounds', '1', 'build X')).exitCode).toBe(3)
  for (const prompt of ['write the docs', 'drop this', 'change this', 'forget this'])
    await scene.run('queue', 'add', prompt)
  await scene.run('queue', 'add', '--template', 'change', 'add limits')
  await using terminal = start(scene)
  await terminal.until('How do you want to start?')
  terminal.type('/model')
  await terminal.until('› /model')
  await terminal.until(rows => !rows.join('\n').includes('How do you want to start?'))
  terminal.press('enter')
  await terminal.until('Which model?')
  terminal.type('scripted-2')
  await terminal.until('› scripted-2')
  terminal.press('enter')
  await terminal.until('How much reasoning effort?')
  terminal.press('enter')
  await terminal.until('Applies from the next session')
  await type(terminal, '/queue rm 6')
  await terminal.until('The queue has no prompt 6; it has 5')
  await type(terminal, '/queue rm 2')
  await terminal.until('Removed from the queue: drop this')
  await type(terminal, '/queue edit 2')
  await terminal.until('› change this')
  terminal.press('ctrl+u')
  await terminal.until(rows => !rows.join('\n').includes('› change this'))
  terminal.press('alt+up')
  await terminal.until('› /change add limits')
  terminal.press('ctrl+u')
  await terminal.until(rows => !rows.join('\n').includes('› /change'))
  await type(terminal, '/queue')
  await terminal.until('2 prompts waiting.')
  terminal.press('down', 'down')
  await terminal.until('d removes')
  terminal.type('d')
  await terminal.until('1 prompt waiting.')
  terminal.press('enter')
  await terminal.until('› write the docs')
  terminal.press('enter')
  await terminal.untilInAll('_2 ended ─')
  expect(scene.model.requests.at(-1)?.model).toBe('scripted-2')
  await terminal.until('Directory')
  await type(terminal, '/resume')
  await terminal.until(/1\..*build X/)
  terminal.press('enter')
  await terminal.until('It has used up its 1 round.')
  terminal.press('enter')
  await terminal.untilInAll(/_1 continues .*\(at most 2 rounds[,)]/)
  await terminal.untilInAll('_1 ended ─')
  await terminal.until('Directory')
  terminal.press('ctrl+d')
  expect(await terminal.ended).toMatchObject({ exitCode: expect.any(Number) })
})

test('what a run fails with is said, and the start screen stays', async () => {
  await using scene = await openScene([[held(never)]])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  await using terminal = start(scene)
  await terminal.until(EMPTY)
  await type(terminal, 'build Y')
  await terminal.untilInAll(/codemachine: .* is (running|at work)|another codemachine/i)
  // What could not be begun is not lost.
  await terminal.until('› build Y')
  await terminal.until('Directory')
  terminal.press('ctrl+u')
  await type(terminal, '/exit')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})
