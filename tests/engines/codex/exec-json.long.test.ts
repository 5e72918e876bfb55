import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { EngineEvent } from '../../../src/core/engine.ts'
import {
  applyPatch,
  functionCall,
  message,
  reasoning,
  reply,
  roundsScript,
  type ScriptStep,
  shell,
  updatePlan,
} from '../../../src/demo/model/reply.ts'
import { ExecJson } from '../../../src/engines/exec/exec-json.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { IMPATIENT } from '../../support/real-scene.ts'
import {
  cutStream,
  failsWith,
  startScriptedModel,
  status,
  usageLimitReached,
  webSearch,
} from '../../support/scripted-model.ts'
import { engineNamed, play, setupIn, THREAD, WEIGH } from '../contract.ts'
import { endAfterEach } from './end-after-each.ts'

const atEnd = endAfterEach()

const PATCHES = [
  '*** Add File: a.txt\n+hello',
  '*** Update File: a.txt\n*** Move to: b.txt\n@@\n-hello\n+there',
  '*** Update File: b.txt\n@@\n-there\n+where\n*** Add File: c.txt\n+c',
  '*** Delete File: b.txt',
].map(patch => reply(applyPatch(`*** Begin Patch\n${patch}\n*** End Patch\n`)))

/** What both engines do alike. */
const SHARED: readonly ScriptStep[] = [
  reply(
    reasoning(['I look around.', 'Then I act.']),
    message('First I look.', { phase: 'commentary' }),
    updatePlan([
      { step: 'look', status: 'in_progress' },
      { step: 'act', status: 'pending' },
    ]),
    shell('echo hi; exit 3'),
  ),
  ...PATCHES,
  reply(updatePlan([{ step: 'look', status: 'completed' }], 'It was quick.')),
  reply(webSearch('stones'), shell('sleep 0.2; echo late', { yieldMs: 5_000 })),
  reply(functionCall('spawn_agent', { message: 'Help.' }, 'multi_agent_v1')),
  // An agent that ends behind the turn of the one that asked it, or just before its end, has that one asked once more, or not.
  ({ lastOutputs }) =>
    reply(functionCall('wait_agent', { targets: [JSON.parse(lastOutputs[0] ?? '').agent_id] }, 'multi_agent_v1')),
  reply(message('Done.', { phase: 'final_answer' })),
]

/** What an app-server alone does, too. */
const RICH: readonly ScriptStep[] = [
  reply(shell('rm -f nothing && echo gone')),
  reply(functionCall('weigh', { thing: 'a stone' })),
  reply(functionCall('weigh', { thing: 'air' })),
  ...SHARED,
]

const FAULTS = {
  'a usage limit': usageLimitReached(),
  'a cut stream': cutStream,
  'a model that is not there': status(404, {
    error: { code: 'model_not_found', message: 'The model `x` does not exist' },
  }),
  'a full context': failsWith('context_length_exceeded', 'too long'),
  'no login': status(401, 'who are you'),
} satisfies Record<string, ScriptStep>

