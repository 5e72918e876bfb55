import { describe, expect, test } from 'vitest'
import { openSettings } from './settings-places.ts'

const COMMAND =
  'a list of texts, first the program by its name or absolute path, such as ["notify-send", "codemachine"]'
const WEBHOOK = 'an http or https URL, such as "https://example.org/hook"'
const EVENTS = 'a list of any of "ended", "needs-person", "waiting", "round-ended", "stuck", "paused"'

const HIDDEN = 'is wrong (not shown, as it may hold a secret)'

test('nobody is told unless a person says so, and then of what ends, needs them or waits', async () => {
  await using settings = await openSettings()
  expect((await settings.load()).settings.notify).toEqual({
    command: null,
    webhook: null,
    bell: false,
    events: ['ended', 'needs-person', 'waiting', 'paused'],
  })
})

describe('who is told is a table', () => {
  test.each([
    '[notify]\ncommand = ["sh", "-c", "a\\nb"]\nwebhook = "https://u:p@hooks.example/x?y"\nbell = true\nevents = []\n',
    'notify = { command = ["sh", "-c", "a\\nb"], webhook = "https://u:p@hooks.example/x?y", bell = true, events = [] }\n',
    'notify.command = ["sh", "-c", "a\\nb"]\nnotify.webhook = "https://u:p@hooks.example/x?y"\nnotify.bell = true\nnotify.events = []\n',
  ])('%j', async text => {
    await using settings = await openSettings()
    await settings.person(text)
    expect((await settings.load()).settings.notify).toEqual({
      command: ['sh', '-c', 'a\nb'],
      webhook: 'https://u:p@hooks.example/x?y',
      bell: true,
      events: [],
    })
  })

  test('or variables, a list as a JSON array; what they do not say stays', async () => {
    await using settings = await openSettings()
    await settings.person('notify.bell = true\nnotify.events = ["stuck"]\n')
    const env = {
      CODEMACHINE_NOTIFY_COMMAND: '["/usr/bin/say", "done"]',
      CODEMACHINE_NOTIFY_WEBHOOK: 'http://127.0.0.1:8080/',
      CODEMACHINE_NOTIFY_EVENTS: ' ["ended", "paused", "round-ended"]',
    }
    const { settings: read, sources } = await settings.load({ env })
    expect(read.notify).toEqual({
      command: ['/usr/bin/say', 'done'],
      webhook: 'http://127.0.0.1:8080/',
      bell: true,
      events: ['ended', 'paused', 'round-ended'],
    })
    expect(sources['notify.command']).toEqual({ layer: 'environment', place: 'CODEMACHINE_NOTIFY_COMMAND' })
  })

  test.each([['notify-send'], ['/usr/bin/say'], ['C:\\tools\\say.exe'], ['d:/say'], ['\\\\host\\say.exe']])(
    'a program is named or has its whole path: %s',
    async program => {
      await using settings = await openSettings()
      const { settings: read } = await settings.load({ env: { CODEMACHINE_NOTIFY_COMMAND: JSON.stringify([program]) } })
      expect(read.notify.command).toEqual([program])
    },
  )
})

describe('a mistake is told with its place, and what may hold a secret is not repeated', () => {
  test.each([
    ['command = "notify-send"', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = []', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = [""]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = ["say", 3]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = ["say", " "]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = ["say", "a\\u0000b"]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = ["./say.sh"]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = ["bin\\\\say"]', `command ${HIDDEN}; use ${COMMAND}.`],
    ['command = { program = "say" }', `command ${HIDDEN}; use ${COMMAND}.`],
    ['webhook = "banana"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = ""', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = "ftp://token@hooks.example"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = "file:///etc/passwd"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = "https://"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = "https://hooks.example/a b"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['webhook = "https://hooks.example:99999/"', `webhook ${HIDDEN}; use ${WEBHOOK}.`],
    ['bell = "yes"', 'bell is "yes"; use true or false.'],
    ['events = "ended"', `events is "ended"; use ${EVENTS}.`],
    ['events = ["ended", "endd"]', `events is ["ended", "endd"]; use ${EVENTS}.`],
  ])('%s', async (text, said) => {
    await using settings = await openSettings()
    await settings.person(`[notify]\n${text}\n`)
    expect(await settings.sentence()).toBe(`UserError: ${settings.ofPerson}:2: notify.${said}`)
  })

  test.each([
    ['[notify]\ncomand = ["x"]', '2: notify.comand is an unknown key; did you mean "command"?'],
    ['notify = "https://hooks.example"', '1: notify is not a table; begin it with a line [notify].'],
  ])('%s', async (text, said) => {
    await using settings = await openSettings()
    await settings.person(text)
    expect(await settings.sentence()).toBe(`UserError: ${settings.ofPerson}:${said}`)
  })

  test.each([
    ['CODEMACHINE_NOTIFY_COMMAND', 'notify-send', `${HIDDEN}; use ${COMMAND}.`],
    ['CODEMACHINE_NOTIFY_COMMAND', '["say"', `${HIDDEN}; use ${COMMAND}.`],
    ['CODEMACHINE_NOTIFY_WEBHOOK', 'hooks.example', `${HIDDEN}; use ${WEBHOOK}.`],
    ['CODEMACHINE_NOTIFY_BELL', 'loud', 'is "loud"; use true or false.'],
    ['CODEMACHINE_NOTIFY_EVENTS', 'ended,waiting', `is "ended,waiting"; use ${EVENTS}.`],
  ])('%s=%s', async (variable, text, said) => {
    await using settings = await openSettings()
    expect(await settings.sentence({ env: { [variable]: text } })).toBe(`UserError: ${variable} ${said}`)
  })
})
