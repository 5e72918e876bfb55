import { execFileSync } from 'node:child_process'
import { mkdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SettingsPlaces } from '../../../src/project/settings/load.ts'
import { defaults, openSettings } from './settings-places.ts'

let places: Awaited<ReturnType<typeof openSettings>>

beforeEach(async () => {
  places = await openSettings()
})
afterEach(() => places[Symbol.asyncDispose]())

const project = (text: string | Buffer) => places.project(text)
const person = (text: string) => places.person(text)
const load = (more?: Partial<SettingsPlaces>) => places.load(more)
const sentence = (more?: Partial<SettingsPlaces>) => places.sentence(more)

describe('which setting counts', () => {
  test('without any file the defaults of settings.js do', async () => {
    const { settings, sources } = await load()
    expect(settings).toEqual({
      ...defaults,
      maxFileSize: 2 ** 31,
      maxWait: 24 * 60 * 60 * 1000,
      fallbackAfter: 15 * 60 * 1000,
      fallbackOn: ['window'],
      decideAfter: 1_800_000,
    })
    expect(settings).toMatchObject({ port: 3000, logging: { level: 'info' }, mode: 'build' })
    expect(sources.rounds).toEqual({ layer: 'defaults', place: 'settings.js' })
  })

  test('flag before environment before project before person before defaults, setting by setting', async () => {
    await person('rounds = 2\nmodel = "mine"\neffort = "low"\nport = 4000\n')
    await project('rounds = 3\nmodel = "ours"\neffort = "high"\n')
    const { settings, sources } = await load({
      env: { CODEMACHINE_ROUNDS: '4', CODEMACHINE_MODEL: '5' },
      flags: { rounds: '5', network: true },
    })
    expect(settings).toMatchObject({ rounds: 5, network: true, model: '5', effort: 'high', port: 4000, endSeconds: 5 })
    expect(sources).toMatchObject({
      rounds: { layer: 'flag', place: '--rounds' },
      model: { layer: 'environment', place: 'CODEMACHINE_MODEL' },
      effort: { layer: 'project', place: 'codemachine.toml:3' },
      port: { layer: 'person', place: `${places.ofPerson}:4` },
      endSeconds: { layer: 'defaults' },
    })
  })

  test('what a flag says of model and effort is for this one command line', async () => {
    await project('model = "ours"\n')
    const { settings, lasting } = await load({
      env: { CODEMACHINE_EFFORT: 'low' },
      flags: { model: 'mine', effort: 'high' },
    })
    expect(settings).toMatchObject({ model: 'mine', effort: 'high' })
    expect(lasting).toEqual({ model: 'ours', effort: 'low' })
  })

  test('the config file of the person lies in their folder for configuration', async () => {
    await person('rounds = 2')
    await mkdir(join(places.root, 'xdg', 'codemachine'), { recursive: true })
    await writeFile(join(places.root, 'xdg', 'codemachine', 'config.toml'), 'rounds = 7')
    expect((await load({ configHome: join(places.root, 'xdg') })).settings.rounds).toBe(7)
    expect((await load()).settings.rounds).toBe(2)
  })

  test.each(['[logging]\nlevel = "debug"', 'logging.level = "debug"', 'logging = { level = "debug" }'])(
    'a table may be written as %j',
    async text => {
      await project(`${text}\n`)
      expect((await load()).settings.logging.level).toBe('debug')
    },
  )

  test('codex is found by CODEX_BIN, and an empty variable counts as unset', async () => {
    const env = { CODEX_BIN: '/opt/codex', CODEMACHINE_ROUNDS: '', CODEMACHINE_NETWORK: 'true' }
    expect((await load({ env })).settings).toMatchObject({ codexBin: '/opt/codex', rounds: 10, network: true })
  })

  test('a file with a byte order mark and Windows line ends is read', async () => {
    await project('\ufeffrounds = 3\r\nmodel = "m"\r\n')
    expect((await load()).settings).toMatchObject({ rounds: 3, model: 'm' })
  })
})

