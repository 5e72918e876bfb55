import { describe, expect, test } from 'vitest'
import type { ServerNotification, ServerRequest } from '../../../protocol/codex.ts'
import { systemClock } from '../../../src/base/clock.ts'
import type { EngineEvent } from '../../../src/core/engine.ts'
import { RoundFeed } from '../../../src/engines/codex/round-feed.ts'
import { answerRequest } from '../../../src/engines/codex/tools.ts'
import { translate } from '../../../src/engines/codex/translate.ts'
import { promise } from '../../support/promise.ts'

const LONG = 'long '.repeat(1_000_000)
const MOST = 66_000

/** What a notification becomes; the fields that matter here only. */
function eventOf(method: string, params: object): Record<string, unknown> {
  const translation = translate({ method, params } as ServerNotification, 1)
  if (translation.kind !== 'event') throw new Error(`${method} is no event`)
  return { ...translation.event }
}

const itemOf = (item: object) => eventOf('item/completed', { item: { id: 'i', ...item } }).item

test.each<[string, string, object]>([
  ['a warning', 'warning', { message: LONG }],
  ['a guardian warning', 'guardianWarning', { message: LONG }],
  ['a warning on the configuration', 'configWarning', { summary: 'Bad.', details: LONG }],
  ['a deprecation', 'deprecationNotice', { summary: LONG, details: null }],
  ['an MCP server that fails', 'mcpServer/startupStatus/updated', { name: 'm', status: 'failed', error: LONG }],
  ['an error', 'error', { error: { message: LONG, additionalDetails: null }, willRetry: false }],
  ['the details of an error', 'error', { error: { message: 'x', additionalDetails: LONG }, willRetry: false }],
  ['why a plan is as it is', 'turn/plan/updated', { explanation: LONG, plan: [] }],
  ['a search', 'item/completed', { item: { id: 'i', type: 'webSearch', query: LONG } }],
  [
    'the command of a call',
    'item/completed',
    {
      item: { id: 'i', type: 'dynamicToolCall', tool: 'run_shell', status: 'completed', arguments: { command: LONG } },
    },
  ],
  [
    'the error of an MCP tool',
    'item/completed',
    { item: { id: 'i', type: 'mcpToolCall', server: 's', tool: 't', status: 'failed', error: { message: LONG } } },
  ],
])('%s of any length is bounded in the event, and says what is missing', (_, method, params) => {
  const text = JSON.stringify(eventOf(method, params))
  expect(text.length).toBeLessThan(MOST)
  expect(text).toMatch(/\[… \d+ more characters\]/)
})

test('a call says the command that it is given, and nothing else of what it is given', () => {
  const call = { type: 'dynamicToolCall', tool: 'run_shell', status: 'completed' }
  const command = 'curl localhost'
  expect(itemOf({ ...call, arguments: { command, secrets: ['SHOP_KEY'] } })).toMatchObject({ command })
  for (const given of [{ command: 7 }, { task: 'x' }, null, undefined])
    expect(itemOf({ ...call, arguments: given })).not.toHaveProperty('command')
})

test('short texts and missing ones are as codex gave them', () => {
  const error = { error: { message: 'x', additionalDetails: null }, willRetry: true }
  expect(eventOf('error', error)).toEqual({
    type: 'error',
    round: 1,
    message: 'x',
    details: null,
    willRetry: true,
    waitsForNetwork: false,
  })
  const plan = { explanation: null, plan: [{ step: 'Look', status: 'inProgress' }] }
  expect(eventOf('turn/plan/updated', plan)).toMatchObject({
    explanation: null,
    steps: [{ step: 'Look', status: 'in-progress' }],
  })
})

test('a plan of any length is bounded, and its last step says how many more there are', () => {
  const plan = Array.from({ length: 5000 }, () => ({ step: LONG.slice(0, 100_000), status: 'pending' }))
  const { steps } = eventOf('turn/plan/updated', { explanation: null, plan })
  expect(JSON.stringify(steps).length).toBeLessThan(256 * 1024)
  expect(steps).toHaveLength(201)
  expect(Array.isArray(steps) && steps.at(-1)).toEqual({ step: '[… 4800 more steps]', status: 'pending' })
})

test('a change of any number of files of any length is bounded as a whole', () => {
  const changes = Array.from({ length: 3000 }, (_, n) => ({ path: `/w/${n}`, kind: { type: 'add' }, diff: LONG }))
  const item = itemOf({ type: 'fileChange', status: 'completed', changes })
  expect(JSON.stringify(item).length).toBeLessThan(300 * 1024)
  const found = (item as { changes: { path: string; diff: string }[] }).changes
  expect(found).toHaveLength(200)
  expect(found[0]?.diff).toMatch(/\[… \d+ more characters\]$/)
  expect(found.at(-1)?.diff).toMatch(/\[… 2800 more files\]$/)
  expect(itemOf({ type: 'fileChange', status: 'completed', changes: [] })).toMatchObject({ changes: [] })
})

