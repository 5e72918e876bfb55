import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SettingsPlaces } from '../../../src/project/settings/load.ts'
import { openSettings } from './settings-places.ts'

let places: Awaited<ReturnType<typeof openSettings>>

beforeEach(async () => {
  places = await openSettings()
})
afterEach(() => places[Symbol.asyncDispose]())

const provider = async (name: string, more?: Partial<SettingsPlaces>) => (await places.load(more)).providers.get(name)

const LOCAL = '[providers.local]\nbase_url = "http://127.0.0.1:8080/v1/"\n'

describe('a provider', () => {
  test('is a table of the person, of which only the address is needed', async () => {
    await places.person(LOCAL)
    expect(await provider('local')).toEqual({
      name: 'local',
      baseUrl: 'http://127.0.0.1:8080/v1',
      model: null,
      keyEnv: null,
      contextWindow: null,
      whenAway: 'wait',
    })
  })

  const all = {
    name: 'local',
    baseUrl: 'https://box.example/v1',
    model: 'qwen3-coder:30b',
    keyEnv: 'LOCAL_KEY',
    contextWindow: 32768,
    whenAway: 'stop',
  }
  const fields = [
    ['base_url', '"https://box.example/v1"'],
    ['model', '"qwen3-coder:30b"'],
    ['key_env', '"LOCAL_KEY"'],
    ['context_window', '32768'],
    ['when_away', '"stop"'],
  ]
  const lines = (prefix: string) => fields.map(([key, value]) => `${prefix}${key} = ${value}`)
  test.each([
    ['a table', `[providers.local]\n${lines('').join('\n')}`],
    ['dotted keys', lines('providers.local.').join('\n')],
    ['keys of one table', `[providers]\n${lines('local.').join('\n')}`],
    ['an inline table', `providers.local = { ${lines('').join(', ')} }`],
    ['two inline tables', `providers = { local = { ${lines('').join(', ')} } }`],
  ])('may be written as %s', async (_, text) => {
    await places.person(`provider = "local"\n${text}\n`)
    expect(await provider('local')).toEqual(all)
  })

  test('is said in the environment, which counts more than the file, field by field', async () => {
    await places.person(`${LOCAL}model = "a"\n[providers.my-box]\nbase_url = "http://box/v1"\n`)
    const env = {
      CODEMACHINE_PROVIDER: 'local',
      CODEMACHINE_PROVIDERS_LOCAL_MODEL: 'b',
      CODEMACHINE_PROVIDERS_LOCAL_CONTEXT_WINDOW: '128k',
      CODEMACHINE_PROVIDERS_LOCAL_KEY_ENV: '',
      CODEMACHINE_PROVIDERS_MY_BOX_WHEN_AWAY: 'remote',
      CODEMACHINE_PROVIDERS_OTHER_BASE_URL: 'http://other/v1',
    }
    const { settings, providers } = await places.load({ env })
    expect(settings.provider).toBe('local')
    expect(providers.get('local')).toMatchObject({ model: 'b', contextWindow: 128_000, keyEnv: null })
    expect(providers.get('my-box')).toMatchObject({ baseUrl: 'http://box/v1', whenAway: 'remote' })
    expect(providers.get('other')).toMatchObject({ baseUrl: 'http://other/v1' })
  })

  test('is there for ollama and LM Studio without a table, and a table adds to it', async () => {
    expect(await provider('ollama')).toMatchObject({ baseUrl: 'http://127.0.0.1:11434/v1', model: null })
    expect(await provider('lmstudio')).toMatchObject({ baseUrl: 'http://127.0.0.1:1234/v1' })
    await places.person('[providers.ollama]\nmodel = "qwen3:8b"\n')
    expect(await provider('ollama')).toMatchObject({ baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' })
    expect((await places.load({ flags: { provider: 'ollama' } })).settings.provider).toBe('ollama')
  })
})

describe('a mistake in a provider is told in one sentence, without what may be a secret', () => {
  const begin = '[providers.local]\n'
  const hidden = 'wrong (not shown, as it may hold a secret)'
  const address = 'use an http or https URL, such as "http://127.0.0.1:11434/v1".'
  test.each([
    [`${begin}base_url = "sk-1234"`, `2: providers.local.base_url is ${hidden}; ${address}`],
    [`${begin}base_url = "ftp://sk-1234/v1"`, `2: providers.local.base_url is ${hidden}; ${address}`],
    [`${begin}base_url = 1234`, `2: providers.local.base_url is ${hidden}; ${address}`],
    [
      `${begin}base_url = "http://me:sk-1234@box/v1"`,
      '2: providers.local.base_url contains a user or password (not shown). Remove them, put the key into an environment variable, and name the variable with key_env.',
    ],
    [
      `${begin}base_url = "http://sk-1234@box/v1"`,
      '2: providers.local.base_url contains a user or password (not shown). Remove them, put the key into an environment variable, and name the variable with key_env.',
    ],
    [
      `${begin}base_url = "http://box/v1?key=sk-1234"`,
      '2: providers.local.base_url has a "?" or "#" in it (not shown); name the address below which /models and /responses lie, such as "http://127.0.0.1:11434/v1".',
    ],
    [
      `${begin}key_env = "sk-1234"`,
      `2: providers.local.key_env is ${hidden}; use the name of an environment variable, such as "LOCAL_KEY", and never the key itself.`,
    ],
    [
      `${LOCAL}context_window = 12`,
      '3: providers.local.context_window is 12; use a number of tokens from 1000 to 100M, such as 32768 or "128k".',
    ],
    [`${LOCAL}when_away = "sleep"`, '3: providers.local.when_away is "sleep"; use one of "wait", "remote", "stop".'],
    [
      `${LOCAL}wire_api = "chat"`,
      '3: providers.local.wire_api is an unknown key; codex supports only the Responses API, not "chat"; leave it out.',
    ],
    [`${LOCAL}modell = "x"`, '3: providers.local.modell is an unknown key; did you mean "model"?'],
    [
      `${LOCAL}api_key = "sk-1234"`,
      '3: providers.local.api_key is an unknown key; the known ones are base_url, model, key_env, context_window, when_away.',
    ],
    [
      `${begin}model = "x"`,
      '1: the provider local has no base_url; name its address, such as base_url = "http://127.0.0.1:8080/v1".',
    ],
    [
      '[providers.codex]\nmodel = "x"',
      '1: providers.codex cannot have this name; use lower-case letters, digits, "-" and "_", such as [providers.local], but not "codex", which means the configuration of codex.',
    ],
    [
      '[providers."a b"]\nmodel = "x"',
      '1: providers."a b" cannot have this name; use lower-case letters, digits, "-" and "_", such as [providers.local], but not "codex", which means the configuration of codex.',
    ],
    ['providers = 3', '1: providers is not a table; begin it with a line [providers.NAME].'],
    ['[[providers]]\nmodel = "x"', '1: providers is not a table; begin it with a line [providers.NAME].'],
    ['providers.local = 3', '1: providers.local is not a table; begin it with a line [providers.local].'],
    [
      '[providers.local]',
      '1: the provider local has no base_url; name its address, such as base_url = "http://127.0.0.1:8080/v1".',
    ],
  ])('%j', async (text, expected) => {
    await places.person(text)
    const sentence = await places.sentence()
    expect(sentence).toBe(`UserError: ${places.ofPerson}:${expected}`)
    expect(sentence).not.toContain('1234"')
  })

  test.each([
    ['CODEMACHINE_PROVIDERS_LOCAL_BASE_URL', 'http://me:sk-1234@box/v1', 'contains a user or password (not shown)'],
    [
      'CODEMACHINE_PROVIDERS_LOCAL_WIRE_API',
      'chat',
      ': this variable sets no field of a provider; its name must end in',
    ],
    ['CODEMACHINE_PROVIDERS_KEY_ENV', 'A', ': this variable sets no field of a provider; its name must end in'],
  ])('in the environment: %s', async (name, value, expected) => {
    const sentence = await places.sentence({ env: { [name]: value } })
    expect(sentence.startsWith(`UserError: ${name}`)).toBe(true)
    expect(sentence).toContain(expected)
    expect(sentence).not.toContain('sk-1234')
  })

  test('one that is not there is told with those that are', async () => {
    await places.person(LOCAL)
    expect(await places.sentence({ flags: { provider: 'locall' } })).toBe(
      'UserError: --provider: there is no provider "locall"; did you mean "local"?',
    )
    expect(await places.sentence({ flags: { provider: 'elsewhere' } })).toBe(
      'UserError: --provider: there is no provider "elsewhere"; there are codex, ollama, lmstudio, local, and the tables [providers.NAME] of your own config.toml.',
    )
    expect(await places.sentence({ flags: { provider: 'A B' } })).toBe(
      'UserError: --provider is "A B"; use the name of a provider, such as "local" of a table [providers.local], "ollama" or "codex".',
    )
  })
})

test("a project's file says nothing of providers: a clone would name where the code is sent", async () => {
  const instead = 'or your own config.toml.'
  for (const text of [LOCAL, 'providers.local.model = "x"', 'providers = { ollama = { model = "x" } }']) {
    await places.project(text)
    expect(await places.sentence()).toBe(
      "UserError: codemachine.toml:1: providers cannot be set by a project's own file; if you want that, use your own config.toml.",
    )
  }
  await places.project('provider = "ollama"')
  expect(await places.sentence()).toBe(
    `UserError: codemachine.toml:1: provider cannot be set by a project's own file; if you want that, use --provider ${instead}`,
  )
})
