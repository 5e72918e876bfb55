import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { askOfferedModels, type OfferedModels, withOfferedModels } from '../../../src/engines/codex/models.ts'
import { findRealCodex } from '../../support/find-real-codex.ts'
import { writePeer } from '../../support/scripted-peer.ts'

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-models-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** What a codex says whose `config/read` and `model/list` answer so. */
function asked(script: string): Promise<OfferedModels> {
  return inFolder(folder => ask(folder, script))
}

async function ask(folder: string, script: string, clock: Clock = systemClock): Promise<OfferedModels> {
  const path = await writePeer(folder, script)
  const { env, platform } = process
  const options = { path, args: [], env: { PATH: env.PATH }, directory: folder, clock, platform }
  return await askOfferedModels(options, new AbortController().signal)
}

const LIST = `on['model/list'] = (id, { cursor }) => send({ id, result: cursor
  ? { data: [{ id: 'gpt-b', model: 'gpt-b', isDefault: true }], nextCursor: null }
  : { data: [{ id: 'gpt-a', model: 'gpt-a', isDefault: false, hidden: true }, null, 7], nextCursor: 'more' } })`

const config = (values: object) =>
  `on['config/read'] = id => send({ id, result: { config: ${JSON.stringify(values)} } })`

test('all pages of the models are read, and the default is the one that codex would use', async () => {
  const offered = await asked(LIST)
  expect(offered).toMatchObject({ names: new Set(['gpt-a', 'gpt-b']), usual: 'gpt-b' })
})

test('the default is the model of config.toml if it names one', async () => {
  expect(await asked(`${LIST}\n${config({ model: 'gpt-c', model_provider: 'openai' })}`)).toMatchObject({
    usual: 'gpt-c',
  })
})

test('of a provider of the person nobody knows what it offers, unless they give a catalog', async () => {
  const offered = await asked(`${LIST}\n${config({ model: 'llama', model_provider: 'mine' })}`)
  expect(offered).toMatchObject({ names: { unknown: expect.stringContaining('the provider mine') }, usual: 'llama' })
  const catalog = { model_provider: 'mine', model_catalog_json: '/models.json' }
  expect((await asked(`${LIST}\n${config(catalog)}`)).names).toEqual(new Set(['gpt-a', 'gpt-b']))
})

test.each([
  ["on['model/list'] = id => send({ id, error: { code: -32601, message: 'no such method' } })", 'no such method'],
  ["on['model/list'] = () => { console.error('no luck'); process.exit(3) }", 'no luck'],
  ["on['model/list'] = id => send({ id, result: { data: 'none' } })", 'names no model'],
])('a codex that cannot say is no obstacle: %s', async (script, why) => {
  expect((await asked(script)).names).toEqual({ unknown: expect.stringContaining(why) })
})

test('a codex that is not there is said to be not there', async () => {
  await inFolder(async folder => {
    const options = { path: join(folder, 'codex'), args: [], env: {}, directory: folder }
    const { names } = await askOfferedModels(
      { ...options, clock: systemClock, platform: process.platform },
      new AbortController().signal,
    )
    expect(names).toEqual({ unknown: expect.stringContaining('ENOENT') })
  })
})

test('a codex that has closed its ears and is killed is said to be killed', async () => {
  await inFolder(async folder => {
    const script = `const { closeSync, watch, writeSync } = await import('node:fs')
      watch(${JSON.stringify(folder)}, (_, name) => name === 'not heard' && process.kill(process.pid, 'SIGKILL'))
      on.initialize = id => {
        closeSync(0)
        writeSync(1, JSON.stringify({ id, result: {} }) + '\\n')
      }`
    // No answer is waited for as shortly as the end of a codex that could not be asked.
    const wait: Clock['wait'] = async (ms, signal) => {
      if (ms < 1000) await writeFile(join(folder, 'not heard'), '')
      await systemClock.wait(10_000, signal)
    }
    expect((await ask(folder, script, { ...systemClock, wait })).names).toEqual({
      unknown: expect.stringContaining('SIGKILL'),
    })
  })
})

test('the real codex does not offer the model of the agents, and names its own', async () => {
  await inFolder(async folder => {
    const { path } = await findRealCodex()
    const home = join(folder, 'home')
    await mkdir(home)
    await writeFile(join(home, 'config.toml'), '[features]\nplugins = false\napps = false\nremote_plugin = false\n')
    const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: home }
    const options = { path, args: [], env, directory: folder, clock: systemClock, platform: process.platform }
    const offered = await askOfferedModels(options, new AbortController().signal)
    expect(offered.usual).toMatch(/^gpt-/)
    expect(offered.names).toContain(offered.usual)
    expect(offered.names).not.toContain('gpt-5-codex')
  })
})

const agents = [
  { name: 'a', model: 'gpt-5-codex' },
  { name: 'b', model: 'gpt-a' },
  { name: 'c', model: null },
  { name: 'd', model: 'gpt-5-codex' },
]

test('a model that is not offered gives way to the default, in one sentence for all agents', () => {
  const offered = { names: new Set(['gpt-a']), usual: 'gpt-b' }
  expect(withOfferedModels(agents, offered)).toEqual({
    agents: [{ name: 'a', model: null }, agents[1], agents[2], { name: 'd', model: null }],
    remark: "Codex does not offer gpt-5-codex, so the agents that need it use codex's default, gpt-b.",
  })
  expect(withOfferedModels(agents.slice(1, 3), offered).remark).toBeNull()
})

test('nothing is said where the default is the very model that an agent wants', () => {
  const offered = { names: { unknown: 'Codex does not know' }, usual: 'gpt-5-codex' }
  expect(withOfferedModels([{ model: 'gpt-5-codex' }], offered)).toEqual({ agents: [{ model: null }], remark: null })
})

test.each([
  ['{ result: { account: null, requiresOpenaiAuth: true } }', false],
  ['{ result: { account: { type: "apiKey" }, requiresOpenaiAuth: true } }', true],
  ['{ result: { account: null, requiresOpenaiAuth: false } }', true],
  ['{ error: { code: -32601, message: "no such method" } }', true],
])('nobody is logged in only where codex says so: %s', async (answer, isLoggedIn) => {
  const offered = await asked(`${LIST}\non['account/read'] = id => send({ id, ...${answer} })`)
  expect(offered).toMatchObject({ isLoggedIn, usual: 'gpt-b' })
})

test('that nobody is logged in is known, too, where codex cannot say which models it offers', async () => {
  const out = `const told = Promise.withResolvers()
    on['account/read'] = id => { send({ id, result: { account: null, requiresOpenaiAuth: true } }); told.resolve() }`
  const broken = `on['model/list'] = async id => { await told.promise; send({ id, error: { code: 1, message: 'no luck' } }) }`
  expect(await asked(`${out}\n${broken}`)).toMatchObject({
    names: { unknown: expect.stringContaining('no luck') },
    isLoggedIn: false,
  })
})

test('where nobody knows what is offered, all agents use the default', () => {
  const offered = {
    names: { unknown: 'Codex cannot say which models it offers: it hung.' },
    usual: null,
  }
  const { agents: fitted, remark } = withOfferedModels(agents, offered)
  expect(fitted.map(({ model }) => model)).toEqual([null, null, null, null])
  expect(remark).toBe(
    "Codex cannot say which models it offers: it hung; the agents use codex's default instead of gpt-5-codex, gpt-a.",
  )
})
