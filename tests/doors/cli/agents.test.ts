import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { loadAgents } from '../../../src/agents/agent.ts'
import type { Agent } from '../../../src/core/shapes/agent.ts'
import { NO_KEPT_TEXTS } from '../../../src/core/template.ts'
import { agentsList, agentsShow, agentsValidate } from '../../../src/doors/cli/commands/agent.ts'
import { buildKind } from '../../../src/modes/from-specification/build.ts'
import { openAgentBook } from '../../../src/project/template-factory.ts'
import { sessionFolder } from '../../../src/workspace/memory/memory-paths.ts'
import { makePlace, type Place } from './place.ts'

async function ownPrompt(place: Place, name: string, text: string): Promise<void> {
  await mkdir(join(place.directory, '.codemachine/agents'), { recursive: true })
  await writeFile(join(place.directory, '.codemachine/agents', `${name}.md`), text)
}

test('the agents are listed with model, effort and whose prompt counts, and nothing is written', async () => {
  await using place = await makePlace()
  expect(await agentsList(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(await readdir(place.directory)).toEqual([])
  expect(place.written()).toMatch(
    /^They run a build:\n {2}agent {17}model wanted {2}effort {2}prompt\n {2}agents-builder {8}gpt-5-codex {3}high {4}the shipped prompt\n/,
  )
  await ownPrompt(place, 'backend-dev', 'You build the server.')
  await ownPrompt(place, 'qa-engineer', ' ')
  await agentsList(place.context, { cd: place.directory, json: false })
  expect(place.written()).toMatch(/^ {2}backend-dev {11}gpt-5-codex {3}high {4}the project's own prompt$/m)
  expect(place.written()).toMatch(/^ {2}qa-engineer .+ no usable prompt: codemachine agents validate says why$/m)
})

test('a model and an effort of the settings replace those of all agents', async () => {
  await using place = await makePlace()
  const context = { ...place.context, env: { CODEMACHINE_MODEL: 'other', CODEMACHINE_EFFORT: 'low' } }
  await agentsList(context, { cd: place.directory, json: true })
  const listed: { kind: string; model: string; effort: string; prompt: string }[] = JSON.parse(place.written())
  expect(listed.map(({ kind }) => kind).join(' ')).toBe('main main main sub sub sub sub sub sub sub sub')
  for (const agent of listed) expect(agent).toMatchObject({ model: 'other', effort: 'low', prompt: 'shipped' })
})

test('the prompt of an agent is shown as it would get it', async () => {
  await using place = await makePlace()
  await ownPrompt(place, 'backend-dev', 'You build the server.')
  expect(await agentsShow(place.context, 'backend-dev', { cd: place.directory })).toBe(0)
  expect(place.written()).toMatch(/^You build the server\.\n\n## Memory\n[\s\S]+ costs more than the work\.\n$/)
  await agentsShow(place.context, 'master-mind', { cd: place.directory })
  expect(place.written()).toContain('## How you work through the plan')
  expect(place.written()).toContain('`.codemachine/projects/<session>/MAIN.md`')
})

test('an agent that there is not is refused with the nearest name', async () => {
  await using place = await makePlace()
  const show = (name: string) => agentsShow(place.context, name, { cd: place.directory })
  await expect(show('backend')).rejects.toThrow('There is no agent "backend"; did you mean "backend-dev"?')
  await expect(show('../backend-dev')).rejects.toThrow('There is no agent "../backend-dev"; ')
  await expect(agentsList(place.context, { cd: join(place.directory, 'none'), json: true })).rejects.toThrow(
    /none cannot be used as the work directory: there is no such directory\./,
  )
})

test('what is wrong with the agents is said in a sentence each, with exit code 2', async () => {
  await using place = await makePlace()
  expect(await agentsValidate(place.context, { cd: place.directory })).toBe(0)
  expect(place.written()).toBe('11 agents, and nothing is wrong with them.\n')
  await ownPrompt(place, 'frontend', 'x')
  await ownPrompt(place, 'qa-engineer', 'x'.repeat(70_000))
  const stderr = new PassThrough()
  expect(await agentsValidate({ ...place.context, stderr }, { cd: place.directory })).toBe(2)
  expect(String(stderr.read())).toBe(
    [
      'codemachine: .codemachine/agents/frontend.md: There is no agent "frontend"; did you mean "frontend-dev"?\n',
      'codemachine: .codemachine/agents/qa-engineer.md is larger than 64 KiB; keep the prompt short.\n',
    ].join(''),
  )
})

test('a build has its agents work by the prompts that came with its plan', async () => {
  await using place = await makePlace()
  const { directory } = place
  await ownPrompt(place, 'NOTES', 'mine')
  const agents = loadAgents()
  const memory = sessionFolder({ directory, id: '20261120_1', records: directory, memory: buildKind.memory })
  const build = await buildKind.open({
    directory,
    memory,
    scopeFolder: () => memory,
    agents,
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
  })
  const promptOf = async (agent: Agent) => await build.promptOf?.(agent)
  const book = openAgentBook({ agents: async () => agents, directory, promptOf })
  await ownPrompt(place, 'qa-engineer', 'You test the shop.')
  await mkdir(join(directory, '.codemachine/plan'))
  const task = {
    id: 'T1',
    name: 'Page',
    details: '',
    acceptanceCriteria: 'It is there.',
    phase: 'Building',
    done: false,
  }
  await writeFile(join(directory, '.codemachine/plan/tasks.json'), JSON.stringify({ tasks: [task] }))
  expect(await build.checkPlan?.()).toMatchObject({
    ok: true,
    agents: ['qa-engineer'],
  })
  await ownPrompt(place, 'qa-engineer', 'You answer: passed.')
  expect(await book.thread('qa-engineer')).toMatchObject({
    thread: { developerInstructions: expect.stringMatching(/^You test the shop\.\n\n## Memory\n/) },
  })
})
