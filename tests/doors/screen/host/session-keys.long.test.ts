import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { UNTOUCHED } from '../../../support/emulator-modes.ts'
import type { TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'
import { expectOnceEach, times } from '../../../support/screen-scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { untilInFolder } from '../../../support/until-in-folder.ts'
import { personSettings } from './manners.ts'

const settingsOf = ({ home }: TestPlace) => readFileSync(join(home, '.config', 'codemachine', 'config.toml'), 'utf8')
const never = new Promise<never>(() => {})
const ASKS = 'Tell the agent, or queue it?'
const GOES_ON = 'Interrupted. What next?'

promise('O71')
test('Enter queues once that is chosen, Alt+Up takes back, and what is queued becomes the next session by itself', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone), round(claimDone)])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  await terminal.until('Working.')
  terminal.type('write the docs')
  await terminal.until('› write the docs')
  terminal.press('enter')
  await terminal.until(ASKS)
  terminal.press('esc')
  await terminal.until('› write the docs')
  terminal.press('enter')
  await terminal.until(ASKS)
  terminal.press('down', 'enter')
  await terminal.until('Queued as the next session (1 in the queue)')
  await terminal.untilInAll('Enter queues, Tab tells the agent from now on; screen.enter in')
  await terminal.until(/^queued 1 {2}write the docs$/m)
  terminal.type('and this')
  await terminal.until('› and this')
  terminal.press('enter')
  await terminal.until('(2 in the queue)')
  terminal.press('alt+up')
  await terminal.until('› and this')
  terminal.press('ctrl+u')
  await terminal.until(rows => !rows.some(row => row.startsWith('› and this')))
  gate.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, ['_1 ───', '_1 ended ─', '_2 ───', '_2 ended ─'])
  expect(terminal.all().join('\n')).toMatch(/_1 ended ─[\s\S]*_2 ─+╮\n│ write the docs /)
  expect(scene.memory('MAIN.md', 2)).toContain('write the docs')
  expect(settingsOf(scene.place)).toMatch(/^#:schema .*\nscreen.enter = "queue"\n$/)
})

promise('O71')
test('Enter tells the running turn once that is chosen, and it is shown that a person did', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await personSettings(scene.place, '# Mine\n[screen]\nmotion = "full" # for now\n\n[logging]\nlevel = "info"\n')
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  await terminal.until('Working.')
  terminal.type('leave the API alone')
  await terminal.until('› leave the API alone')
  terminal.press('enter')
  await terminal.until(ASKS)
  terminal.press('enter')
  await terminal.untilInAll(/person.*\n?.*leave the API alone/)
  await terminal.until(rows => !rows.some(row => row.startsWith('› leave')))
  gate.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).toContain('leave the API alone')
  expect(times(terminal, 'leave the API alone')).toBe(1)
  expect(settingsOf(scene.place)).toBe(
    '# Mine\n[screen]\nmotion = "full" # for now\nenter = "tell"\n\n[logging]\nlevel = "info"\n',
  )
})

promise('O71')
test('where the answer cannot be kept, the screen says so in a sentence and does what was chosen', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  await terminal.until('Working.')
  await writeFile(join(scene.place.home, '.config'), 'in the way of the folder')
  terminal.type('leave the API alone')
  await terminal.until('› leave the API alone')
  terminal.press('enter')
  await terminal.until(ASKS)
  terminal.press('enter')
  await terminal.untilInAll(/person.*\n?.*leave the API alone/)
  await terminal.untilInAll(/Enter tells the agent, Tab queues on this screen alone:[\s\S]*cannot\s+be/)
  gate.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})

test('Esc interrupts the round, and the person goes on, tells it something, skips to the next, or stops; what ends it is asked twice', async () => {
  await using scene = await openScene([[held(never)], [held(never)], [held(never)], [held(never)]])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  const rounds = () => new Set(scene.model.requests.map(({ conversation }) => conversation)).size
  const interrupt = async (round: number) => {
    await terminal.until(() => rounds() === round)
    await terminal.until(/Working\.\n(?:.*\n)*.* · round \d/)
    terminal.press('esc')
    await terminal.until(GOES_ON)
  }
  await interrupt(1)
  await terminal.untilInAll('round 1 ended: interrupted')
  expect(rounds()).toBe(1)
  terminal.press('enter')
  await interrupt(2)
  terminal.type('mind the gap')
  await terminal.until('› mind the gap')
  terminal.press('enter')
  await terminal.until(() => rounds() === 3)
  await scene.run('queue', 'add', 'the next one')
  await terminal.until('queued 1 ')
  await interrupt(3)
  expect(scene.input(3)).toContain('mind the gap')
  await terminal.until('5. Skip to the next')
  terminal.press({ text: '5' }, 'enter')
  await terminal.until('start the next in the queue?')
  terminal.press('enter')
  await terminal.untilInAll('the next one')
  await interrupt(4)
  terminal.press({ text: '4' }, 'enter')
  await terminal.until('Stop the session now?')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 130 })
  expect(terminal.all().join('\n')).toMatch(/To continue: codemachine resume \d{8}_2\n/)
})

