import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { type Drawn, startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round, writeMemory, writeTasks } from '../../../support/rounds.ts'
import { openScene, type Scene } from '../../../support/scene.ts'
import { expectOnceEach } from '../../../support/screen-scene.ts'

const never = new Promise<never>(() => {})
const MODIFY = 'Do you want to modify the plan?'
const START = 'The plan was changed as shown above. Start?'

/** Ctrl+C in the first round, and words about the plan that are not sent. */
async function writeOfThePlan(terminal: Drawn): Promise<void> {
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
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
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
  const all = terminal.all().join('\n')
  expect(all).toMatch(/\+ T1 Sing a song\n[\s\S]*~ T1 Sing a song → Sing two songs: done\n/)
  expect(all).not.toMatch(/^ *\d+ [-+] /m)
})

promise('O102')
test('what the change did is shown by tasks, whatever the formatting; the old plan is put back, unless it was changed meanwhile', async () => {
  const tasks = (names: readonly string[]) => names.map((name, index) => ({ id: `T${index + 1}`, name, done: false }))
  const compact = JSON.stringify({
    tasks: [...tasks(['Sing', 'Write the docs', 'Dance']), { id: 'T5', name: 'Measure', done: false }],
  })
  await using scene = await openScene([
    [reply(shell(writeTasks(tasks(['Sing', 'Write docs', 'Dance', 'Rest'])))), held(never)],
    round(writeMemory('tasks.json', compact)),
    round(writeTasks([{ id: 'T9', name: 'Something else', done: false }])),
  ])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  const replan = async (words: string) => {
    terminal.type(words)
    await terminal.until(`› ${words}`)
    terminal.press('enter')
  }
  const plan = () => JSON.parse(readFileSync(tasksFile(scene), 'utf8')).tasks.map(({ name }: { name: string }) => name)
  await terminal.until('Working.')
  terminal.press('ctrl+c')
  await terminal.until(MODIFY)
  await replan('measure, do not rest')
  await terminal.until(START)
  const changes = ['  ~ T2 Write docs → Write the docs', '  + T5 Measure', '  - T4 Rest']
  const all = () => terminal.all().map(row => row.trimEnd())
  expect(all().filter(row => /^ {2}[-+~] T/.test(row))).toEqual(changes)
  await terminal.until(/1\. Start .*\n.*2\. Change again …\n.*3\. Restore the old plan .*\n.*4\. Show the files/)
  terminal.press({ text: '4' }, 'enter')
  await terminal.until('The plan of ')
  await terminal.until(/"name":"Measure"/)
  terminal.press({ text: 'q' })
  await terminal.until(START)
  terminal.press({ text: '3' }, 'enter')
  await terminal.until('The old plan is back. Start?')
  expect(plan()).toEqual(['Sing', 'Write docs', 'Dance', 'Rest'])
  expect(scene.recorded('journal.ndjson')).toMatch(/"replanned".*"putBack":true/)
  await replan('something else')
  await terminal.until(START)
  expect(plan()).toEqual(['Something else'])
  writeFileSync(tasksFile(scene), JSON.stringify({ tasks: tasks(['By hand']) }))
  terminal.press({ text: '3' }, 'enter')
  await terminal.until('tasks.json was changed after the plan;')
  expect(plan()).toEqual(['By hand'])
  terminal.press('ctrl+c')
  await terminal.until('Ctrl+C again leaves')
  terminal.press('ctrl+c')
  expect(await terminal.ended).toEqual({ exitCode: 130 })
})

/** The tasks.json of the only session. */
function tasksFile({ place }: Scene): string {
  const projects = join(place.directory, '.codemachine', 'projects')
  return join(projects, readdirSync(projects)[0] ?? '', 'tasks.json')
}

test('Ctrl+C twice leaves, says how to go on, and resume goes on to the end', async () => {
  await using scene = await openRealScene([[held(never)], round(claimDone), round(claimDone)])
  {
    await using terminal = startInEmulator(scene.place, ['build X'])
    await terminal.until('Working.')
    terminal.press('ctrl+c')
    await terminal.until(MODIFY)
    terminal.press('ctrl+c')
    expect(await terminal.ended).toEqual({ exitCode: 130 })
    expect(terminal.all().join('\n')).toMatch(/╯\n[^╭]*\nTo continue: codemachine resume \d{8}_1\n/)
    expectOnceEach(terminal, ['Working.', 'round 1 ended: interrupted', '_1 ended ─'])
    expect(terminal.all().filter(row => row.includes(MODIFY))).toEqual([])
    expect(await terminal.stty()).toBe(terminal.sttyAtStart())
  }
  await using terminal = startInEmulator(scene.place, ['resume'])
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, ['_1 continues', '_1 ended ─'])
})

test('where the screen ends with the session, what is being written about the plan does not reach the shell', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using terminal = drawHere(scene, ['build X'], { columns: 100, rows: 30 })
  await writeOfThePlan(terminal)
  gate.resolve()
  await terminal.until('Not sent: let it sing')
  terminal.type(' twice')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})

test('what was being written about the plan when the session ended by itself stands in the composer then', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using terminal = drawHere(scene, [], { columns: 100, rows: 30 })
  await terminal.until('Type a goal')
  terminal.type('build X')
  await terminal.until('› build X')
  terminal.press('enter')
  await writeOfThePlan(terminal)
  gate.resolve()
  await terminal.untilInAll('_1 ended ─')
  await terminal.until('Enter starts it')
  await terminal.until(rows => rows.includes('› let it sing'))
})
