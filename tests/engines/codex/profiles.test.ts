import { lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AgentProfile } from '../../../src/engines/codex/profiles.ts'
import { readProfileExtras, updateProfiles } from '../../../src/engines/codex/profiles.ts'

const frontend: AgentProfile = { name: 'frontend-dev', model: 'gpt-5-codex', modelReasoningEffort: 'medium' }
const backend: AgentProfile = { name: 'backend-dev', model: null, modelReasoningEffort: 'high' }

interface Home extends AsyncDisposable {
  path: string
  write(name: string, text: string): Promise<void>
  read(name: string): Promise<string>
  bring(agents?: AgentProfile[], keepModels?: boolean, without?: string[]): ReturnType<typeof updateProfiles>
}

async function openHome(config?: string): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), 'codemachine-profiles-'))
  const write = (name: string, text: string) => writeFile(join(path, name), text)
  if (config !== undefined) await write('config.toml', config)
  return {
    path,
    write,
    read: name => readFile(join(path, name), 'utf8'),
    bring: (agents = [frontend, backend], keepModels = false, without = []) =>
      updateProfiles({ codexHome: path, agents, without, keepModels }),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

const BY_HAND = `# mine
model = "mine" # the best
[projects."/a.b"]
trust_level = "trusted"`

const TABLES = `# codemachine: profiles of the agents begin (written anew at every start)
[profiles.frontend-dev]
model = "gpt-5-codex"
model_reasoning_effort = "medium"
[profiles.backend-dev]
model_reasoning_effort = "high"
# codemachine: profiles of the agents end
`

test('there is one file for each agent, which nobody else can read, and config.toml stays as it is', async () => {
  await using home = await openHome(BY_HAND)
  const { remarks, usable } = await home.bring()
  expect(remarks).toEqual([])
  expect([...usable]).toEqual(['frontend-dev', 'backend-dev'])
  expect(await home.read('config.toml')).toBe(BY_HAND)
  expect((await home.read('frontend-dev.config.toml')).split('\n').slice(1)).toEqual([
    'model = "gpt-5-codex"',
    'model_reasoning_effort = "medium"',
    '',
  ])
  expect((await home.read('backend-dev.config.toml')).split('\n').slice(1)).toEqual([
    'model_reasoning_effort = "high"',
    '',
  ])
  expect((await stat(join(home.path, 'frontend-dev.config.toml'))).mode & 0o777).toBe(0o600)
})

test('what is up to date already is not written again', async () => {
  await using home = await openHome()
  const files = () =>
    Promise.all(['config.toml', 'frontend-dev.config.toml'].map(async name => (await stat(join(home.path, name))).ino))
  await home.bring()
  const before = await files()
  await home.bring()
  expect(await files()).toEqual(before)
})

test('the tables that earlier versions wrote for an older codex go, and what a person wrote before them stays', async () => {
  await using home = await openHome(`${BY_HAND}\n${TABLES}[features]\n`)
  const { remarks, usable } = await home.bring()
  expect(remarks).toEqual([])
  expect([...usable]).toEqual(['frontend-dev', 'backend-dev'])
  expect(await home.read('config.toml')).toBe(`${BY_HAND}\n[features]\n`)
})

test('a home without config.toml gets one that says whose it is', async () => {
  await using home = await openHome()
  await home.bring()
  expect(await home.read('config.toml')).toMatch(/^# .*\n$/)
})

test('in a profile that a person has changed, the two lines of codemachine are renewed and the rest stays', async () => {
  await using home = await openHome('')
  await home.bring()
  const [header] = (await home.read('frontend-dev.config.toml')).split('\n')
  await home.write(
    'frontend-dev.config.toml',
    `${header}\r\n` +
      'approval_policy = "never"\nmodel_reasoning_effort = "low" # cheap\n"model" = """\nold"""\n\n[features]\nmodel = "not ours"\n',
  )
  const ofBackend = await home.read('backend-dev.config.toml')
  await home.write(
    'backend-dev.config.toml',
    ofBackend.replace(/$/, 'web_search = "live"\n').replace(/\n/, '\nmodel = "gone"\n'),
  )
  await home.bring()
  const text = await home.read('frontend-dev.config.toml')
  expect(text).toBe(
    `${header}\r\n` +
      'approval_policy = "never"\nmodel_reasoning_effort = "medium" # cheap\n"model" = "gpt-5-codex"\n\n[features]\nmodel = "not ours"\n',
  )
  expect((await home.read('backend-dev.config.toml')).split('\n').slice(1)).toEqual([
    'model_reasoning_effort = "high"',
    'web_search = "live"',
    '',
  ])
})

test('a profile that a person wrote before codemachine did keeps its model byte by byte, counts, and is told of', async () => {
  await using home = await openHome('')
  const text = 'model = "mine" # hand\r\npersonality="friendly"\r\n'
  await home.write('frontend-dev.config.toml', text)
  const { remarks, byHand, usable } = await home.bring()
  expect(await home.read('frontend-dev.config.toml')).toBe(text)
  expect(remarks).toEqual([expect.stringMatching(/frontend-dev\.config\.toml has a model or an effort of your own/)])
  expect(byHand.get('frontend-dev')).toEqual({ name: 'frontend-dev', model: 'mine', modelReasoningEffort: null })
  expect(usable).toContain('frontend-dev')
})

test('lines of codemachine in a file with line ends of Windows have these, too', async () => {
  await using home = await openHome('')
  await home.write('frontend-dev.config.toml', 'personality="friendly"\r\n')
  await home.bring()
  const text = await home.read('frontend-dev.config.toml')
  expect(text).toMatch(
    /^#.*\r\nmodel = "gpt-5-codex"\r\nmodel_reasoning_effort = "medium"\r\npersonality="friendly"\r\n$/,
  )
  await home.bring()
  expect(await home.read('frontend-dev.config.toml')).toBe(text)
})

test('a table that a person wrote for an agent counts, and is told of; codex cannot be led to it by name', async () => {
  const config = `${BY_HAND}\n[profiles.backend-dev]\nmodel = "o3" # mine too\n`
  await using home = await openHome(config)
  const now = await home.bring()
  expect(now.remarks).toEqual([expect.stringContaining('[profiles.backend-dev]')])
  expect([...now.usable]).toEqual(['frontend-dev'])
  expect(now.byHand.get('backend-dev')).toEqual({ name: 'backend-dev', model: 'o3', modelReasoningEffort: null })
  expect(await home.read('config.toml')).toBe(config)
})

test('where codex was not asked for its models, those in the profiles stay', async () => {
  await using home = await openHome('')
  const fitted = { ...frontend, model: null }
  await home.bring([fitted])
  await home.bring([{ ...frontend, modelReasoningEffort: 'low' }], true)
  expect(await home.read('frontend-dev.config.toml')).not.toContain('model = ')
  expect(await home.read('frontend-dev.config.toml')).toContain('model_reasoning_effort = "low"')
})

test('a broken config.toml is told with its place, and nothing is written into it', async () => {
  await using home = await openHome('model = \n')
  await expect(home.bring()).rejects.toThrow(/config.toml:\d+:\d+: not valid TOML/)
  expect(await home.read('config.toml')).toBe('model = \n')
})

test('a broken profile is told with its place, and is in nobody’s way but its agent’s', async () => {
  await using home = await openHome('')
  await home.write('frontend-dev.config.toml', '[features\n')
  const { remarks, unreadable } = await home.bring()
  expect(remarks).toEqual([expect.stringMatching(/frontend-dev.config.toml:\d+:\d+: not valid TOML/)])
  expect([...unreadable.keys()]).toEqual(['frontend-dev'])
  expect(await home.read('frontend-dev.config.toml')).toBe('[features\n')
})

test('a profile that leads to another file is left alone', async () => {
  await using home = await openHome()
  await using other = await openHome('web_search = "live"\n')
  await symlink(join(other.path, 'config.toml'), join(home.path, 'frontend-dev.config.toml'))
  const { remarks, usable } = await home.bring([frontend])
  expect(remarks).toEqual([expect.stringContaining('is a link')])
  expect(usable.size).toBe(0)
  expect(await other.read('config.toml')).toBe('web_search = "live"\n')
  expect((await lstat(join(home.path, 'frontend-dev.config.toml'))).isSymbolicLink()).toBe(true)
})

test('what a person has written into a profile beside its model is handed over as codex takes it with -c', async () => {
  await using home = await openHome('')
  await home.write(
    'backend-dev.config.toml',
    `model = "x"
model_reasoning_effort = "low"
developer_instructions = """
Be kind.
"""
tool_output_token_limit = 4_000
hide = [true, 1.5, "a \\"b\\""]
[mcp_servers.docs]
command = "serve"
env = { "A.B" = "c" }
`,
  )
  expect(await readProfileExtras(home.path, 'backend-dev')).toEqual({
    developerInstructions: 'Be kind.\n',
    overrides: [
      'tool_output_token_limit=4000',
      'hide=[true, 1.5, "a \\"b\\""]',
      'mcp_servers={"docs" = {"command" = "serve", "env" = {"A.B" = "c"}}}',
    ],
  })
  expect(await readProfileExtras(home.path, 'frontend-dev')).toEqual({ developerInstructions: null, overrides: [] })
})

test('the profile of an agent that is disabled goes, and what a person wrote into it, or in its place, stays', async () => {
  await using home = await openHome()
  await home.bring()
  await home.write(
    'frontend-dev.config.toml',
    `${await home.read('frontend-dev.config.toml')}sandbox_mode = "read-only"\n`,
  )
  await home.write('qa-engineer.config.toml', 'model = "mine"\n')
  await home.bring([], false, ['frontend-dev', 'backend-dev', 'qa-engineer'])
  expect(await home.read('frontend-dev.config.toml')).toBe('sandbox_mode = "read-only"\n')
  expect(await home.read('qa-engineer.config.toml')).toBe('model = "mine"\n')
  await expect(home.read('backend-dev.config.toml')).rejects.toThrow('ENOENT')
})
