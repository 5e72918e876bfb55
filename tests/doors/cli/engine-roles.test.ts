import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roundsScript } from '../../../src/demo/model/reply.ts'
import { agentCommand } from '../../engines/acp/acp-agent.ts'
import { codemachine } from '../../support/codemachine.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { round, says } from '../../support/rounds.ts'
import { findIn, writePersonSettings } from '../../support/scene.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'

const settings = (url: string) => `[engines.mine]\ncommand = ${JSON.stringify(agentCommand(url))}\n`

const step = (engine: string) => `  [[workflow.steps]]\n  agent = "writer"\n  engine = "${engine}"\n`
const flow = (...engines: string[]) =>
  `name = "two"\n[agents.writer]\nprompt = "writer.md"\n[workflow]\n${engines.map(step).join('')}`

async function lay({ directory }: TestPlace, text: string): Promise<void> {
  await mkdir(join(directory, '.codex-flow'))
  await writeFile(join(directory, 'two.toml'), text)
  await writeFile(join(directory, '.codex-flow', 'writer.md'), 'You write.\n')
}

promise('E41', 'A step of a workflow runs on the engine that it names, and is replayed without it')
test('a step of a workflow runs on its own engine, status and journal say so, and a replay needs no agent', async () => {
  await using codex = await startScriptedModel({ script: roundsScript([[says('Of codex.')]]) })
  await using other = await startScriptedModel({ script: roundsScript([[says('Of another agent.')]]) })
  await using place = await makePlace(codex.codexConfig('scripted'))
  await writePersonSettings(place, settings(other.url))
  await lay(place, flow('codex', 'mine'))
  const ran = await codemachine(place, ['flow', 'run', 'two.toml', '--no-mock', '--json'])
  expect([ran.exitCode, ran.stderr]).toEqual([0, ''])
  const engines = ran.events.flatMap(event => (event.type === 'round-started' ? [event.engine] : []))
  expect(engines).toEqual(['codex', 'mine'])
  expect(findIn(place, []).recorded('journal.ndjson')).toContain('Of another agent.')
  const status = await codemachine(place, ['status'])
  expect(status.stdout).toContain('from mine')
  await writePersonSettings(place, '[engines.mine]\ncommand = ["/nowhere/agent"]\n')
  const replayed = await codemachine(place, ['flow', 'run', 'two.toml', '--mock', '--pace', '0'])
  expect([replayed.exitCode, replayed.stderr]).toEqual([0, ''])
  expect(replayed.stdout).toContain('Of another agent.')
  expect(other.requests).toHaveLength(1)
})

promise('E43', 'An agent that is called by itself works on the engine that the settings name for it')
test('an agent with another engine does a task by itself, and codex needs no login for it', async () => {
  await using other = await startScriptedModel({
    script: roundsScript([round('echo made > made.txt', 'printf %s "$CODEMACHINE_AGENTS" > by')]),
  })
  await using place = await makePlace('')
  await writePersonSettings(place, `[agents.backend-dev]\nengine = "mine"\n${settings(other.url)}`)
  await mkdir(join(place.directory, '.codemachine'))
  const ran = await codemachine(place, ['--agent', 'backend-dev', 'Make it'])
  expect([ran.exitCode, ran.stdout, ran.stderr]).toEqual([0, 'This is as far as it goes.\n', ''])
  const read = (file: string) => readFile(join(place.directory, file), 'utf8')
  expect([await read('made.txt'), await read('by')]).toEqual(['made\n', 'backend-dev'])
  const memory = await read('.codemachine/memory/.backend-memory.md')
  expect(memory).toContain('This is as far as it goes.')
})

test.each<[string, string[], string, string]>([
  [
    'a planner of a change',
    ['change', '--planner-engine', 'clade', 'Do it'],
    '',
    '--planner-engine: there is no engine "clade"; did you mean "claude"?',
  ],
  [
    'an executor of a change',
    ['change', 'Do it'],
    '[change]\nexecutor_engine = "clade"\n',
    'config.toml:2: there is no engine "clade"; did you mean "claude"?',
  ],
  [
    'a reviewer of a team',
    ['team', '--reviewer-engine', 'clade', 'Do it'],
    '',
    '--reviewer-engine: there is no engine "clade"; did you mean "claude"?',
  ],
  [
    'a worker of a team that may have no shell',
    ['team', '--worker-engine', 'claude', '--stepwise', 'Do it'],
    '',
    'The engine claude always runs commands itself, and this step forbids that; use the engine codex.',
  ],
  [
    'an agent of a build',
    ['Do it'],
    '[agents.frontend-dev]\nengine = "clade"\n',
    'config.toml:2: there is no engine "clade"; did you mean "claude"?',
  ],
  [
    'a step of a workflow',
    ['flow', 'validate', 'two.toml'],
    '',
    'two.toml:7:12: workflow.steps[0].engine: there is no engine "clade"; the nearest is "claude"',
  ],
])(
  '%s with an engine that there is not, or that cannot do it, is refused before anything begins',
  async (_, args, person, says) => {
    await using place = await makePlace('')
    await writePersonSettings(place, person)
    await lay(place, flow('clade'))
    const { exitCode, stdout, stderr } = await codemachine(place, args)
    expect([exitCode, `${stdout}${stderr}`]).toEqual([2, expect.stringContaining(says)])
  },
)

test("a project's own file cannot give an agent an engine, and a person is told", async () => {
  await using place = await makePlace('')
  await writeFile(join(place.directory, 'reader.md'), 'You read.\n')
  await writeFile(
    join(place.directory, 'codemachine.toml'),
    '[agents.reader]\nprompt = "reader.md"\nengine = "claude"\n',
  )
  const { exitCode, stderr } = await codemachine(place, ['agents', 'list'])
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining("codemachine.toml:3: a project's file cannot name the engine of an agent."),
  ])
})
