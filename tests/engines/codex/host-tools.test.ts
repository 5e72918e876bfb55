import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import type { EngineEvent, HostTool, PreparedRound, RoundRun, ToolCall } from '../../../src/core/engine.ts'
import { readQuestion } from '../../../src/core/shapes/tools.ts'
import { functionCall, message, reply, roundsScript } from '../../../src/demo/model/reply.ts'
import { makePlace } from '../../support/place.ts'
import { startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { endAfterEach } from './end-after-each.ts'
import { MINUTE, openEngine, THREAD } from './open-engine.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-tools-'))
})
afterAll(() => rm(folder, { recursive: true }))

const atEnd = endAfterEach()

const weigh: HostTool = {
  name: 'weigh',
  description: 'Weighs a thing.',
  inputSchema: { type: 'object', properties: { thing: { type: 'string' } }, required: ['thing'] },
}

type Answer = NonNullable<RoundRun['onToolCall']>

function play(prepared: PreparedRound, onToolCall?: Answer) {
  const events: EngineEvent[] = []
  const outcome = prepared.run({
    round: 1,
    input: 'Go on.',
    onEvent: event => void events.push(event),
    onLive: () => {},
    onRecord: () => {},
    ...(onToolCall ? { onToolCall } : {}),
  })
  return { events, outcome, of: ofType(events) }
}

const ofType =
  (events: readonly EngineEvent[]) =>
  <T extends EngineEvent['type']>(type: T) =>
    events.filter((each): each is Extract<EngineEvent, { type: T }> => each.type === type)