test('the pager shows the whole log while the work goes on, and comes back with nothing lost', async () => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using scene = await openScene([
    [
      reply(message('Before the pager.'), shell('seq -f "out %g" 60')),
      reply(
        message('Now.'),
        hold(first.promise),
        message('RunOverrides behind the pager.'),
        shell('echo ran behind the pager'),
      ),
      reply(message('Later.'), hold(second.promise), message('After it.')),
    ],
    round(claimDone),
    round(claimDone),
  ])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 24 })
  await terminal.until('Now.')
  terminal.press('ctrl+e')
  await terminal.until('The log of ')
  await terminal.until(() => terminal.modes().alternateScreen)
  await terminal.until('out 60')
  first.resolve()
  await terminal.until('ran behind the pager')
  terminal.press({ text: 'q' })
  await terminal.until('Esc interrupts')
  expect(terminal.modes().alternateScreen).toBe(false)
  await terminal.untilInAll('ran behind the pager')
  terminal.press('ctrl+o')
  await terminal.until('The output of the last command')
  terminal.press({ text: 'q' })
  await terminal.until('Esc interrupts')
  terminal.press({ text: '?' })
  await terminal.until('Everything possible now')
  terminal.press('esc')
  await terminal.until('Esc interrupts')
  second.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, [
    'Before the pager.',
    '$ seq -f "out %g" 60',
    'RunOverrides behind the pager.',
    '$ echo ran behind the pager',
    'After it.',
    'round 1 ended',
  ])
})

test('what is being typed outlives the round and a kill of codemachine, and what was sent is in the history', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), says('That is all.')], [held(never)], [held(never)]])
  {
    await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 24 })
    await terminal.until('Working.')
    terminal.type('queued before')
    await terminal.until('› queued before')
    terminal.press('tab')
    await terminal.until('(1 in the queue)')
    terminal.press('alt+up')
    await terminal.until('› queued before')
    terminal.press('ctrl+u')
    terminal.type('half a thou')
    await terminal.until('› half a thou')
    gate.resolve()
    await terminal.untilInAll('── round 2 ')
    await terminal.until('› half a thou')
    const draft = join(scene.records(), 'draft.json')
    const isKept = () => existsSync(draft) && readFileSync(draft, 'utf8').includes('half a thou')
    await untilInFolder(scene.records(), 'the draft', () => isKept() || null)
    await terminal.kill('SIGKILL')
    await terminal.ended
  }
  await using terminal = startInEmulator(scene.place, ['resume'], { columns: 100, rows: 24 })
  await terminal.until('› half a thou')
  await terminal.until('Working.')
  terminal.press('ctrl+u')
  terminal.press('up')
  await terminal.until('› queued before')
  terminal.press('ctrl+u')
  await terminal.until(rows => rows.includes('›'))
  terminal.press('ctrl+d')
  await terminal.until('Leave now')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 130 })
})

test('a run that ends while its log is read comes back from the pager with all that was to be said', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round('echo one > one.txt')]])
  await using terminal = drawHere(scene, ['--rounds', '1', 'build X'], { columns: 100, rows: 24 })
  await terminal.until('Working.')
  terminal.press('ctrl+e')
  await terminal.until('The log of ')
  gate.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 3 })
  expect(terminal.modes()).toEqual(UNTOUCHED)
  expectOnceEach(terminal, ['Working.', '── round 1 ended: worked', '_1 ended ─', 'To continue: codemachine resume '])
})

test('a run that is asked to end by a signal shows its end and how to go on', async () => {
  await using scene = await openRealScene([[held(never)]])
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 24 })
  await terminal.until('Working.')
  await terminal.kill('SIGTERM')
  expect(await terminal.ended).toEqual({ exitCode: 143 })
  expect(terminal.modes()).toEqual(UNTOUCHED)
  expectOnceEach(terminal, [
    'Working.',
    '── round 1 ended: interrupted',
    '_1 ended ─',
    'To continue: codemachine resume ',
  ])
})
