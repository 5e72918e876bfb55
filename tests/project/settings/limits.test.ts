import { describe, expect, test } from 'vitest'
import { limitsInRun } from '../../../src/core/rules/run-limits.ts'
import { allowanceAtStart } from '../../../src/project/session-terms.ts'
import type { SettingsPlaces } from '../../../src/project/settings/load.ts'
import { promise } from '../../support/promise.ts'
import { defaults, openSettings } from './settings-places.ts'

const HOUR = 60 * 60 * 1000
const TIME = 'a time with its unit from 1 second to 365 days, such as "8h", "90m" or "1h30m"'
const TOKENS = 'a whole number of tokens up to 1000000M, such as 5000000, "5M" or "500k"'
const PERCENT = 'a percentage from 1 to 100, such as 90 or "90%"'
const MINUTES = 'a number of minutes from 0.05 to 1440'

describe('a limit is read from every place', () => {
  test('from settings.js', async () => {
    await using settings = await openSettings()
    const { settings: read } = await settings.load({
      defaults: { ...defaults, maxTime: '8h', maxTokens: 5_000_000, maxUsage: '90%', maxWait: '30m' },
    })
    expect(read).toMatchObject({ maxTime: 8 * HOUR, maxTokens: 5_000_000, maxUsage: 90, maxWait: HOUR / 2 })
  })

  test('from the config.toml of the person', async () => {
    await using settings = await openSettings()
    await settings.person(
      'max_time = "1h30m"\nmax_tokens = 2_000_000\nmax_usage = 90.5\nmax_wait = "2d"\nsilence_minutes = 0.05\nkeep_awake = false\n',
    )
    expect((await settings.load()).settings).toMatchObject({
      maxTime: 1.5 * HOUR,
      maxTokens: 2_000_000,
      maxUsage: 90.5,
      maxWait: 48 * HOUR,
      silenceMinutes: 0.05,
      keepAwake: false,
    })
  })

  test('from the codemachine.toml of the project', async () => {
    await using settings = await openSettings()
    await settings.project('max_time = "90m"\nmax_tokens = "1.5M"\nmax_usage = "90 %"\nmax_wait = "60s"\n')
    expect((await settings.load()).settings).toMatchObject({
      maxTime: 1.5 * HOUR,
      maxTokens: 1_500_000,
      maxUsage: 90,
      maxWait: 60_000,
    })
  })

  test('from the environment', async () => {
    await using settings = await openSettings()
    const { settings: read, sources } = await settings.load({
      env: {
        CODEMACHINE_MAX_TIME: '365d',
        CODEMACHINE_MAX_TOKENS: '2_000_000',
        CODEMACHINE_MAX_USAGE: '90',
        CODEMACHINE_MAX_WAIT: '1s',
        CODEMACHINE_COMMAND_MINUTES: '1440',
        CODEMACHINE_GRACE_MINUTES: '0.5',
        CODEMACHINE_STALL_ROUNDS: '5',
        CODEMACHINE_KEEP_AWAKE: 'false',
      },
    })
    expect(read).toMatchObject({
      maxTime: 365 * 24 * HOUR,
      maxTokens: 2_000_000,
      maxUsage: 90,
      maxWait: 1000,
      commandMinutes: 1440,
      graceMinutes: 0.5,
      stallRounds: 5,
      keepAwake: false,
    })
    expect(sources.maxTime).toEqual({ layer: 'environment', place: 'CODEMACHINE_MAX_TIME' })
  })

  test('from the command line, which counts most', async () => {
    await using settings = await openSettings()
    await settings.person('max_time = "1h"\nmax_tokens = 1\nmax_usage = 1\nmax_wait = "1h"\n')
    const { settings: read, sources } = await settings.load({
      env: { CODEMACHINE_MAX_TIME: '2h' },
      flags: { maxTime: '8h', maxTokens: '500k', maxUsage: '90%', maxWait: '3h', keepAwake: false },
    })
    expect(read).toMatchObject({ maxTime: 8 * HOUR, maxTokens: 5e5, maxUsage: 90, maxWait: 3 * HOUR, keepAwake: false })
    expect(sources.keepAwake).toEqual({ layer: 'flag', place: '--no-keep-awake' })
  })
})