test('an agent can call a tool of codemachine’s, several at once, and gets each answer; what it did shows', async () => {
  const script = roundsScript([
    [
      reply(functionCall('weigh', { thing: 'a stone' }), functionCall('weigh', { thing: 'a feather' })),
      reply(functionCall('weigh', { thing: 'air' })),
      reply(message('Done.')),
    ],
  ])
  const model = atEnd.use(await startScriptedModel({ script }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted')))
  const { engine } = await openEngine({ directory: place.directory, env: place.env })
  atEnd.defer(() => engine.close())
  const both = Promise.withResolvers<void>()
  const calls: ToolCall[] = []
  const round = play(engine.prepare({ ...THREAD, tools: [weigh] }), async call => {
    calls.push(call)
    if (calls.length === 2) both.resolve()
    await both.promise
    const { thing } = call.arguments as { thing: string }
    return thing === 'air' ? { text: 'Air has no weight.', success: false } : { text: `${thing}: 3`, success: true }
  })
  expect(await round.outcome).toEqual({ class: 'worked', message: null })
  expect(model.requests[0]?.tools).toContain('weigh')
  expect(model.requests[1]?.lastOutputs.toSorted()).toEqual(['a feather: 3', 'a stone: 3'])
  expect(model.requests[2]?.lastOutputs).toEqual(['Air has no weight.'])
  expect(calls.map(({ tool }) => tool)).toEqual(['weigh', 'weigh', 'weigh'])
  const items = round.of('item-completed').flatMap(({ item }) => (item.kind === 'tool-call' ? [item] : []))
  expect(items.map(({ tool, status }) => [tool, status])).toEqual([
    ['weigh', 'completed'],
    ['weigh', 'completed'],
    ['weigh', 'failed'],
  ])
  expect(round.of('request-answered')).toMatchObject([{ subject: 'weigh', answer: 'Air has no weight.' }])
})

/** A peer that sends these requests in its turn, says what it was answered, and ends. */
const asking = (requests: readonly [string, object][]) => `
  const ask = ${JSON.stringify(requests)}
  const answers = []
  on['turn/start'] = id => {
    send({ id, result: {} }); started()
    ask.forEach(([, { tool }], i) => {
      if (tool) say('item/started', { threadId: THREAD, turnId: TURN, item: { type: 'dynamicToolCall', id: 'c' + i, tool, status: 'inProgress' } })
    })
    ask.forEach(([method, params], i) => send({ id: i, method, params: { threadId: THREAD, turnId: TURN, ...params } }))
  }
  on.answer = ({ id, result }) => {
    answers[id] = result
    if (answers.filter(Boolean).length < ask.length) return
    message(JSON.stringify(answers)); completed()
  }`

async function peer(changes: string, clock?: Clock) {
  const path = await writePeer(folder, changes)
  const { engine } = await openEngine({ path, directory: folder, endMs: 500, ...(clock ? { clock } : {}) })
  atEnd.defer(() => engine.close())
  return engine
}

function answered({ of }: ReturnType<typeof play>): { success: boolean; contentItems: { text: string }[] }[] {
  const item = of('item-completed').at(-1)?.item
  return item?.kind === 'agent-message' ? JSON.parse(item.text) : []
}

const call = (tool: string): [string, object] => ['item/tool/call', { tool, callId: tool, arguments: {} }]
const texts = (round: ReturnType<typeof play>) => answered(round).map(({ contentItems: [item] }) => item?.text)

test('a call that fails, that nobody answers, or of a tool that is not there, is answered with what is wrong', async () => {
  const tools = [weigh, { ...weigh, name: 'count' }]
  const failing = play((await peer(asking([call('weigh'), call('sing')]))).prepare({ ...THREAD, tools }), () => {
    throw new Error('broken')
  })
  expect((await failing.outcome).class).toBe('worked')
  expect(answered(failing).map(({ success }) => success)).toEqual([false, false])
  expect(texts(failing)).toEqual([
    'The tool "weigh" failed. Continue without it.',
    'There is no tool named "sing" here.',
  ])
  const alone = play((await peer(asking([call('count')]))).prepare({ ...THREAD, tools }))
  await alone.outcome
  expect(texts(alone)).toEqual(['Nobody answers the tool "count" now. Continue without it.'])
})

test('a tool that takes too long is given up before codex counts as hung', async () => {
  const clock = new TestClock()
  const called = Promise.withResolvers<void>()
  const engine = await peer(asking([call('weigh')]), clock)
  const round = play(engine.prepare({ ...THREAD, tools: [weigh] }), () => {
    called.resolve()
    return new Promise(() => {})
  })
  await called.promise
  await clock.advance(53 * MINUTE)
  expect(round.of('request-answered')).toEqual([])
  await clock.advance(2 * MINUTE)
  expect((await round.outcome).class).toBe('worked')
  expect(texts(round)).toEqual(['The tool "weigh" has not answered within 3240 s. Continue without it.'])
})

test('a tool that is called when its turn is broken off learns that nobody waits any more', async () => {
  const engine = await peer(asking([call('weigh')]))
  const called = Promise.withResolvers<AbortSignal>()
  const prepared = engine.prepare({ ...THREAD, tools: [weigh] })
  const round = play(prepared, (_, over) => {
    called.resolve(over)
    return new Promise(() => {})
  })
  const over = await called.promise
  expect(over.aborted).toBe(false)
  await prepared.interrupt()
  expect((await round.outcome).class).toBe('interrupted')
  expect(over.aborted).toBe(true)
})

test('what codex asks in its own way is kept as a question, with the answer that it would take itself', async () => {
  const ask = {
    questions: [
      {
        id: 'a',
        question: 'Which database?',
        options: [
          { label: 'SQLite', description: 'Small' },
          { label: 'Postgres (Recommended)', description: 'Big' },
        ],
      },
      { id: 'b', question: 'What name?', options: null },
    ],
  }
  const engine = await peer(`
    ${asking([['item/tool/requestUserInput', ask]])}
    on['turn/start'] = (turn => id => {
      turn(id)
      say('item/completed', { threadId: THREAD, turnId: TURN, item: { type: 'agentMessage', id: 'q', text: 'By the way', phase: null,
        delivery: 'async', questions: [{ title: 'Keep the logo?', options: ['Yes', 'No'] }, { title: 'Which font?', options: null },
          { title: 'w'.repeat(3000), options: Array(20).fill('o'.repeat(400)) }] } })
    })(on['turn/start'])`)
  const questions: unknown[] = []
  const round = play(engine.prepare(THREAD), async ({ tool, arguments: args }) => {
    questions.push([tool, args])
    return { text: 'Kept.', success: true }
  })
  await round.outcome
  expect(questions).toEqual([
    [
      'ask_person',
      {
        question: 'Which database?',
        options: ['SQLite', 'Postgres (Recommended)'],
        assumption: 'Postgres (Recommended)',
      },
    ],
    ['ask_person', { question: 'What name?', options: [], assumption: 'its own best judgement' }],
    ['ask_person', { question: 'Keep the logo?', options: ['Yes', 'No'], assumption: 'Yes' }],
    ['ask_person', { question: 'Which font?', options: [], assumption: 'its own best judgement' }],
    ['ask_person', expect.objectContaining({ question: expect.stringMatching(/^w{1999}…$/) })],
  ])
  expect(readQuestion(Reflect.get(Object(questions.at(-1)), 1))).not.toHaveProperty('problem')
  expect(JSON.stringify(answered(round))).toContain('Continue with \\"Postgres (Recommended)\\"')
})
