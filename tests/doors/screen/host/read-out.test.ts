import { expect, test } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'

const never = new Promise<never>(() => {})

test('a screen reader is read agents, sessions and changes as sentences, where others get tables that fill the terminal', async () => {
  const paints = reply(shell('echo red > door.txt'))
  await using scene = await openRealScene([round(claimDone), [paints, held(never)]])
  await scene.run('--plain', '--no-keep-awake', 'paint the door')
  const env = { INK_SCREEN_READER: 'true' }
  await using terminal = startInEmulator(scene.place, ['oil the hinges'], { columns: 160, rows: 30, env })
  await terminal.untilInAll('Working.')
  const typed = async (command: string, ...said: RegExp[]) => {
    terminal.type(command)
    terminal.press('enter')
    for (const each of said) await terminal.untilInAll(each)
  }
  await typed('/agents', /^main agent; .+\d:\d\d.*\.$/m)
  await typed(
    '/sessions',
    /^\d{8}_2; running; oil the hinges; began .+\.$/m,
    /^\d{8}_1; done; paint the door; began .+; not verified\.$/m,
  )
  await typed(
    '/diff',
    /^1 file changed from \d{8}_2\/start to now: 1 lines? added, 0 removed\.$/m,
    /^door\.txt; 1 added, 0 removed\.$/m,
  )
  terminal.press('ctrl+c')
  await terminal.untilInAll('Do you want to modify the plan?')
  terminal.press('ctrl+c')
  expect((await terminal.ended).exitCode).toBe(130)
})
