import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadAgents } from '../../src/agents/agent.ts'
import {
  agentInstructions,
  agentsWithOwnPrompt,
  compositePrompt,
  promptProblems,
  readAgentPrompt,
  readPromptFolder,
  writeAgentsConfig,
} from '../../src/agents/prompts.ts'
import type { Agent } from '../../src/core/shapes/agent.ts'

const { main, sub, goal } = loadAgents()
/** Who has a prompt of the project's own that can be used, and what is wrong with the others. */
async function lookAt(directory: string, team: readonly Agent[] = sub) {
  const prompts = await readPromptFolder(directory, team)
  return { agents: agentsWithOwnPrompt(prompts), problems: promptProblems(prompts) }
}

const frontend = sub.find(({ name }) => name === 'frontend-dev') as Agent

async function project(files: Record<string, string | Buffer> = {}) {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'project-')))
  const folder = join(directory, '.codemachine/agents')
  await mkdir(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return { directory, folder, [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) }
}

test("a project's own prompt takes the place of the shipped one, word for word", async () => {
  await using place = await project()
  expect(await readAgentPrompt(frontend, place.directory)).toMatchObject({
    from: 'shipped',
    text: /^You are a frontend developer/,
  })
  await writeFile(join(place.folder, 'frontend-dev.md'), 'You build {{the shop}}.\n')
  expect(await readAgentPrompt(frontend, place.directory)).toEqual({
    from: 'project',
    text: 'You build {{the shop}}.\n',
  })
})

test('an agent is told where its memory lies, and the request comes last', async () => {
  await using place = await project({ 'frontend-dev.md': 'You build {{the shop}}.\n\n' })
  const instructions = await agentInstructions(frontend, place.directory)
  if ('problem' in instructions) throw new Error(instructions.problem)
  expect(instructions.text).toMatch(/^You build \{\{the shop\}\}\.\n\n## Memory\n/)
  expect(instructions.text).toContain('`.codemachine/memory/.frontend-memory.md`')
  expect(instructions.text).toContain(`\`${place.directory}\``)
  expect(compositePrompt(instructions.text, 'T3: Create the homepage')).toBe(
    `${instructions.text}\n\nUser Request:\nT3: Create the homepage`,
  )
})

test.each<[string, string | Buffer, string]>([
  ['empty', ' \n', '.codemachine/agents/frontend-dev.md is empty; write the prompt, or remove the file.'],
  ['too long', 'x'.repeat(65_537), '.codemachine/agents/frontend-dev.md is larger than 64 KiB; keep the prompt short.'],
  [
    'no text',
    Buffer.from([0xff, 0xfe, 0]),
    '.codemachine/agents/frontend-dev.md cannot be used as a prompt: it is not valid UTF-8; write it as UTF-8 text.',
  ],
])(
  "a project's prompt that is %s is refused in a sentence, and the shipped one does not take its place",
  async (_, text, problem) => {
    await using place = await project({ 'frontend-dev.md': text })
    expect(await readAgentPrompt(frontend, place.directory)).toEqual({ problem })
    expect(await agentInstructions(frontend, place.directory)).toEqual({ problem })
    expect(await lookAt(place.directory)).toEqual({ agents: [], problems: [problem] })
  },
)

test('no prompt is read through a link', async () => {
  await using place = await project()
  await writeFile(join(place.directory, 'secret'), 'secret')
  await symlink('../../secret', join(place.folder, 'frontend-dev.md'))
  expect(await readAgentPrompt(frontend, place.directory)).toEqual({
    problem: '.codemachine/agents/frontend-dev.md cannot be used as a prompt: it is a link; write a file in its place.',
  })
  await using other = await project()
  await rm(other.folder, { recursive: true })
  await symlink(place.folder, other.folder)
  expect(await readAgentPrompt(frontend, other.directory)).toEqual({
    problem: '.codemachine/agents is a link, so codemachine reads no prompts there; replace it by a folder.',
  })
  expect(await lookAt(other.directory)).toEqual({
    agents: [],
    problems: ['.codemachine/agents is a link, so codemachine reads no prompts there; replace it by a folder.'],
  })
})

test('of the prompts of a project each that belongs to nobody is named, with who was most likely meant', async () => {
  await using place = await project({
    'agents-config.json': '[]',
    '.half-written.md': '',
    'backend-dev.md': 'You build the server.',
    'frontend.md': 'x',
    'master-mind.md': 'You do as I say.',
    'technical-writer.md': 'x',
  })
  const team = sub.map(agent => ({ ...agent, enabled: agent.name !== 'technical-writer' }))
  const { agents, problems } = await lookAt(place.directory, team)
  expect(agents).toEqual(['backend-dev'])
  expect(problems).toEqual([
    '.codemachine/agents/frontend.md: There is no agent "frontend"; did you mean "frontend-dev"?',
    expect.stringMatching(
      /^\.codemachine\/agents\/master-mind\.md: The agent "master-mind" runs builds; .+: use one of /,
    ),
    expect.stringMatching(/^\.codemachine\/agents\/technical-writer\.md: The agent "technical-writer" is disabled; /),
  ])
})

test('a project has the agents as data, put right when somebody changed it, and otherwise left alone', async () => {
  await using place = await project()
  await rm(join(place.directory, '.codemachine'), { recursive: true })
  const path = join(place.folder, 'agents-config.json')
  await writeAgentsConfig(place.directory, { main, sub, goal })
  const data = JSON.parse(await readFile(path, 'utf8'))
  expect(data.main.map(({ name }: Agent) => name)).toEqual(['agents-builder', 'master-mind', 'project-summarizer'])
  expect(data.sub[1]).toEqual({
    name: 'frontend-dev',
    displayName: 'Frontend developer',
    description: frontend.description,
    effort: 'medium',
    enabled: true,
  })
  await utimes(path, 1, 1)
  await writeAgentsConfig(place.directory, { main, sub, goal })
  expect((await stat(path)).mtimeMs).toBe(1000)
  await writeFile(path, '{}')
  await writeAgentsConfig(place.directory, { main, sub, goal })
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(data)
  await writeFile(join(place.directory, 'mine'), 'mine')
  await rm(path)
  await symlink('../../mine', path)
  await writeAgentsConfig(place.directory, { main, sub, goal })
  expect(await readFile(join(place.directory, 'mine'), 'utf8')).toBe('mine')
})

test('the agents as data are not written through a link', async () => {
  await using place = await project()
  await rm(place.folder, { recursive: true })
  await symlink(tmpdir(), place.folder)
  await expect(writeAgentsConfig(place.directory, { main, sub, goal })).rejects.toThrow(
    `${place.folder} is a link; move it away, so that codemachine can keep the agents' prompts there.`,
  )
})
