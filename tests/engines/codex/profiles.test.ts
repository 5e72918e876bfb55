import { lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AgentProfile } from '../../../src/engines/codex/profiles.ts'
import { readProfileExtras, updateProfiles } from '../../../src/engines/codex/profiles.ts'

const NEW = '0.134.0'
const OLD = '0.133.0'

const frontend: AgentProfile = { name: 'frontend-dev', model: 'gpt-5-codex', modelReasoningEffort: 'medium' }
const backend: AgentProfile = { name: 'backend-dev', model: null, modelReasoningEffort: 'high' }

interface Home extends AsyncDisposable {
  path: string
  write(name: string, text: string): Promise<void>
  read(name: string): Promise<string>
  bring(
    version: string,
    agents?: AgentProfile[],
    keepModels?: boolean,
    without?: string[],
  ): ReturnType<typeof updateProfiles>
}

async function openHome(config?: string): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), 'codemachine-profiles-'))
  const write = (name: string, text: string) => writeFile(join(path, name), text)
  if (config !== undefined) await write('config.toml', config)
  return {
    path,
    write,
    read: name => readFile(join(path, name), 'utf8'),
    bring: (codexVersion, agents = [frontend, backend], keepModels = false, without = []) =>
      updateProfiles({ codexHome: path, codexVersion, agents, without, keepModels }),
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

/** Where the person has not ended the line before. */
const TABLES_BELOW = TABLES.replace('start)', 'start, as is the line end before)')

test('a new codex gets one file for each agent, which nobody else can read, and config.toml stays as it is', async () => {
  await using home = await openHome(BY_HAND)
  const { remarks, usable } = await home.bring(NEW)
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

test('an old codex gets tables at the end of config.toml, and what a person wrote before them stays byte by byte', async () => {
  await using home = await openHome(BY_HAND)
  const { remarks, usable } = await home.bring(OLD)
  expect(remarks).toEqual([])
  expect([...usable]).toEqual(['frontend-dev', 'backend-dev'])
  expect(await home.read('config.toml')).toBe(`${BY_HAND}\n${TABLES_BELOW}`)
  expect(await readdir(home.path)).toEqual(['config.toml'])
})

test('when codex is updated or put back, the profiles move to the other form and leave nothing behind', async () => {
  await using home = await openHome(`${BY_HAND}\n`)
  await home.bring(OLD)
  await home.bring(NEW)
  expect(await home.read('config.toml')).toBe(`${BY_HAND}\n`)
  expect((await readdir(home.path)).length).toBe(3)
  await home.bring(OLD)
  expect(await home.read('config.toml')).toBe(`${BY_HAND}\n${TABLES}`)
  expect(await readdir(home.path)).toEqual(['config.toml'])
})

test('what is up to date already is not written again', async () => {
  await using home = await openHome()
  for (const version of [OLD, NEW]) {
    await home.bring(version)
    const times = () =>
      Promise.all(
        ['config.toml', ...(version === NEW ? ['frontend-dev.config.toml'] : [])].map(
          async name => (await stat(join(home.path, name))).ino,
        ),
      )
    const before = await times()
    await home.bring(version)
    expect(await times()).toEqual(before)
  }
})

test('a home without config.toml gets one that says whose it is', async () => {
  await using home = await openHome()
  await home.bring(NEW)
  expect(await home.read('config.toml')).toMatch(/^# .*\n$/)
})

test('in a profile that a person has changed, the two lines of codemachine are renewed and the rest stays', async () => {
  await using home = await openHome('')
  await home.bring(NEW)
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
  await home.bring(NEW)
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
  await home.bring(OLD)
  expect(await home.read('backend-dev.config.toml')).toBe('web_search = "live"\n')
})

test('a profile that a person wrote before codemachine did keeps its model byte by byte, counts, and is told of', async () => {
  await using home = await openHome('')
  const text = 'model = "mine" # hand\r\npersonality="friendly"\r\n'
  await home.write('frontend-dev.config.toml', text)
  const { remarks, byHand, usable } = await home.bring(NEW)
  expect(await home.read('frontend-dev.config.toml')).toBe(text)
  expect(remarks).toEqual([expect.stringMatching(/frontend-dev\.config\.toml has a model or an effort of your own/)])
  expect(byHand.get('frontend-dev')).toEqual({ name: 'frontend-dev', model: 'mine', modelReasoningEffort: null })
  expect(usable).toContain('frontend-dev')
})

test('lines of codemachine in a file with line ends of Windows have these, too', async () => {
  await using home = await openHome('')
  await home.write('frontend-dev.config.toml', 'personality="friendly"\r\n')
  await home.bring(NEW)
  const text = await home.read('frontend-dev.config.toml')
  expect(text).toMatch(
    /^#.*\r\nmodel = "gpt-5-codex"\r\nmodel_reasoning_effort = "medium"\r\npersonality="friendly"\r\n$/,
  )
  await home.bring(NEW)
  expect(await home.read('frontend-dev.config.toml')).toBe(text)
})

test('a table that a person wrote for an agent counts, and is told of; a new codex cannot be led to it by name', async () => {
  const config = `${BY_HAND}\n[profiles.backend-dev]\nmodel = "o3" # mine too\n`
  await using home = await openHome(config)
  const old = await home.bring(OLD)
  expect(old.remarks).toEqual([expect.stringContaining('[profiles.backend-dev]')])
  expect([...old.usable].sort()).toEqual(['backend-dev', 'frontend-dev'])
  const text = await home.read('config.toml')
  expect(text.startsWith(config)).toBe(true)
  expect(text.match(/backend-dev/g)).toHaveLength(1)
  const now = await home.bring(NEW)
  expect([...now.usable]).toEqual(['frontend-dev'])
  expect(now.byHand.get('backend-dev')).toEqual({ name: 'backend-dev', model: 'o3', modelReasoningEffort: null })
  expect(await home.read('config.toml')).toBe(config)
})

test('what codex itself has written among the tables of codemachine is not lost with them', async () => {
  const trust = '[projects."/x"]\ntrust_level = "trusted"\n'
  await using home = await openHome(
    TABLES.replace('# codemachine: profiles of the agents end', `\n${trust}# codemachine: profiles of the agents end`),
  )
  await home.bring(OLD, [frontend])
  const text = await home.read('config.toml')
  expect(text).toContain(trust)
  expect(text).not.toContain('backend-dev')
  await home.bring(NEW)
  expect((await home.read('config.toml')).trim()).toBe(trust.trim())
})

test('where codex was not asked for its models, those in the profiles stay, in both forms', async () => {
  await using home = await openHome('')
  const fitted = { ...frontend, model: null }
  await home.bring(NEW, [fitted])
  await home.bring(NEW, [{ ...frontend, modelReasoningEffort: 'low' }], true)
  expect(await home.read('frontend-dev.config.toml')).not.toContain('model = ')
  expect(await home.read('frontend-dev.config.toml')).toContain('model_reasoning_effort = "low"')
  await home.bring(OLD, [{ ...frontend, model: 'gpt-9' }])
  await home.bring(OLD, [frontend], true)
  expect(await home.read('config.toml')).toContain('model = "gpt-9"')
})

test('a broken config.toml is told with its place, and nothing is written into it', async () => {
  await using home = await openHome('model = \n')
  await expect(home.bring(NEW)).rejects.toThrow(/config.toml:\d+:\d+: not valid TOML/)
  expect(await home.read('config.toml')).toBe('model = \n')
})

test.each([NEW, OLD])(
  'a broken profile is told with its place, and is in nobody’s way but its agent’s (%s)',
  async version => {
    await using home = await openHome('')
    await home.write('frontend-dev.config.toml', '[features\n')
    const { remarks, unreadable } = await home.bring(version)
    expect(remarks).toEqual([expect.stringMatching(/frontend-dev.config.toml:\d+:\d+: not valid TOML/)])
    expect([...unreadable.keys()]).toEqual(['frontend-dev'])
    expect(await home.read('frontend-dev.config.toml')).toBe('[features\n')
  },
)

test.each([BY_HAND, `\uFEFF${BY_HAND}`, `${BY_HAND}\n`, ' '])(
  'what a person has written is as it was when codex has been old and is new again: %j',
  async config => {
    await using home = await openHome(config)
    for (const version of [OLD, OLD, NEW]) await home.bring(version)
    const bytes = await readFile(join(home.path, 'config.toml'))
    expect(bytes).toEqual(Buffer.from(config))
  },
)

test('a config.toml that leads to another file is left alone', async () => {
  await using home = await openHome()
  await using other = await openHome(BY_HAND)
  await symlink(join(other.path, 'config.toml'), join(home.path, 'config.toml'))
  const { remarks, usable } = await home.bring(OLD)
  expect(remarks).toEqual([expect.stringContaining('is a link')])
  expect(usable.size).toBe(0)
  expect(await other.read('config.toml')).toBe(BY_HAND)
  expect((await lstat(join(home.path, 'config.toml'))).isSymbolicLink()).toBe(true)
})

test('profiles that a person wrote in one line are left alone, and told of', async () => {
  const config = 'profiles = { mine = { model = "o3" } }\n'
  await using home = await openHome(config)
  const { remarks, usable } = await home.bring(OLD)
  expect(remarks).toEqual([expect.stringContaining('another form')])
  expect(usable.size).toBe(0)
  expect(await home.read('config.toml')).toBe(config)
})

test('what a person has written into a profile beside its model is handed over as codex takes it with -c', async () => {
  await using home = await openHome('[profiles.backend-dev]\nmodel = "x"\nweb_search = "live"\n')
  const of = (codexVersion: string, name = 'backend-dev') =>
    readProfileExtras({ codexHome: home.path, codexVersion }, name)
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
  expect(await of(NEW)).toEqual({
    developerInstructions: 'Be kind.\n',
    overrides: [
      'tool_output_token_limit=4000',
      'hide=[true, 1.5, "a \\"b\\""]',
      'mcp_servers={"docs" = {"command" = "serve", "env" = {"A.B" = "c"}}}',
    ],
  })
  expect(await of(OLD)).toEqual({ developerInstructions: null, overrides: ['web_search="live"'] })
  expect(await of(NEW, 'frontend-dev')).toEqual({ developerInstructions: null, overrides: [] })
  expect(await of(OLD, 'frontend-dev')).toEqual({ developerInstructions: null, overrides: [] })
})

test('the profile of an agent that is disabled goes, and what a person wrote into it, or in its place, stays', async () => {
  await using home = await openHome()
  await home.bring('0.169.0')
  await home.write(
    'frontend-dev.config.toml',
    `${await home.read('frontend-dev.config.toml')}sandbox_mode = "read-only"\n`,
  )
  await home.write('qa-engineer.config.toml', 'model = "mine"\n')
  await home.bring('0.169.0', [], false, ['frontend-dev', 'backend-dev', 'qa-engineer'])
  expect(await home.read('frontend-dev.config.toml')).toBe('sandbox_mode = "read-only"\n')
  expect(await home.read('qa-engineer.config.toml')).toBe('model = "mine"\n')
  await expect(home.read('backend-dev.config.toml')).rejects.toThrow('ENOENT')
})
