import { expect, test } from 'vitest'
import { hold, message, reply, shell } from '../../../src/demo/model/reply.ts'
import { type Emulator, startInEmulator } from '../../support/emulator.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { held, round } from '../../support/rounds.ts'
import { expectOnceEach } from '../../support/screen-scene.ts'
import { stopsMidway } from '../../support/stops-midway.ts'

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
  await type(terminal, 'mind the gap', 'tab')
  await terminal.untilInAll(/person.*\n?.*mind the gap/)
  await running.event('steered')
  await type(terminal, 'write the docs', 'enter')
  await terminal.until(/ 1 queued$/m)
  await type(terminal, '/pause', 'enter')
  await running.event('paused')
  await terminal.until(/_1 pauses when round 1 has ended; \/unpause goes on\./)
  end.resolve()
  await running.event('held')
  await terminal.until(/paused/)
  await type(terminal, '/unpause', 'enter')
  await running.event('round-started', ({ round }) => round === 2)
  await terminal.untilInAll(/── round 2 {2}[\s\S]*Working\./)
  await type(terminal, '/skip', 'enter')
  await terminal.until('End this session, and begin the next in the queue?')
  terminal.press('enter')
  await terminal.untilInAll(/_2 ─+╮\n│ write the docs [\s\S]*Working\./)
  terminal.press('esc')
  await terminal.until('Interrupted. How does it go on?')
  terminal.press({ text: '4' }, 'enter')
  await terminal.until('Stop the session now?')
  terminal.press('enter')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect((await running.ended).exitCode).toBe(130)
  expectOnceEach(terminal, ['Begun before', '_1 ended ─', '_2 ended ─'])
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).toContain('mind the gap')
})