promise('M5', 'A limit that is none is refused in one sentence with its place')
describe('a limit that is none is told in one sentence with its place', () => {
  test.each(['banana', '8', '-3h', '1h banana', '1e9h', '', '0s', '0.9s', '366d', '1y'])(
    'max_time = %j',
    async text => {
      await using settings = await openSettings()
      await settings.project(`\nmax_time = "${text}"\n`)
      expect(await settings.sentence()).toBe(`UserError: codemachine.toml:2: max_time is "${text}"; use ${TIME}.`)
    },
  )

  test.each([
    ['max_time = 8', `max_time is 8; use ${TIME}.`],
    ['max_time = 07:30:00', `max_time is 07:30:00; use ${TIME}.`],
    ['max_time = true', `max_time is true; use ${TIME}.`],
    ['max_time = ["8h"]', `max_time is ["8h"]; use ${TIME}.`],
    ['max_time = { hours = 8 }', `max_time is a table; use ${TIME}.`],
    ['max_wait = 24', `max_wait is 24; use ${TIME}.`],
    ['max_tokens = "5 apples"', `max_tokens is "5 apples"; use ${TOKENS}.`],
    ['max_tokens = 0', `max_tokens is 0; use ${TOKENS}.`],
    ['max_tokens = -5', `max_tokens is -5; use ${TOKENS}.`],
    ['max_tokens = 1.5', `max_tokens is 1.5; use ${TOKENS}.`],
    ['max_tokens = inf', `max_tokens is inf; use ${TOKENS}.`],
    ['max_tokens = "1000001M"', `max_tokens is "1000001M"; use ${TOKENS}.`],
    ['max_usage = 0.9', `max_usage is 0.9; use ${PERCENT}.`],
    ['max_usage = 101', `max_usage is 101; use ${PERCENT}.`],
    ['max_usage = "101%"', `max_usage is "101%"; use ${PERCENT}.`],
    ['max_usage = "most"', `max_usage is "most"; use ${PERCENT}.`],
    ['silence_minutes = 0', `silence_minutes is 0; use ${MINUTES}.`],
    ['silence_minutes = "6"', `silence_minutes is "6"; use ${MINUTES}.`],
    ['command_minutes = 1441', `command_minutes is 1441; use ${MINUTES}.`],
    ['grace_minutes = nan', `grace_minutes is nan; use ${MINUTES}.`],
    ['stall_rounds = 1', 'stall_rounds is 1; use a whole number from 2 to 100000.'],
    ['keep_awake = "no"', 'keep_awake is "no"; use true or false.'],
    ['maxTime = "8h"', 'maxTime is an unknown key; did you mean "max_time"?'],
  ])('%s', async (text, said) => {
    await using settings = await openSettings()
    await settings.project(text)
    expect(await settings.sentence()).toBe(`UserError: codemachine.toml:1: ${said}`)
  })

  test('without its quotes', async () => {
    await using settings = await openSettings()
    await settings.person('max_time = 8h\n')
    expect(await settings.sentence()).toMatch(/^UserError: .*config\.toml:1:\d+: not valid TOML: .*\.$/)
  })

  test.each<[string, Partial<SettingsPlaces>, string]>([
    ['CODEMACHINE_MAX_TIME', { env: { CODEMACHINE_MAX_TIME: '8' } }, `CODEMACHINE_MAX_TIME is "8"; use ${TIME}.`],
    [
      'CODEMACHINE_MAX_TOKENS',
      { env: { CODEMACHINE_MAX_TOKENS: 'x' } },
      `CODEMACHINE_MAX_TOKENS is "x"; use ${TOKENS}.`,
    ],
    ['--max-time', { flags: { maxTime: '' } }, `--max-time is ""; use ${TIME}.`],
    ['--max-tokens', { flags: { maxTokens: '-1' } }, `--max-tokens is "-1"; use ${TOKENS}.`],
    ['--max-usage', { flags: { maxUsage: '0%' } }, `--max-usage is "0%"; use ${PERCENT}.`],
    ['--max-wait', { flags: { maxWait: 'never' } }, `--max-wait is "never"; use ${TIME}.`],
    ['settings.js', { defaults: { ...defaults, maxTime: 8 } }, `settings.js: maxTime is 8; use ${TIME}.`],
  ])('%s', async (_place, more, said) => {
    await using settings = await openSettings()
    expect(await settings.sentence(more)).toBe(`UserError: ${said}`)
  })
})

describe('the limits of a session', () => {
  test.each<[string, SettingsPlaces['flags'], object]>([
    ['ten rounds if nothing is said', {}, { rounds: 10, timeMs: null, tokens: null }],
    ['the time alone if that is said', { maxTime: '8h' }, { rounds: null, timeMs: 8 * HOUR, tokens: null }],
    ['the tokens alone if they are said', { maxTokens: '5M' }, { rounds: null, timeMs: null, tokens: 5_000_000 }],
    ['all that are said', { rounds: 10, maxTime: '8h', maxTokens: '1' }, { rounds: 10, timeMs: 8 * HOUR, tokens: 1 }],
    [
      'ten rounds if only a wait is bounded',
      { maxWait: '1h', maxUsage: '9' },
      { rounds: 10, timeMs: null, tokens: null },
    ],
  ])('are %s', async (_what, flags, limits) => {
    await using settings = await openSettings()
    const { settings: read, sources } = await settings.load({ flags })
    expect(limitsInRun(allowanceAtStart(read, sources), {}, read.rounds)).toEqual(limits)
  })

  test('are those that anybody wrote anywhere', async () => {
    await using settings = await openSettings()
    await settings.person('rounds = 10\n')
    await settings.project('max_time = "8h"\n')
    const { settings: read, sources } = await settings.load()
    expect(limitsInRun(allowanceAtStart(read, sources), {}, read.rounds)).toEqual({
      rounds: 10,
      timeMs: 8 * HOUR,
      tokens: null,
    })
  })
})

promise('M22', 'A `max_file_size` that is none is refused in one sentence')
test.each(['banana', '2X', '-1G', '0', '1k', '1023k', '2000000T', ''])(
  'a max_file_size that is none is told in one sentence: %s',
  async text => {
    await using settings = await openSettings()
    await settings.project(`max_file_size = "${text}"`)
    expect(await settings.sentence()).toBe(
      `UserError: codemachine.toml:1: max_file_size is "${text}"; use a size from 1 MiB to 1024 TiB, such as "2G" or "500M".`,
    )
  },
)

test.each([
  ['"1.5 GiB"', 1.5 * 1024 ** 3],
  ['"500M"', 500 * 1024 ** 2],
  ['2097152', 2 * 1024 ** 2],
])('a max_file_size is read as a person writes it: %s', async (text, bytes) => {
  await using settings = await openSettings()
  await settings.project(`max_file_size = ${text}`)
  expect((await settings.load()).settings.maxFileSize).toBe(bytes)
})
