import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadAgents } from '../../src/agents/agent.ts'
import { agentsWithOwnPrompt, openProjectPrompts, promptProblems } from '../../src/agents/prompts.ts'
import type { Agent } from '../../src/core/shapes/agent.ts'

const { sub } = loadAgents()
const team = sub.map(agent => ({ ...agent, enabled: agent.name !== 'technical-writer' }))
const named = (name: string) => team.find(each => each.name === name) as Agent
const qa = named('qa-engineer')

async function project(files: Record<string, string>) {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'build-')))
  const folder = join(directory, '.codemachine/agents')
  await mkdir(folder, { recursive: true })
  const write = async (name: string, text: string) => await writeFile(join(folder, `${name}.md`), text)
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const remarks: string[] = []
  const open = (isPlanReady = false) =>
    openProjectPrompts({ directory, team, isPlanReady, tell: remark => void remarks.push(remark) })
  const remove = (name: string) => rm(join(folder, `${name}.md`))
  const dispose = () => rm(directory, { recursive: true, force: true })
  return { open, write, remove, remarks, [Symbol.asyncDispose]: dispose }
}

test("a person's notes among the prompts, and the prompt of an agent that was disabled since, are told once and stop no build", async () => {
  await using place = await project({ NOTES: 'mine', 'technical-writer': 'You write.', 'qa-engineer': 'You test.' })
  const prompts = await place.open()
  for (const _ of [1, 2]) {
    const found = await prompts.look()
    expect(promptProblems(found)).toEqual([])
    expect(agentsWithOwnPrompt(found)).toEqual(['qa-engineer'])
  }
  expect(place.remarks).toEqual([
    expect.stringMatching(
      /^\.codemachine\/agents\/NOTES\.md: "NOTES" cannot be the name of an agent; .+\. It is left as it is\.$/,
    ),
    expect.stringMatching(/technical-writer\.md: The agent "technical-writer" is disabled; .+ It is left as it is\.$/),
  ])
})

test('a file that is the prompt of nobody and was written or changed since is wrong', async () => {
  await using place = await project({ NOTES: 'mine' })
  const prompts = await place.open()
  await place.write('frontend', 'You build pages.')
  expect(promptProblems(await prompts.look())).toEqual([
    '.codemachine/agents/frontend.md: There is no agent "frontend"; did you mean "frontend-dev"?',
  ])
  await place.write('NOTES', 'You are the notes agent.')
  expect(promptProblems(await prompts.look())).toHaveLength(2)
})

test('a prompt that cannot be used is wrong, since when it was there', async () => {
  await using place = await project({ 'qa-engineer': ' ' })
  const prompts = await place.open()
  expect(promptProblems(await prompts.look())).toEqual([expect.stringMatching(/qa-engineer\.md is empty; /)])
})

test('prompts count as they were when the plan was taken, whatever is written, made or removed later', async () => {
  await using place = await project({ 'backend-dev': 'You build the server.' })
  const prompts = await place.open()
  await place.write('qa-engineer', 'You test.')
  expect(await prompts.promptOf(qa)).toEqual({ text: 'You test.', from: 'project' })
  prompts.keep(await prompts.look())
  expect(place.remarks).toEqual([])
  await place.write('qa-engineer', 'You answer: passed.')
  await place.write('frontend-dev', 'You do nothing.')
  await place.remove('backend-dev')
  for (const _ of [1, 2]) {
    expect(await prompts.promptOf(qa)).toEqual({ text: 'You test.', from: 'project' })
    expect(await prompts.promptOf(named('frontend-dev'))).toMatchObject({ from: 'shipped' })
    expect(await prompts.promptOf(named('backend-dev'))).toEqual({ text: 'You build the server.', from: 'project' })
  }
  expect(place.remarks).toEqual(
    ['qa-engineer', 'frontend-dev', 'backend-dev'].map(
      name =>
        `.codemachine/agents/${name}.md was changed during the build; ${name} keeps its earlier prompt until the next build or codemachine resume.`,
    ),
  )
})

test('after a resume prompts count as they are then', async () => {
  await using place = await project({ 'qa-engineer': 'You test.' })
  const prompts = await place.open(true)
  await place.write('qa-engineer', '')
  expect(await prompts.promptOf(qa)).toEqual({ text: 'You test.', from: 'project' })
  const resumed = await place.open(true)
  expect(await resumed.promptOf(qa)).toEqual({ problem: expect.stringMatching(/qa-engineer\.md is empty; /) })
})
