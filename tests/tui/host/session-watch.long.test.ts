import { expect, test } from 'vitest'
import { startInEmulator } from '../../support/emulator.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { expectOnceEach, times } from '../../support/screen-scene.ts'

const never = new Promise<never>(() => {})
const watch = (scene: RealScene, rows = 30) => startInEmulator(scene.place, ['watch'], { columns: 100, rows })

test('two watch a run that has a screen of its own; one who detaches leaves it as it is', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([
    [held(gate.promise), ...round('echo one > one.txt')],
    round(claimDone),
    round(claimDone),
  ])
  await using terminal = startInEmulator(scene.place, ['build X'], { columns: 100, rows: 24 })
  await terminal.until('Working.')
  await using one = watch(scene, 24)
  await using two = watch(scene, 24)
  await Promise.all([one.untilInAll('Working.'), two.untilInAll('Working.')])
  one.press('ctrl+c')
  await one.until(/Ctrl\+C again leaves|modify the plan/)
  one.press('ctrl+c')
  expect(await one.ended).toEqual({ exitCode: 0 })
  expect(await one.stty()).toBe(one.sttyAtStart())
  gate.resolve()
  expect(await Promise.all([terminal.ended, two.ended])).toEqual([{ exitCode: 0 }, { exitCode: 0 }])
  for (const each of [terminal, two]) expectOnceEach(each, ['_1 ───', 'Working.', '── round 2  ', '_1 ended ─'])
  expect(times(one, '_1 ended ─')).toBe(0)
})

test('who watches a run that is killed is told so, and what to do', async () => {
  await using scene = await openRealScene([[held(never)]])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  await using terminal = watch(scene)
  await terminal.until('Working.')
  running.process.kill('SIGKILL')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expectOnceEach(terminal, ['Working.', 'it was cut off. codemachine resume goes on with it'])
})
