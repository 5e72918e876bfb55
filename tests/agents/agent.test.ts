import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findAnyAgent, findEnabledAgent, loadAgents } from '../../src/agents/agent.ts'
import { findAgentProblems } from '../../src/agents/prompts.ts'
import { readRoster } from '../../src/agents/roster.ts'
import type { Agent } from '../../src/core/shapes/agent.ts'

const shipped = loadAgents()

const problemsIn = async (directory: string, options?: { folder: string }) =>
  await findAgentProblems(directory, () => readRoster(directory, { tables: [], remarks: [] }, options))

/** A folder of `config/*.agents.js` that exports these; a text is the file itself. */
async function config(files: {
  main?: unknown
  sub?: unknown
  goal?: unknown
}): Promise<{ folder: string } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'agents-'))
  await writeFile(join(folder, 'package.json'), '{ "type": "commonjs" }')
  const all = { main: shipped.main, sub: shipped.sub, goal: [shipped.goal], ...files }
  for (const [name, content] of Object.entries(all)) {
    const text = typeof content === 'string' ? content : `module.exports = ${JSON.stringify(content)}`
    await writeFile(join(folder, `${name}.agents.js`), text)
  }
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

const agent = (fields: Record<string, unknown> = {}) => ({ ...shipped.sub[0], ...fields })

describe('the agents that ship', () => {
  test('are those that a build needs, each with the effort that its work takes', () => {
    expect(shipped.main.map(({ name }) => name)).toEqual(['agents-builder', 'master-mind', 'project-summarizer'])
    expect(Object.fromEntries(shipped.sub.map(each => [each.name, each.modelReasoningEffort]))).toEqual({
      'uxui-designer': 'medium',
      'frontend-dev': 'medium',
      'backend-dev': 'high',
      'solution-architect': 'high',
      'software-architect': 'high',
      'technical-writer': 'low',
      'qa-engineer': 'medium',
      'performance-engineer': 'high',
    })
    for (const each of [...shipped.main, ...shipped.sub])
      expect(each).toMatchObject({ model: 'gpt-5-codex', enabled: true })
    expect(shipped.goal.model).toBeNull()
  })

  test('have nothing wrong with them', async () => {
    expect(await problemsIn(tmpdir())).toEqual([])
  })
})