/** A round of a live engine, what it sent, and that in lines of exec. */
async function live(name: string, steps: readonly ScriptStep[]) {
  const script = roundsScript([steps], { subAgent: reply(message('I helped.')) })
  const model = atEnd.use(await startScriptedModel({ script }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted', IMPATIENT)))
  const engine = await engineNamed(name).open(await setupIn(place))
  atEnd.defer(() => engine.close())
  const round = play(engine.prepare({ ...THREAD, tools: name === 'codex' ? [WEIGH] : [] }), async call =>
    JSON.stringify(call).includes('air')
      ? { text: 'Air has no weight.', success: false }
      : { text: 'Three pounds.', success: true },
  )
  const outcome = await round.outcome
  return { place, outcome, records: round.records, lines: inExec(round.records) }
}

function inExec(records: readonly string[]): string[] {
  const translation = new ExecJson()
  return records.flatMap(line => translation.lines(line))
}

async function replayed(place: TestPlace, lines: readonly string[]) {
  const path = join(place.root, 'recording.ndjson')
  await writeFile(path, `${lines.join('\n')}\n`)
  const engine = await engineNamed('replay').open(await setupIn(place))
  atEnd.defer(() => engine.close())
  const round = play(engine.prepare({ ...THREAD, recording: { path, pace: 'at-once' } }))
  return { outcome: await round.outcome, events: round.events }
}

/** What is told alike by both; tokens of the round's own thread, as they are in the end: a sub-agent's may come after them. */
function told(events: readonly EngineEvent[]): unknown[] {
  const own = events.find(event => event.type === 'turn-started')?.thread
  const usage = events.filter(event => event.type === 'usage').findLast(({ thread }) => thread === own)
  const others = events.filter(
    event =>
      event.type !== 'usage' &&
      event.type !== 'limits' &&
      !(event.type === 'item-completed' && event.item.kind === 'user-message'),
  )
  const shown = others.map(event => {
    if (event.type === 'item-completed') return { ...event, item: { ...event.item, id: '' } }
    return event.type === 'turn-started' ? { ...event, turn: '' } : event
  })
  const { input, output, reasoning } = usage?.total ?? {}
  return [...shown, { input, output, reasoning }]
}

describe('a recording of an app-server, in lines of exec', () => {
  promise(
    'J41',
    'A recorded round in lines of `codex exec --json` shows what the record itself shows, and is what codex exec prints for the same turn',
  )
  test('shows what the recording itself shows', async () => {
    const { place, outcome, records, lines } = await live('codex', RICH)
    expect(outcome.class).toBe('worked')
    const [before, after] = [await replayed(place, records), await replayed(place, lines)]
    expect(told(after.events)).toEqual(told(before.events))
    expect(after.outcome).toEqual(outcome)
    const kinds = new Set(after.events.map(event => (event.type === 'item-completed' ? event.item.kind : event.type)))
    expect([...kinds]).toEqual(
      expect.arrayContaining(['command', 'file-change', 'plan-updated', 'tool-call', 'sub-agent', 'request-answered']),
    )
  })

  promise('J41')
  test.each(Object.entries(FAULTS))('ends as it did with %s', async (_, fault) => {
    const { place, outcome, records, lines } = await live('codex', [fault])
    expect(outcome.class).not.toBe('worked')
    const [before, after] = [await replayed(place, records), await replayed(place, lines)]
    expect(after.outcome).toEqual(before.outcome)
    expect(told(after.events)).toEqual(told(before.events))
  })

  promise('J41')
  test('is what codex exec prints for the same turn, and more that other readers pass over', async () => {
    const [ofCodex, ofExec] = [await live('codex', SHARED), await live('exec', SHARED)]
    expect(ofExec.lines).toEqual(ofExec.records)
    const printed = ofExec.records.map(line => comparable(line, ofExec.place))
    // Only an app-server says that it has no bubblewrap.
    const ours = ofCodex.lines
      .map(line => comparable(line, ofCodex.place))
      .filter(line => !JSON.stringify(line).includes('bubblewrap'))
    expect(ours).toEqual(printed.map(line => expect.objectContaining(deep(line))))
  })

  test.each(['a usage limit', 'no login'] as const)('is what codex exec prints of %s', async name => {
    const fault = FAULTS[name]
    const ends = async (engine: string) => {
      const { lines, place } = await live(engine, [fault])
      return lines.map(line => comparable(line, place)).slice(-2)
    }
    expect(await ends('codex')).toEqual((await ends('exec')).map(line => expect.objectContaining(deep(line))))
  })
})

/** A line without what is another one each time. */
function comparable(line: string, place: TestPlace): Record<string, unknown> {
  const same = line
    .replaceAll(place.directory, '/work')
    .replace(/127\.0\.0\.1:\d+/g, 'model')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'thread')
    .replace(/"(input|output)_tokens":\d+/g, '"$1_tokens":1')
    .replace(/"id":"[^"]*",?/g, '')
  return JSON.parse(same)
}

/** What an object has to have, at any depth: in `item`, and in the list of changes. */
function deep(line: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(line).map(([name, value]) => [name, atLeast(value)]))
}