test.each<[string, object]>([
  ['item/commandExecution/requestApproval', { command: LONG }],
  ['item/fileChange/requestApproval', { reason: LONG }],
  ['item/permissions/requestApproval', { reason: LONG }],
  ['item/tool/requestUserInput', { questions: [{ id: 'q', question: LONG }] }],
  ['mcpServer/elicitation/request', { serverName: LONG }],
])('what %s is about is bounded too', (method, params) => {
  const { subject } = answerRequest({ method, id: 1, params } as ServerRequest)
  expect(subject.length).toBeLessThan(MOST)
  expect(subject).toMatch(/more characters\]$/)
})

test('codex waiting for the network is told from other retries, and from giving up', () => {
  const away = 'Reconnecting... waiting for network'
  const waits = (message: string, willRetry: boolean) =>
    eventOf('error', { error: { message, additionalDetails: null }, willRetry }).waitsForNetwork
  expect([waits(away, true), waits(away, false), waits('Reconnecting... 1/5', true)]).toEqual([true, false, false])
})

promise('M26', 'A round whose context is full uses the tokens that it has used, and not the whole window')
describe('the tokens of a thread', () => {
  const tokens = (input: number, output: number, total = input + output) => ({
    totalTokens: total,
    inputTokens: input,
    cachedInputTokens: 0,
    outputTokens: output,
    reasoningOutputTokens: 0,
  })
  type Counts = ReturnType<typeof tokens>
  const counted = (reports: readonly [string, Counts][]) => {
    const told: EngineEvent[] = []
    const feed = new RoundFeed({ clock: systemClock, log: () => {} })
    feed.open({ round: 1, input: '', onEvent: event => told.push(event), onLive: () => {}, onRecord: () => {} })
    for (const [threadId, total] of reports) {
      const tokenUsage = { total, last: total, modelContextWindow: 258_400 }
      feed.notification(
        { method: 'thread/tokenUsage/updated', params: { threadId, turnId: 't', tokenUsage } } as ServerNotification,
        {},
      )
    }
    return told.map(event => (event.type === 'usage' ? [event.thread, event.total.total, event.last.total] : []))
  }
  const full = tokens(0, 0, 258_400)

  test('a context that is full has used nothing by that, and what comes after it counts on', () => {
    const after = tokens(30, 5, 258_435)
    expect(
      counted([
        ['a', tokens(100, 20)],
        ['a', full],
        ['a', after],
        ['a', full],
        ['b', full],
        ['a', tokens(7, 0, 258_407)],
      ]),
    ).toEqual([
      ['a', 120, 120],
      ['a', 120, 258_400],
      ['a', 155, 258_435],
      ['a', 155, 258_400],
      ['b', 0, 258_400],
      ['a', 162, 258_407],
    ])
  })

  test('a thread that has really used as many counts as that, and so does one of which the provider tells no more than a total', () => {
    expect(
      counted([
        ['a', tokens(258_000, 400)],
        ['b', tokens(0, 0, 500)],
      ]),
    ).toEqual([
      ['a', 258_400, 258_400],
      ['b', 500, 500],
    ])
  })
})

test('of the usage limits that codex reports its own are told, and those of single models are not', () => {
  const windows = { primary: { usedPercent: 12, windowDurationMins: 300, resetsAt: 1_795_208_095 }, secondary: null }
  expect(eventOf('account/rateLimits/updated', { rateLimits: { limitId: 'codex', ...windows } })).toEqual({
    type: 'limits',
    primary: { usedPercent: 12, windowMinutes: 300, resetsAt: 1_795_208_095_000 },
    secondary: null,
  })
  for (const [credits, goesOn] of [
    [{ hasCredits: true, unlimited: false, balance: '5' }, true],
    [{ hasCredits: false, unlimited: true, balance: null }, true],
    [{ hasCredits: false, unlimited: false, balance: '0' }, false],
  ]) {
    expect(eventOf('account/rateLimits/updated', { rateLimits: { ...windows, credits } })).toMatchObject({
      credits: goesOn,
    })
  }
  for (const rateLimits of [
    { limitId: 'one_model', ...windows },
    { limitId: 'codex', primary: null, secondary: null },
  ])
    expect(() => eventOf('account/rateLimits/updated', { rateLimits })).toThrow('is no event')
})
