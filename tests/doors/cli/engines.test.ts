import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roundsScript } from '../../../src/demo/model/reply.ts'
import { agentCommand } from '../../engines/acp/acp-agent.ts'
import { codemachine } from '../../support/codemachine.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, flagDone, round, says } from '../../support/rounds.ts'
import { writePersonSettings } from '../../support/scene.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'

const settings = (url: string) => `[engines.mine]\ncommand = ${JSON.stringify(agentCommand(url))}\n`

const agrees = says(JSON.stringify({ verdict: 'agreed', summary: 'Good.', findings: [] }))

promise('E38', 'Another agent than codex works on a goal in rounds to its end, with gates, review and savepoints')
test('another agent works on a goal round by round, and codemachine proves it as ever', async () => {
  await using model = await startScriptedModel({
    script: roundsScript([round('echo 42 > answer', claimDone), round(flagDone), [agrees]]),
  })
  await using place = await makePlace('')
  await writePersonSettings(place, settings(model.url))
  const ended = await codemachine(place, [
    '--json',
    ...['--engine', 'mine', '--rounds', '3', '--review', '--verify', 'grep -q 42 answer'],
    'Write the answer',
  ])
  expect([ended.exitCode, ended.events.at(-1)]).toEqual([0, expect.objectContaining({ type: 'session-ended' })])
  const started = ended.events.filter(event => event.type === 'round-started')
  expect(started.map(event => event.engine)).toEqual(['mine', 'mine'])
  expect(readFileSync(join(place.directory, 'answer'), 'utf8')).toBe('42\n')
  // What it had lies in its own folder, and goes on with it.
  const again = await codemachine(place, ['resume', '--rounds', '4'])
  expect(again.exitCode).toBe(2)
})

test('a reviewer of another engine than the rounds has to agree, and is asked with no model of theirs', async () => {
  await using codex = await startScriptedModel({
    script: roundsScript([round('echo 42 > answer', claimDone), round(flagDone)]),
  })
  await using other = await startScriptedModel({ script: roundsScript([[agrees]]) })
  await using place = await makePlace(codex.codexConfig('scripted'))
  await writePersonSettings(place, `model = "scripted"\n[reviewer]\nengine = "mine"\n${settings(other.url)}`)
  const { exitCode, events } = await codemachine(place, ['--json', '--rounds', '3', '--review', 'Write the answer'])
  expect(exitCode).toBe(0)
  const review = events.find(event => event.type === 'review-started')
  expect(review).toMatchObject({ engine: 'mine', model: null })
  expect(other.requests).toHaveLength(1)
})

test('codemachine engines tries each agent, and says how to have those that are missing', async () => {
  await using place = await makePlace('')
  await writePersonSettings(place, settings('http://127.0.0.1:9'))
  const { exitCode, stdout } = await codemachine(place, ['engines'], { env: { PATH: '/usr/bin:/bin' } })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^ok +engine +mine works: scripted 1\.0\.0; it may also write .*\/engines\/mine$/m)
  expect(stdout).toContain('Install it with `npm install --global @agentclientprotocol/claude-agent-acp`')
})

test.each([
  ['--engine', ['--engine', 'clade', 'Do it'], '', '--engine: there is no engine "clade"; did you mean "claude"?'],
  [
    'a table without a command',
    ['Do it'],
    '[engines.mine]\nhome = ["~/.mine"]\n',
    'config.toml:1: the engine mine has no command; name its program',
  ],
  [
    "codemachine's own name",
    ['Do it'],
    '[engines.exec]\ncommand = ["x"]\n',
    "the engine exec is codemachine's own; choose another name",
  ],
])('%s that names no engine is refused before anything starts', async (_, args, person, says) => {
  await using place = await makePlace('')
  await writePersonSettings(place, person)
  const { exitCode, stderr } = await codemachine(place, [...args])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(says)])
})