function atLeast(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(atLeast)
  if (typeof value !== 'object' || value === null) return value
  return expect.objectContaining(deep(value as Record<string, unknown>))
}

test('a turn that was interrupted is one in lines of exec, too', async () => {
  const place = atEnd.use(await makePlace(''))
  const turn = { id: 'u', items: [], error: null }
  const lines = inExec(
    [
      { method: 'thread/started', params: { thread: { id: 't' } } },
      { method: 'turn/started', params: { threadId: 't', turn } },
      { method: 'turn/completed', params: { threadId: 't', turn: { ...turn, status: 'interrupted' } } },
    ].map(line => JSON.stringify(line)),
  )
  expect(lines).toEqual([
    '{"type":"thread.started","thread_id":"t"}',
    '{"type":"turn.started"}',
    '{"type":"turn.failed","error":{"message":"the turn ended as interrupted"},"status":"interrupted"}',
  ])
  expect((await replayed(place, lines)).outcome).toEqual({ class: 'interrupted', message: null })
})

test('every kind of item of an app-server comes back as the same event', async () => {
  const place = atEnd.use(await makePlace(''))
  const items = [
    { type: 'plan', text: 'First this.' },
    { type: 'imageView', path: '/work/a.png' },
    { type: 'imageGeneration', savedPath: '/work/b.png' },
    { type: 'imageGeneration', savedPath: null },
    { type: 'contextCompaction' },
    { type: 'subAgentActivity', agentThreadId: 'sub', kind: 'spawned' },
    { type: 'fromTheFuture', much: 1 },
    { type: 'reasoning', summary: [], content: ['one', 'two'] },
    {
      type: 'mcpToolCall',
      server: 's',
      tool: 't',
      status: 'failed',
      arguments: {},
      result: null,
      error: { message: 'No.' },
      durationMs: 5,
    },
    { type: 'fileChange', changes: [], status: 'declined' },
  ].map((item, at) => ({ id: `raw-${at}`, ...item }))
  const records = [
    { id: 3, result: { thread: { id: 't' }, model: 'gpt-6', reasoningEffort: null, approvalPolicy: 'never' } },
    { method: 'turn/started', params: { threadId: 't', turn: { id: 'u' } } },
    ...items.map(item => ({ method: 'item/completed', params: { threadId: 't', item } })),
    { method: 'item/completed', params: { threadId: 'other', item: { id: 'x', type: 'plan', text: 'Not ours.' } } },
    { method: 'model/rerouted', params: { threadId: 't', fromModel: 'a', toModel: 'b', reason: 'full' } },
    {
      method: 'mcpServer/startupStatus/updated',
      params: { threadId: 't', name: 'm', status: 'failed', error: 'gone' },
    },
    {
      method: 'error',
      params: {
        threadId: 't',
        error: {
          message: 'Reconnecting... 1/5',
          codexErrorInfo: { x: { httpStatusCode: 502 } },
          additionalDetails: 'y',
        },
        willRetry: true,
      },
    },
    { method: 'item/commandExecution/requestApproval', id: 0, params: { threadId: 't', command: 'rm -f x' } },
    { method: 'turn/completed', params: { threadId: 't', turn: { id: 'u', status: 'completed', error: null } } },
  ].map(line => JSON.stringify(line))
  const [before, after] = [await replayed(place, records), await replayed(place, inExec(records))]
  expect(told(after.events).slice(0, -1)).toEqual(told(before.events).slice(0, -1))
  expect(after.events).toHaveLength(items.length + 6)
})

test('what is no message of codex is left out, as what has not the shape that it should', () => {
  expect(
    inExec(['rubbish', '', '[1]', '{}', '{"method":"item/completed","params":null}', '{"method":"from/theFuture"}']),
  ).toEqual([])
})
