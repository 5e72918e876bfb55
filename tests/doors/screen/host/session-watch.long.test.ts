import { expect, test } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { type Emulator, startInEmulator } from '../../../support/emulator.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'
import { expectOnceEach, times } from '../../../support/screen-scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { stopsMidway } from '../../../support/stops-midway.ts'

const never = new Promise<never>(() => {})
const watch = (scene: RealScene, rows = 30) => startInEmulator(scene.place, ['watch'], { columns: 100, rows })
const type = async (terminal: Emulator, text: string, key: 'enter' | 'tab') => {
  terminal.type(text)
  await terminal.until(`› ${text}`)
  terminal.press(key)
}

test('who watches a run without a terminal sees its words grow, and steers, queues, pauses and stops it', async () => {
  const word = Promise.withResolvers<void>()
  const seen = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const rounds = [
    [
      reply(message('Begun before anyone watched.'), shell('true')),
      {
        ...reply(hold(word.promise), message('Word after word it says. '.repeat(40), { chunkSize: 5 }), shell('true')),
        deltaMs: 5,
      },
      held(end.promise),
      ...round('echo one > one.txt'),
    ],
    [held(never)],
    [held(never)],
  ]
  await using scene = await openRealScene(rounds, { modelClock: stopsMidway(12, seen.promise) })
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'command')
  await using terminal = watch(scene)
  await terminal.untilInAll('Begun before anyone watched.')
  word.resolve()
  await terminal.until('Word after word it says. Word after')
  expect(scene.recorded('journal.ndjson')).not.toContain('Word after word')
  seen.resolve()
  await terminal.until('Working.')
  await type(terminal, 'mind the gap', 'enter')
  await terminal.until('Tell the agent, or queue it?')
  terminal.press('enter')
  await terminal.untilInAll(/person.*\n?.*mind the gap/)
  await running.event('steered')
  await type(terminal, 'write the docs', 'tab')
  await terminal.until(/^queued 1 /m)
  await type(terminal, '/pause', 'enter')
  await running.event('paused')
  await terminal.until(/_1 pauses when round 1 has ended; \/unpause continues\./)
  end.resolve()
  await running.event('held')
  await terminal.until(/paused/)
  await type(terminal, '/unpause', 'enter')
  await running.event('round-started', ({ round }) => round === 2)
  await terminal.untilInAll(/── round 2 {2}[\s\S]*Working\./)
  await type(terminal, '/skip', 'enter')
  await terminal.until('End this session and start the next in the queue?')
  terminal.press('enter')
  await terminal.untilInAll(/_2 ─+╮\n│ write the docs [\s\S]*Working\./)
  terminal.press('esc')
  await terminal.until('Interrupted. What next?')
  terminal.press({ text: '4' }, 'enter')
  await terminal.until('Stop the session now?')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect((await running.ended).exitCode).toBe(130)
  expectOnceEach(terminal, ['Begun before', '_1 ended ─', '_2 ended ─'])
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).toContain('mind the gap')
})

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
  expectOnceEach(terminal, ['Working.', 'It was cut off and is no longer running. codemachine resume continues it'])
})
