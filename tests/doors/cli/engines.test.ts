import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roundsScript } from '../../../src/demo/model/reply.ts'
import { agentCommand } from '../../engines/acp/acp-agent.ts'
import { codemachine } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { IMPATIENT } from '../../support/real-scene.ts'
import { claimDone, flagDone, round, says } from '../../support/rounds.ts'
import { findIn, writePersonSettings } from '../../support/scene.ts'
import { startScriptedModel, usageLimitReached } from '../../support/scripted-model.ts'

const settings = (url: string) =>
  `[engines.mine]\ncommand = ${JSON.stringify(agentCommand(url))}\nnetwork = ["127.0.0.1"]\n`

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
  const certificate = JSON.parse(findIn(place, []).recorded('done.json'))
  expect(started.map(event => event.reaches)).toEqual([['127.0.0.1'], ['127.0.0.1']])
  expect(certificate.engines).toEqual({ rounds: { mine: 2 }, reached: { mine: ['127.0.0.1'] } })
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
  const { engines } = JSON.parse(findIn(place, []).recorded('done.json'))
  expect(engines).toMatchObject({ rounds: { codex: 2 }, reached: { mine: ['127.0.0.1'] } })
})

promise('E39', 'Another engine goes on with the same round where the usage window of codex is full')
test('where the usage window of codex is full, another agent begins the round again, and its work is proved', async () => {
  const resetsAt = Math.floor(Date.now() / 1000) + 7_200
  await using codex = await startScriptedModel({
    script: roundsScript([round('echo half > answer'), [usageLimitReached(resetsAt)]]),
  })
  await using other = await startScriptedModel({
    script: roundsScript([round('echo 42 > answer', claimDone), round(flagDone)]),
  })
  await using place = await makePlace(codex.codexConfig('scripted', IMPATIENT))
  await writePersonSettings(place, settings(other.url))
  const args = ['--json', '--fallback', 'mine', '--rounds', '5', '--verify', 'grep -q 42 answer', 'Write the answer']
  const { exitCode, events } = await codemachine(place, args)
  expect(exitCode).toBe(0)
  expect(events.find(event => event.type === 'engine-changed')).toMatchObject({ from: 'codex', to: 'mine', round: 2 })
  expect(events.filter(event => event.type === 'waiting')).toEqual([])
  const certificate = JSON.parse(findIn(place, []).recorded('done.json'))
  expect(certificate.engines).toEqual({
    rounds: { codex: 2, mine: 2 },
    changes: [{ round: 2, from: 'codex', to: 'mine' }],
    reached: { mine: ['127.0.0.1'] },
  })
  expect((await codemachineHere(place, ['status'])).stdout).toMatch(/^ +model +from mine$/m)
  const report = (await codemachineHere(place, ['report'])).stdout.replaceAll(/\s+/g, ' ')
  expect(report).toContain('codex 2 rounds, mine 2 rounds; mine could reach 127.0.0.1')
})

test('codemachine doctor tries the engines that the settings name, and no other', async () => {
  await using place = await makePlace('')
  await writePersonSettings(place, `fallback = ["mine"]\n${settings('http://127.0.0.1:9')}`)
  const { stdout } = await codemachine(place, ['doctor'])
  expect(stdout.match(/^\w+ +engine .*$/gm)).toEqual([expect.stringContaining('mine works: scripted 1.0.0')])
})

test('codemachine engines tries each agent, and says how to have those that are missing', async () => {
  await using place = await makePlace('')
  await writePersonSettings(place, settings('http://127.0.0.1:9'))
  const { exitCode, stdout } = await codemachine(place, ['engines'], { env: { PATH: '/usr/bin:/bin' } })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(
    /^ok +engine +mine works: scripted 1\.0\.0; it may also write .*\/engines\/mine; it reaches 127\.0\.0\.1$/m,
  )
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
    'a host with a path',
    ['Do it'],
    '[engines.mine]\ncommand = ["x"]\nnetwork = ["https://x.com/"]\n',
    'config.toml:3: engines.mine.network is ["https://x.com/"]; use a list of hosts, such as ["api.anthropic.com"',
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
