import { expect, test } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { always, openSmallBuild, runAgent } from '../../../support/build-scene.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { promise } from '../../../support/promise.ts'
import { says } from '../../../support/rounds.ts'
import { hold } from '../../../support/scripted-model.ts'

promise(
  'O80',
  '`/agents` lists the agents of a round, and shows one of them: its commands with output, its files and its words as they stream, without secrets; from there it is told something and stopped, and its end is said',
)
test('in a build a person looks into one agent, sees it speak, tells it something, stops it, and comes back', async () => {
  const [spoken, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using scene = await openSmallBuild(() => ({
    'master-mind': always(
      reply(
        runAgent('backend-dev', 'T1: make the back', ['back']),
        runAgent('frontend-dev', 'T2: make the front', ['front']),
      ),
      says('That was all.'),
    ),
    'backend-dev': always(
      reply(shell('seq -f "line %g of the back" 3')),
      {
        ...reply(message('Word after word. '.repeat(30), { chunkSize: 5 }), hold(spoken.promise), shell('true')),
        deltaMs: 40,
      },
      reply(message('Now I wait.'), hold(never.promise)),
    ),
    'frontend-dev': always(reply(message('I am the front.'), hold(never.promise))),
  }))
  await using terminal = drawHere(scene, ['start', '--yes', '--no-keep-awake'], { columns: 80, rows: 24 })
  await terminal.until(/^● backend-dev /m)
  terminal.type('/agents')
  await terminal.until('› /agents')
  terminal.press('enter')
  await terminal.until(/^Agents, 2 at work · 3 agents/)
  // Who was begun first stands first, below a title, the heads and the main agent.
  await terminal.until(/^ {2}backend-dev +T1/m)
  const row = terminal.screen().findIndex(line => line.startsWith('  backend-dev'))
  for (let at = 2; at < row; at += 1) terminal.press('down')
  await terminal.until(/^› backend-dev +T1/m)
  terminal.press('enter')
  await terminal.until('line 3 of the back')
  await terminal.until(/◆ Word after word\. Word/m)
  expect(terminal.screen().join('\n')).not.toContain('I am the front.')
  terminal.press({ text: 't' })
  await terminal.until('Tell backend-dev:')
  terminal.type('use tabs')
  await terminal.until('Tell backend-dev: use tabs')
  terminal.press('enter')
  await terminal.until(/you to backend-dev|use tabs/)
  await terminal.until(rows => !rows.some(row => row.startsWith('Tell backend-dev')))
  spoken.resolve()
  await terminal.until(/Now I wait\.$/m)
  terminal.press({ text: 's' })
  await terminal.until('Stop backend-dev? The round continues.')
  terminal.press('enter')
  await terminal.until(/^. backend-dev {2}T1 {2}.* · terminated/)
  terminal.press('esc')
  await terminal.until(/^Agents, 1 at work · 3 agents/)
  terminal.press({ text: 'q' })
  await terminal.until(rows => !rows.some(row => row.startsWith('Agents,')))
  await terminal.until(/^● frontend-dev /m)
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).toContain('use tabs')
  terminal.press('ctrl+c')
  await terminal.until('Do you want to modify the plan?')
  terminal.press('ctrl+c')
  expect((await terminal.ended).exitCode).toBe(130)
})