describe('a mistake is told in one sentence with its place', () => {
  test.each([
    ['\n\nrounds = "many"', 'codemachine.toml:3: rounds is "many"; use a whole number from 1 to 100000.'],
    ['rounds = 0', 'codemachine.toml:1: rounds is 0; use a whole number from 1 to 100000.'],
    ['rounds = 2.5', 'codemachine.toml:1: rounds is 2.5; use a whole number from 1 to 100000.'],
    [
      'rounds = 99999999999999999999',
      'codemachine.toml:1: rounds is 99999999999999999999; use a whole number from 1 to 100000.',
    ],
    ['rounds = 2026-11-20', 'codemachine.toml:1: rounds is 2026-11-20; use a whole number from 1 to 100000.'],
    ['network = "yes"', 'codemachine.toml:1: network is "yes"; use true or false.'],
    ['model = ""', 'codemachine.toml:1: model is ""; use the name of a model.'],
    ['mode = "built"', 'codemachine.toml:1: mode is "built"; use one of "build", "goal".'],
    [
      'sandbox = "full"',
      'codemachine.toml:1: sandbox is "full"; use one of "read-only", "workspace-write", "danger-full-access".',
    ],
    ['port = 1\nrouds = 4', 'codemachine.toml:2: rouds is an unknown key; did you mean "rounds"?'],
    ['codexBin = "x"', 'codemachine.toml:1: codexBin is an unknown key; did you mean "codex_bin"?'],
    ['[loging]\nlevel = "info"', 'codemachine.toml:1: loging is an unknown key; did you mean "logging"?'],
    ['[logging]\nlevl = "info"', 'codemachine.toml:2: logging.levl is an unknown key; did you mean "level"?'],
    ['logging = 3', 'codemachine.toml:1: logging is not a table; begin it with a line [logging].'],
    ['rounds.x = 3', 'codemachine.toml:1: rounds is a table; use a whole number from 1 to 100000.'],
    ['rounds = { x = 3 }', 'codemachine.toml:1: rounds is a table; use a whole number from 1 to 100000.'],
    ['[model]', 'codemachine.toml:1: model is a table; use the name of a model.'],
    ['[rounds]', 'codemachine.toml:1: rounds is a table; use a whole number from 1 to 100000.'],
    ['a = 1\nb = \nc = 3', 'codemachine.toml:2:4: not valid TOML: there is no value after "=".'],
    ['model = gpt', 'codemachine.toml:1:9: not valid TOML: unexpected character; put a text in quotes.'],
    [
      'rounds\nport = 1',
      'codemachine.toml:1:7: not valid TOML: the key, equals sign, and value must be on the same line.',
    ],
    ['[[rounds]]', 'codemachine.toml:1: rounds is a list of tables; use a whole number from 1 to 100000.'],
    ['[[logging]]\nlevel = "info"', 'codemachine.toml:1: logging is not a table; begin it with a line [logging].'],
    [
      'rounds = 1\nrounds = 2',
      'codemachine.toml:2:1: not valid TOML: defining a key multiple times is invalid; leave one of them out.',
    ],
    ['rounds = 1 port = 2', 'codemachine.toml:1:12: not valid TOML: must be a newline.'],
  ])('%j', async (text, expected) => {
    await project(text)
    expect(await sentence()).toBe(`UserError: ${expected}`)
  })

  test('a key that is like no other is told with those that are known', async () => {
    await project('__proto__ = 1')
    expect(await sentence()).toMatch(
      /^UserError: codemachine.toml:1: __proto__ is an unknown key; the known ones are mode, /,
    )
  })

  test('in the config file of the person, by its path', async () => {
    await person('agents.at_onc = 3')
    expect(await sentence()).toBe(
      `UserError: ${places.ofPerson}:1: agents.at_onc is an unknown key; did you mean "at_once"?`,
    )
    await person('port = "x"')
    expect(await sentence()).toBe(`UserError: ${places.ofPerson}:1: port is "x"; use a whole number from 1 to 65535.`)
  })

  test('in the environment, the flags and settings.js, by their names', async () => {
    const mend = 'use a whole number from 1 to 100000.'
    expect(await sentence({ env: { CODEMACHINE_ROUNDS: 'x' } })).toBe(`UserError: CODEMACHINE_ROUNDS is "x"; ${mend}`)
    expect(await sentence({ flags: { rounds: '0' } })).toBe(`UserError: --rounds is "0"; ${mend}`)
    expect(await sentence({ flags: { sandbox: 'all' } })).toMatch(/^UserError: --sandbox is "all"; use one of/)
    expect(await sentence({ defaults: { ...defaults, rounds: -1 } })).toBe(
      `UserError: settings.js: rounds is -1; ${mend}`,
    )
  })

  test('a long value is shortened', async () => {
    await project(`rounds = "${'x'.repeat(10_000)}"`)
    expect((await sentence()).length).toBeLessThan(200)
  })

  test('a file that is not UTF-8, too long, a directory or a pipe', async () => {
    const path = places.ofProject
    await project(Buffer.from([0x61, 0xff, 0xfe]))
    expect(await sentence()).toBe('UserError: codemachine.toml is not UTF-8 text; save it as UTF-8.')
    await truncate(path, 100 * 1024 * 1024)
    expect(await sentence()).toBe('UserError: codemachine.toml is longer than 1048576 bytes.')
    await rm(path)
    await mkdir(path)
    expect(await sentence()).toBe('UserError: codemachine.toml is a directory; a file is expected.')
    await rm(path, { recursive: true })
    execFileSync('mkfifo', [path])
    expect(await sentence()).toBe('UserError: codemachine.toml is not a regular file.')
  })
})
