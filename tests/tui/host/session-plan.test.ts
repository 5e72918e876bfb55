import { expect, test } from 'vitest'
import { type Emulator, startInEmulator } from '../../support/emulator.ts'
import { claimDone, held, round, writeTasks } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { expectOnceEach } from '../../support/screen-scene.ts'

const never = new Promise<never>(() => {})
const MODIFY = 'Do you want to modify the plan?'
const START = 'The plan was changed as shown above. Start?'

/** Ctrl+C in the first round, and words about the plan that are not sent. */
async function writeOfThePlan(terminal: Emulator): Promise<void> {
  await terminal.until('Working.')
  terminal.press('ctrl+c')
  await terminal.until(MODIFY)
  terminal.type('let it sing')
  await terminal.until('› let it sing')
}

test('Ctrl+C asks what is to be different; the change is shown, modified again, and then started', async () => {
  await using scene = await openScene([
    [held(never)],
    round(writeTasks([{ id: 'T1', name: 'Sing a song', done: false }])),
    round(writeTasks([{ id: 'T1', name: 'Sing two songs', done: true }])),
    round(claimDone),
    round(claimDone),
  ])
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 30 })
  await terminal.until('Working.')
  terminal.press('ctrl+c')
  await terminal.until(MODIFY)
  terminal.press('esc')
  await terminal.until(rows => !rows.some(row => row.includes(MODIFY)))
  expect(scene.recorded('journal.ndjson')).not.toMatch(/interrupt-asked|replan-asked|paused/)
  terminal.press('ctrl+c')
  await terminal.until(MODIFY)
  terminal.type('let it sing')
  await terminal.until('› let it sing')
  terminal.press('enter')
  await terminal.until(START)
  expect(scene.input(2)).toContain('let it sing')
  terminal.type('twice')
  await terminal.until('› twice')
  terminal.press('enter')
  await terminal.untilInAll('Sing two songs')
  await terminal.until(START)
  expect(scene.model.requests.some(({ conversation }) => conversation === 3)).toBe(false)
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(scene.input(3)).toContain('twice')
  expectOnceEach(terminal, ['let it sing', 'round 1 ended: interrupted', 'twice'])
  expect(terminal.all().join('\n')).toMatch(/\+.*"name": "Sing a song"[\s\S]*-.*"name": "Sing a song"/)
})

test('Ctrl+C twice leaves, says how to go on, and resume goes on to the end', async () => {
  await using scene = await openScene([[held(never)], round(claimDone), round(claimDone)])
  {
    await using terminal = startInEmulator(scene.place, ['build X'])
    await terminal.until('Working.')
    terminal.press('ctrl+c')
    await terminal.until(MODIFY)
    terminal.press('ctrl+c')
    expect(await terminal.ended).toEqual({ exitCode: 130 })
    expect(terminal.all().join('\n')).toMatch(/╯\n[^╭]*\nTo go on: codemachine resume \d{8}_1\n/)
    expectOnceEach(terminal, ['Working.', 'round 1 ended: interrupted', '_1 ended ─'])
    expect(terminal.all().filter(row => row.includes(MODIFY))).toEqual([])
    expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  }
  await using terminal = startInEmulator(scene.place, ['resume'])
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, ['_1 goes on', '_1 ended ─'])
})

test('where the screen ends with the session, what is being written about the plan does not reach the shell', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 30 })
  await writeOfThePlan(terminal)
  gate.resolve()
  await terminal.until('This was not sent: let it sing')
  terminal.type(' twice')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})

test('what was being written about the plan when the session ended by itself stands in the composer then', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using terminal = startInEmulator(scene.place, [], { columns: 100, rows: 30 })
  await terminal.until('Type what to work on')
  terminal.type('build X')
  await terminal.until('› build X')
  terminal.press('enter')
  await writeOfThePlan(terminal)
  gate.resolve()
  await terminal.untilInAll('_1 ended ─')
  await terminal.until('Enter starts it')
  await terminal.until(rows => rows.includes('› let it sing'))
})
