import { expect, test } from 'vitest'
import type { ServerNotification } from '../../../protocol/codex.ts'
import { Activity } from '../../../src/engines/codex/round-feed.ts'

const MINUTE = 60_000
const limits = { silenceMs: 6 * MINUTE, commandMs: 60 * MINUTE }
const command = (id: string, text = 'npm test') => ({
  id,
  type: 'commandExecution',
  command: `/bin/bash -lc '${text}'`,
})
const started = (item: object) => ({ method: 'item/started', params: { threadId: 't', item } }) as ServerNotification
const completed = (item: object) =>
  ({ method: 'item/completed', params: { threadId: 't', item } }) as ServerNotification
const other = (method: string, params: object = {}) => ({ method, params }) as ServerNotification
const away = other('error', { error: { message: 'Reconnecting... waiting for network' }, willRetry: true })

/** Notes these, each at its minute, as the round does. */
function after(...came: readonly [number, ServerNotification][]): Activity {
  const activity = new Activity(0)
  for (const [minute, message] of came) {
    activity.heard(minute * MINUTE)
    activity.note(message, minute * MINUTE)
  }
  return activity
}

/** The minute at which codex counts as hung if nothing more comes. */
const hungAt = (activity: Activity) => activity.msLeft(0, limits) / MINUTE

test('nothing at all is silence after six minutes, and anything that comes puts it off', () => {
  expect(hungAt(after())).toBe(6)
  expect(hungAt(after([4, other('thread/status/changed')]))).toBe(10)
  expect(hungAt(after([4, other('item/agentMessage/delta')]))).toBe(10)
  expect(after([4, other('warning')]).describe(10 * MINUTE)).toBe('Nothing came from codex for 6 minutes.')
})

test('a command has an hour, whatever it prints and whatever tokens are counted', () => {
  const activity = after(
    [1, started(command('c'))],
    [40, other('item/commandExecution/outputDelta')],
    [50, other('thread/tokenUsage/updated')],
  )
  expect(hungAt(activity)).toBe(61)
  expect(activity.describe(61 * MINUTE)).toBe('`npm test` was still running after 60 minutes.')
})

test('a command in the background never ends a round that gets on', () => {
  const round: [number, ServerNotification][] = [[0, started(command('server', 'npm start'))]]
  for (let minute = 10; minute < 600; minute += 50) {
    round.push([minute, started(command(`c${minute}`))], [minute + 1, completed(command(`c${minute}`))])
  }
  const activity = after(...round)
  expect(hungAt(activity)).toBe(561 + 60)
})

test('of several that run, the one that was begun last is named, with its own time', () => {
  const activity = after([0, started(command('server', 'npm start'))], [30, started(command('c'))])
  expect(hungAt(activity)).toBe(90)
  expect(activity.describe(90 * MINUTE)).toBe('`npm test` was still running after 60 minutes.')
})

test('when the last of them has ended, silence counts again', () => {
  expect(hungAt(after([0, started(command('c'))], [20, completed(command('c'))]))).toBe(26)
})

test.each(['agentMessage', 'reasoning', 'webSearch', 'contextCompaction', 'userMessage'])(
  'a %s that was begun and never completed does not excuse silence',
  type => {
    expect(hungAt(after([2, started({ id: 'i', type })]))).toBe(8)
  },
)

test.each([
  [{ type: 'mcpToolCall', server: 'db', tool: 'query' }, 'The tool `db.query` was still running after 60 minutes.'],
  [{ type: 'dynamicToolCall', tool: 'ask' }, 'The tool `ask` was still running after 60 minutes.'],
  [{ type: 'collabAgentToolCall', tool: 'wait' }, 'The tool `wait` was still running after 60 minutes.'],
  [{ type: 'somethingOfALaterCodex' }, 'The tool `somethingOfALaterCodex` was still running after 60 minutes.'],
])('a tool in progress is not silence: %j', (item, sentence) => {
  const activity = after([2, started({ id: 'i', ...item })])
  expect(hungAt(activity)).toBe(62)
  expect(activity.describe(62 * MINUTE)).toBe(sentence)
})

test('waiting for the network is no fault of a command, and its notices may be far apart', () => {
  expect(hungAt(after([0, started(command('c'))], [50, away]))).toBe(110)
  expect(hungAt(after([0, started(command('c'))], [1, completed(command('c'))], [2, away]))).toBe(17)
  expect(hungAt(after([2, away], [3, completed(command('c'))]))).toBe(9)
})

test('after the machine slept everything has its whole time again', () => {
  const activity = after([0, started(command('c'))])
  activity.restart(50 * MINUTE)
  expect(hungAt(activity)).toBe(110)
})

test('what an earlier turn left open is not of the new one', () => {
  const activity = after([0, started(command('c'))])
  activity.beginTurn(50 * MINUTE)
  expect([hungAt(activity), activity.hasCommands]).toEqual([56, false])
})

test('a long command of many lines is named on one short line, without the shell around it', () => {
  const said = (item: object) => after([0, started({ id: 'c', type: 'commandExecution', ...item })]).describe(MINUTE)
  const running = 'was still running after 1 minute.'
  expect(said({ command: `/bin/bash -lc 'echo a\n  echo b'` })).toBe(`\`echo a echo b\` ${running}`)
  expect(said({ command: `/bin/bash -lc "it's"` })).toBe(`\`it's\` ${running}`)
  expect(said({ command: 'x', commandActions: [{ type: 'unknown', command: 'npm ci' }] })).toBe(`\`npm ci\` ${running}`)
  expect(said({ command: 'y'.repeat(500) })).toBe(`\`${'y'.repeat(79)}…\` ${running}`)
})

test('a round is served by its provider for as long as something comes, and not while codex waits for the network', () => {
  const isServed = (activity: Activity, minute: number) => activity.isServed(minute * MINUTE, MINUTE)
  const working = after([2, other('item/agentMessage/delta')])
  expect([isServed(working, 2.9), isServed(working, 3.1)]).toEqual([true, false])
  expect(isServed(after([2, away]), 2)).toBe(false)
})
