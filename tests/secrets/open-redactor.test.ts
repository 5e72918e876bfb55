import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { openRedactor } from '../../src/secrets/secrets.ts'
import { openSecrets } from '../../src/secrets/store.ts'
import { promise } from '../support/promise.ts'

let codexHome: string
let now = 0
const clock: Clock = { now: () => now, monotonic: () => now, wait: async () => {} }
const open = (env: NodeJS.ProcessEnv = {}) => openRedactor({ env, codexHome, clock })
const write = (content: unknown, file = 'auth.json') => writeFile(join(codexHome, file), JSON.stringify(content))

beforeEach(async () => {
  codexHome = await mkdtemp(join(tmpdir(), 'redactor-'))
  now = 0
})

afterEach(async () => {
  await rm(codexHome, { recursive: true, force: true })
})

const login = (mark: string) => ({
  auth_mode: 'chatgpt',
  OPENAI_API_KEY: null,
  tokens: {
    id_token: `eyJhbGciOi.${mark}-id-token.c2lnbmF0dXJl`,
    access_token: `${mark}-access-token`,
    refresh_token: `rt.1.${mark}-refresh`,
    account_id: '0a1b2c3d-0000-4000-8000-0123456789ab',
  },
  last_refresh: '2026-11-20T20:00:00.000000Z',
})

describe('auth.json', () => {
  test('of a ChatGPT login: its tokens are taken out, its account and dates are not', async () => {
    await write(login('first'))
    const said = 'first-access-token rt.1.first-refresh eyJhbGciOi.first-id-token.c2lnbmF0dXJl'
    expect(open().text(said)).toBe('[secret access_token] [secret refresh_token] [secret id_token]')
    const rest = '0a1b2c3d-0000-4000-8000-0123456789ab 2026-11-20T20:00:00.000000Z chatgpt'
    expect(open().text(rest)).toBe(rest)
  })

  test('with a key, or of a shape that is not known', async () => {
    await write({ OPENAI_API_KEY: 'sk-proj-abcdef', agents: [{ privateKey: ['key-one-1', 'key-two-2'] }] })
    expect(open().text('sk-proj-abcdef key-one-1 key-two-2')).toBe(
      '[secret OPENAI_API_KEY] [secret privateKey] [secret privateKey]',
    )
    await write({ renamed: { opaque: 'q9'.repeat(20) } })
    expect(open().text('q9'.repeat(20))).toBe('[secret opaque]')
  })

  test('that is renewed while codex runs: the new tokens are taken out from then on, the old ones still', async () => {
    await write(login('first'))
    const redactor = open()
    redactor.text('')
    await write(login('second'))
    now += 1000
    expect(redactor.line('"second-access-token first-access-token"')).toBe(
      '"[secret access_token] [secret access_token]"',
    )
    await rm(join(codexHome, 'auth.json'))
    now += 1000
    expect(redactor.text('second-access-token')).toBe('[secret access_token]')
  })

  test('that comes only later, as after a login from another terminal', async () => {
    const redactor = open()
    expect(redactor.text('first-access-token')).toBe('first-access-token')
    await write(login('first'))
    now += 1000
    expect(redactor.event({ text: 'first-access-token' })).toEqual({ text: '[secret access_token]' })
  })

  test('through a link, as some keep it', async () => {
    await write(login('first'), 'elsewhere.json')
    await symlink('elsewhere.json', join(codexHome, 'auth.json'))
    expect(open().text('first-access-token')).toBe('[secret access_token]')
  })

  test('that is missing, empty, torn, a folder, a pipe, huge or nested without end takes nothing out, and waits for nothing', async () => {
    const path = join(codexHome, 'auth.json')
    const env = { MY_TOKEN: 'value-of-mine' }
    const check = () => expect(open(env).text('a b value-of-mine')).toBe('a b [secret MY_TOKEN]')
    check()
    for (const text of ['', '{"tokens":{"access_tok', '[]', 'null', '"abc"', '['.repeat(100_000)]) {
      await writeFile(path, text)
      check()
    }
    await writeFile(path, `${'[{"a":'.repeat(20_000)}1${'}]'.repeat(20_000)}`)
    check()
    await rename(path, `${path}.old`)
    await mkdir(path)
    check()
    await rm(path, { recursive: true })
    execFileSync('mkfifo', [path])
    check()
    await rm(path)
    await writeFile(path, '')
    await truncate(path, 50_000_000_000)
    check()
  })
})

test('what codex keeps of the login to MCP servers is secret too', async () => {
  await write({ 'server|abc': { server_name: 'server', access_token: 'mcp-token-1' } }, '.credentials.json')
  expect(open().text('mcp-token-1 server')).toBe('[secret access_token] server')
})

promise('B96')
describe('the secrets of a project', () => {
  const at = new Date(0)
  const ofProject = () => {
    const project = join(codexHome, 'secrets')
    return {
      project,
      redactor: openRedactor({ env: { API_KEY: 'sk-of-the-project' }, codexHome: null, project, clock }),
    }
  }

  test('are taken out in every form, from when they are stored on, and when they are removed, too', async () => {
    const { project, redactor } = ofProject()
    const secrets = openSecrets(project)
    expect(redactor.text('first-of-two second-of-two')).toBe('first-of-two second-of-two')
    await secrets.set({ key: 'ONE', value: 'first-of-two', check: null }, at)
    now += 1000
    expect(redactor.text(`first-of-two ${Buffer.from('first-of-two').toString('hex')}`)).toBe(
      '[secret ONE] [secret ONE]',
    )
    await secrets.set({ key: 'ONE', value: 'second-of-two', check: null }, at)
    redactor.refresh()
    await secrets.remove('ONE')
    now += 1000
    expect(redactor.text('first-of-two second-of-two')).toBe('[secret ONE] [secret ONE]')
  })

  test('are known by their form, also where the environment has the same value, and short ones are not looked for', async () => {
    const { project, redactor } = ofProject()
    const secrets = openSecrets(project)
    await secrets.set({ key: 'MINE', value: 'sk-of-the-project\n', check: null }, at)
    await secrets.set({ key: 'SHORT', value: 'of-the-', check: null }, at)
    expect(redactor.text('sk-of-\nthe-project of-the-')).toBe('[secret MINE] of-the-')
  })

  test('that cannot be read take nothing out, and are waited for by nobody', async () => {
    const { project, redactor } = ofProject()
    await openSecrets(project).set({ key: 'ONE', value: 'first-of-two', check: null }, at)
    execFileSync('mkfifo', [join(project, 'PIPE.json')])
    await mkdir(join(project, 'FOLDER.json'))
    await writeFile(join(project, 'TORN.json'), '{"value":"torn-of-two')
    await writeFile(join(project, 'HUGE.json'), '')
    await truncate(join(project, 'HUGE.json'), 2 ** 40)
    expect(redactor.text('first-of-two torn-of-two')).toBe('[secret ONE] torn-of-two')
  })
})