describe('agents that cannot be taken are refused in a sentence that names the file and the place', () => {
  test.each<[string, Parameters<typeof config>[0], string | RegExp]>([
    [
      'a file that throws',
      { sub: '// The team\nthrow new Error("no team today\\nat all")\n' },
      /\/sub\.agents\.js cannot be loaded \(line 2\): no team today$/,
    ],
    [
      'a file that is no JavaScript',
      { sub: 'module.exports = [\n  {{\n]' },
      /\/sub\.agents\.js cannot be loaded \(line 2\): /,
    ],
    [
      'a file that exports no list',
      { main: {} },
      /\/main\.agents\.js: what it exports is Object; use a list of agents\.$/,
    ],
    [
      'a field that is missing',
      { sub: [agent(), agent({ name: 'other', description: undefined })] },
      /\/sub\.agents\.js: agents\[1\]\.description is missing; add it\.$/,
    ],
    [
      'a field that there is not',
      { sub: [agent({ modle: 'x' })] },
      /: agents\[0\]\.modle is not a field of an agent; remove it\.$/,
    ],
    ['a model that is a number', { sub: [agent({ model: 5 })] }, /: agents\[0\]\.model is 5; use a text or null\.$/],
    [
      'enabled that is a text',
      { sub: [agent({ enabled: 'yes' })] },
      /: agents\[0\]\.enabled is "yes"; use true or false\.$/,
    ],
    [
      'a name that would leave its folder',
      { sub: [agent({ name: '../x' })] },
      /: agents\[0\]\.name is "\.\.\/x"; use lower-case letters, digits and single dashes\.$/,
    ],
    [
      'a prompt outside of the package',
      { sub: [agent({ promptPath: 'prompts/../../x.md' })] },
      /: agents\[0\]\.promptPath is "prompts\/\.\.\/\.\.\/x\.md"; use a path from the root of the package/,
    ],
    [
      'two agents of one name',
      { sub: [agent(), agent()] },
      /\/sub\.agents\.js: agents\[1\]\.name is "uxui-designer", the same as another agent there; give each agent its own name\.$/,
    ],
    [
      'two agents of one name in two files',
      { sub: [agent({ name: 'master-mind' })] },
      /\/sub\.agents\.js: agents\[0\]\.name is "master-mind", the same as one in .+\/main\.agents\.js; /,
    ],
    [
      'two agents whose memory would be one file',
      { sub: [agent({ name: 'frontend' }), agent({ name: 'frontend-dev' })] },
      /\/sub\.agents\.js: agents\[1\]\.name is "frontend-dev", but an agent of this name would use the memory file of "frontend" \(\.codemachine\/memory\/\.frontend-memory\.md\); choose another name\.$/,
    ],
    [
      'a build without its master mind',
      { main: shipped.main.filter(({ name }) => name !== 'master-mind') },
      /\/main\.agents\.js has no agent "master-mind"; every build needs it, so add it\.$/,
    ],
    ['no agent for goals', { goal: [] }, /\/goal\.agents\.js has no agent; add the one that works on goals\.$/],
  ])('%s', async (_, files, problem) => {
    await using place = await config(files)
    expect(() => loadAgents(place)).toThrow(problem)
    expect(await problemsIn(place.folder, place)).toEqual([expect.stringMatching(problem)])
  })

  test('a file that is not there', async () => {
    await using place = await config({})
    await rm(join(place.folder, 'sub.agents.js'))
    expect(() => loadAgents(place)).toThrow(/\/sub\.agents\.js cannot be loaded: Cannot find module/)
  })

  test('every prompt that is missing, and a master mind that is disabled, are named', async () => {
    const main = shipped.main.map(each => ({ ...each, enabled: each.name !== 'master-mind' }))
    await using place = await config({ main, sub: [agent({ promptPath: 'prompts/none.md' })] })
    expect(await problemsIn(place.folder, place)).toEqual([
      'The agent "master-mind" is disabled, and every build needs it; enable it in main.agents.js.',
      expect.stringMatching(/^The prompt of uxui-designer is missing: there is no file .+\/prompts\/none\.md\.$/),
    ])
  })
})

describe('an agent is found by its name', () => {
  const off = shipped.sub.map((each): Agent => ({ ...each, enabled: each.name !== 'backend-dev' }))
  test.each<[string, string, string | RegExp]>([
    ['nearly the name', 'frontend', 'There is no agent "frontend"; did you mean "frontend-dev"?'],
    ['its first word', 'qa', 'There is no agent "qa"; did you mean "qa-engineer"?'],
    ['other letters', 'QA_Engineer', 'There is no agent "QA_Engineer"; did you mean "qa-engineer"?'],
    [
      'nothing like it',
      'plumber',
      /^There is no agent "plumber"; use one of uxui-designer, frontend-dev, .+-engineer\.$/,
    ],
    [
      'a disabled one',
      'backend-dev',
      /^The agent "backend-dev" is disabled; use one of uxui-designer, frontend-dev, s/,
    ],
    [
      'one that runs a build',
      'master-mind',
      /^The agent "master-mind" runs builds; it is given no tasks, .+: use one of uxui-designer, /,
    ],
    ['a name that is none', `x\n${'y'.repeat(1000)}`, /^There is no agent "x\\ny{58}…"; use one of /],
  ])('%s', (_, name, problem) => {
    expect(findEnabledAgent(off, name)).toEqual({ problem: expect.stringMatching(problem) })
  })

  test('a disabled one can still be looked at', () => {
    expect(findAnyAgent(off, 'backend-dev')).toMatchObject({ agent: { enabled: false } })
    expect(findAnyAgent(off, 'backend')).toEqual(findEnabledAgent(off, 'backend'))
  })

  test('the name itself', () => {
    expect(findEnabledAgent(off, 'frontend-dev')).toMatchObject({ agent: { displayName: 'Frontend developer' } })
  })
})
