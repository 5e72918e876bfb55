import { expect } from 'vitest'
import { message, reply, roundsScript, shell } from '../../../../src/demo/model/reply.ts'
import { openBuild } from '../../../support/build-scene.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { openScene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'
import { gate, leavesAsFound, rowsWith, started } from './manners.ts'

test('commands print what was asked, and the composer is there again', async () => {
  await using scene = await openRealScene([])
  await using seen = startInEmulator(scene.place, [], { rows: 40 })
  await started(seen)
  const answers: [string, string | RegExp][] = [
    ['/version', /codemachine \d.*codex \d/],
    ['/mcp', /MCP servers/],
    ['/status', /Nothing runs in .*\n.*No sessions yet/],
    ['/theme light', 'This screen now uses the theme light'],
    ['/doctor', /codex.*0\.\d/],
    ['/start', /specifications\.md/],
  ]
  for (const [command, answer] of answers) {
    seen.type(command)
    await seen.until(`› ${command}`)
    seen.press('enter')
    await seen.untilInAll(answer)
    await started(seen)
  }
  seen.type('/halp')
  seen.press('enter')
  await seen.until('did you mean /help?')
  seen.press('ctrl+u')
  for (const keys of ['/help', '?']) {
    seen.type(keys)
    if (keys === '/help') {
      await seen.until('› /help')
      seen.press('enter')
    }
    await seen.until('Search the prompts')
    seen.press({ text: 'q' })
    await started(seen)
  }
  seen.press('ctrl+d')
  await leavesAsFound(seen)
  expect(rowsWith(seen.all(), 'This screen now uses the theme light')).toHaveLength(1)
})

test('the title of the window says what goes on, and is given back', async () => {
  const { opened, open } = gate()
  await using scene = await openScene([
    [reply(message('I wait.'), hold(opened), shell('true')), reply(message('Over.'))],
  ])
  await using seen = drawHere(scene, ['--rounds', '1'])
  await started(seen)
  await seen.until(() => seen.title() === 'codemachine')
  seen.type('Name it\r')
  await seen.until('I wait.')
  await seen.until(() => /round 1 .* — Name it/.test(seen.title()))
  open()
  await seen.untilInAll(/To continue: (?:codemachine |\/)resume/)
  await seen.until(() => seen.title() === 'codemachine')
  seen.press('ctrl+d')
  await leavesAsFound(seen)
})

test('while a session runs, /start has the specification wait as the next one', async () => {
  const { opened, open } = gate()
  const waits = [reply(message('I wait.'), hold(opened), shell('true')), reply(message('Over.'))]
  await using scene = await openBuild(roundsScript([waits]))
  await using seen = drawHere(scene, ['--rounds', '1', 'goal one'], { rows: 40 })
  await seen.until('I wait.')
  seen.type('/start goal')
  await seen.until('› /start goal')
  seen.press('enter')
  await seen.until('Yes, start it next')
  seen.press('enter')
  await seen.until('Queued as the next session (1 in the queue)')
  const { stdout } = await scene.run('queue', 'list', '--json')
  expect(JSON.parse(stdout)).toMatchObject([
    { template: 'goal', prompt: expect.stringMatching(/^Build .+specifications\.md/) },
  ])
  await scene.run('queue', 'rm', '1')
  open()
  await leavesAsFound(seen)
})
