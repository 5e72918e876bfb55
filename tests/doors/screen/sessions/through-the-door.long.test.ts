import { expect, test } from 'vitest'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'

const never = new Promise<never>(() => {})

promise(
  'O81',
  '`/sessions` and `codemachine sessions` are a table of the sessions, the newest first, that is shown while it is read and follows what changes; Enter offers what can be done with one; piped it is `codemachine list`',
)
test('codemachine sessions is a table in a terminal: one is found, its report read, another gone on with; piped it is list', async () => {
  await using scene = await openRealScene([round(claimDone), [held(never)], round(claimDone)])
  await scene.run('--json', '--no-keep-awake', 'paint the door')
  const running = scene.start('--json', '--no-keep-awake', 'oil the hinges')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await using terminal = startInEmulator(scene.place, ['sessions'], { columns: 110, rows: 16 })
  await terminal.until(/^› running +\d{8}_2 +oil the hinges/m)
  await terminal.until(/^ {2}done +\d{8}_1 +paint the door .*not verified$/m)
  running.process.kill('SIGINT')
  expect((await running.ended).exitCode).toBe(130)
  await terminal.until(/^› interrupted +\d{8}_2/m)

  terminal.type('/door')
  await terminal.until(/ · 1 of 2 sessions/)
  terminal.press('enter', 'enter')
  await terminal.until(/^› Report/m)
  terminal.press('enter')
  await terminal.until(/^goal +paint the door/m)
  terminal.press({ text: 'q' })
  await terminal.until(/^› Report/m)
  terminal.press({ text: 'q' })
  await terminal.until(/ · 1 of 2 sessions/)
  terminal.press('esc')
  await terminal.until(/^Sessions of .* · 2 sessions$/m)
  terminal.press('home', 'enter')
  await terminal.until(/\d{8}_2 · interrupted · oil the hinges/)
  await terminal.until(/^ {2}Resume/m)
  terminal.press('down', 'down')
  await terminal.until(/^› Resume/m)
  terminal.press('enter')
  await terminal.untilInAll(/_2 ended ─[\s\S]*oil the hinges/)
  expect(await terminal.ended).toEqual({ exitCode: 0 })

  const [asTable, asList] = await Promise.all([scene.run('sessions', '--json'), scene.run('list', '--json')])
  expect(asTable.stdout).toBe(asList.stdout)
  expect(JSON.parse(asTable.stdout)).toHaveLength(2)
})

promise('O81')
test('/sessions on the screen of a running session shows it as running, and refuses to go on with another one', async () => {
  await using scene = await openScene([[held(never)], [held(never)]])
  await using first = drawHere(scene, ['paint the door'], { columns: 110, rows: 24 })
  await first.until('Working.')
  first.press('ctrl+c')
  await first.until('Do you want to modify the plan?')
  first.press('ctrl+c')
  await first.ended
  await using terminal = drawHere(scene, ['oil the hinges'], { columns: 110, rows: 24 })
  await terminal.until('Working.')
  terminal.type('/sessions')
  await terminal.until('› /sessions')
  terminal.press('enter')
  await terminal.until(/^› running +\d{8}_2 +oil the hinges/m)
  terminal.press('down')
  await terminal.until(/^› interrupted +\d{8}_1/m)
  terminal.press('enter')
  await terminal.until(/Resume +A session is running\. End it with \/stop, then resume another one/)
  terminal.press({ text: 'q' }, { text: 'q' })
  await terminal.until(/Working\.[\s\S]*Esc interrupts/)
  terminal.press('ctrl+c')
  await terminal.until('Do you want to modify the plan?')
  terminal.press('ctrl+c')
  expect((await terminal.ended).exitCode).toBe(130)
})
