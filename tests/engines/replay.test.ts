import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { mkdir, open, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Engine, EngineEvent, Recording } from '../../src/core/engine.ts'
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
} from '../../src/demo/model/reply.ts'
import { HandClock } from '../support/hand-clock.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { promise } from '../support/promise.ts'
import { IMPATIENT } from '../support/real-scene.ts'
import { startScriptedModel, usageLimitReached, webSearch } from '../support/scripted-model.ts'
import { endAfterEach } from './codex/end-after-each.ts'
import { engineNamed, play, setupIn, THREAD, WEIGH } from './contract.ts'

const atEnd = endAfterEach()

/** All that a round shows, one of each kind. */
const RICH: readonly ScriptStep[] = [
  reply(
    reasoning('I look around.'),
    message('First I look.', { phase: 'commentary' }),
    updatePlan([{ step: 'look', status: 'in_progress' }]),
    shell('echo hi; echo oops >&2; exit 3'),
  ),
  reply(shell('rm -f nothing && echo gone')),
  reply(applyPatch('*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n')),
  reply(functionCall('weigh', { thing: 'a stone' }), webSearch('stones')),
  reply(functionCall('weigh', { thing: 'air' })),
  reply(updatePlan([{ step: 'look', status: 'completed' }]), message('Done.', { phase: 'final_answer' })),
]

/** A round of a live engine, and what it sent. */
async function live(name: string, steps: readonly ScriptStep[]) {
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted', IMPATIENT)))
  const engine = await engineNamed(name).open(await setupIn(place))
  atEnd.defer(() => engine.close())
  const round = play(engine.prepare({ ...THREAD, tools: [WEIGH] }), async ({ arguments: args }) =>
    JSON.stringify(args).includes('air')
      ? { text: 'Air has no weight.', success: false }
      : { text: 'Three pounds.', success: true },
  )
  return { place, outcome: await round.outcome, events: round.events, lines: round.records }
}

async function replayIn(place: TestPlace, recording: Recording, clock?: HandClock) {
  const engine: Engine = await engineNamed('replay').open(await setupIn(place, clock ? { clock } : {}))
  atEnd.defer(() => engine.close())
  return play(engine.prepare({ ...THREAD, recording }))
}

async function replayed(place: TestPlace, lines: readonly string[], pace: Recording['pace'] = 'at-once') {
  await writeFile(join(place.root, 'recording.ndjson'), `${lines.join('\n')}\n`)
  const round = await replayIn(place, { path: '../recording.ndjson', pace })
  return { outcome: await round.outcome, events: round.events, round }
}

/** The one thing that exec says of its own is not in what codex sends. */
const ofCodex = (events: readonly EngineEvent[]) =>
  events.filter(event => event.type !== 'warning' || !event.message.startsWith('The engine exec'))

promise('F22')
describe('a recorded round shows what the live one showed', () => {
  test.each(['codex', 'exec'])('of %s, with all kinds of things in it', async name => {
    const { place, outcome, events, lines } = await live(name, RICH)
    expect(outcome.class).toBe('worked')
    const kinds = new Set(events.map(event => (event.type === 'item-completed' ? event.item.kind : event.type)))
    expect([...kinds]).toEqual(expect.arrayContaining(['turn-started', 'command', 'file-change', 'plan-updated']))
    if (name === 'codex') expect([...kinds]).toEqual(expect.arrayContaining(['tool-call', 'request-answered']))
    const again = await replayed(place, lines)
    expect(again.events).toEqual(ofCodex(events))
    expect(again.outcome).toEqual(outcome)
    expect(again.round.calls).toEqual([])
    expect(again.round.records).toEqual([])
  })

  test('of one that failed', async () => {
    const { place, outcome, events, lines } = await live('codex', [usageLimitReached()])
    const again = await replayed(place, lines)
    expect([again.outcome, again.events]).toEqual([outcome, events])
  })
})

const LINES = [
  { method: 'turn/started', params: { threadId: 't', turn: { id: 'u' } }, emittedAtMs: 1_000_000 },
  { method: 'warning', params: { threadId: 't', message: 'Careful.' }, emittedAtMs: 1_030_000 },
  {
    method: 'turn/completed',
    params: { threadId: 't', turn: { id: 'u', status: 'completed', error: null } },
    emittedAtMs: 1_030_500,
  },
].map(line => JSON.stringify(line))

test('torn lines, rubbish and what is not known are passed over, and counted', async () => {
  const place = atEnd.use(await makePlace(''))
  const [begun = '', warned = '', ended = ''] = LINES
  const lines = [
    '\u0000\u0001 rubbish',
    begun,
    '',
    '[1, 2]',
    '{"method":"thread/fromTheFuture","params":{}}',
    '{"method":"item/completed","params":null}',
    '{"type":"from.the.future"}',
    '{}',
    warned,
    ended,
    'x'.repeat(17 * 1024 * 1024),
    ended.slice(0, 40),
  ]
  const { outcome, events } = await replayed(place, lines)
  expect(outcome).toEqual({ class: 'worked', message: null })
  expect(events.map(event => (event.type === 'warning' ? event.message : event.type))).toEqual([
    'turn-started',
    'Careful.',
    '8 lines of the recording ../recording.ndjson were passed over: 4 torn, or not from codex, 4 of an unknown kind.',
  ])
})

test('at a pace of one event a second each event waits for its second; as recorded, for as long as it did then', async () => {
  const place = atEnd.use(await makePlace(''))
  await writeFile(join(place.root, 'recording.ndjson'), LINES.join('\n'))
  const path = join(place.root, 'recording.ndjson')
  const clock = new HandClock()
  const bySecond = await replayIn(place, { path, pace: 'second' }, clock)
  await clock.over(1_000)
  expect(bySecond.events.length).toBeLessThanOrEqual(1)
  await clock.over(1_000)
  await bySecond.outcome
  expect(bySecond.events.map(({ type }) => type)).toEqual(['turn-started', 'warning'])
  const asRecorded = await replayIn(place, { path, pace: 'recorded' }, clock)
  await clock.over(30_000)
  await clock.over(500)
  expect(await asRecorded.outcome).toEqual({ class: 'worked', message: null })
})

test("at another pace each event waits so long, and codemachine's own lines in a recording are neither shown nor counted", async () => {
  const place = atEnd.use(await makePlace(''))
  const path = join(place.root, 'recording.ndjson')
  const own = ['{"type":"codemachine.recording","v":1}', '{"type":"codemachine.result","v":1,"exit":0}']
  await writeFile(path, [own[0], ...LINES, own[1]].join('\n'))
  const clock = new HandClock()
  const { events, outcome } = await replayIn(place, { path, pace: { seconds: 2.5 } }, clock)
  await clock.over(2_500)
  expect(events.length).toBeLessThanOrEqual(1)
  await clock.over(2_500)
  expect(await outcome).toEqual({ class: 'worked', message: null })
  expect(events.map(({ type }) => type)).toEqual(['turn-started', 'warning'])
  const atOnce = await replayIn(place, { path, pace: { seconds: 0 } }, clock)
  expect((await atOnce.outcome).class).toBe('worked')
})

test('a gap in a recording, or a clock that was set back meanwhile, holds nothing up for longer than an hour', async () => {
  const place = atEnd.use(await makePlace(''))
  const path = join(place.root, 'recording.ndjson')
  const times = [1_000_000, 900_000, 1_000_000, 99_000_000]
  const [begun = '', warned = '', ended = ''] = LINES
  const lines = [begun, warned, warned, ended].map((line, at) =>
    JSON.stringify({ ...JSON.parse(line), emittedAtMs: times[at] }),
  )
  await writeFile(path, lines.join('\n'))
  const clock = new HandClock()
  const { outcome } = await replayIn(place, { path, pace: 'recorded' }, clock)
  await clock.over(60 * 60_000)
  expect(await outcome).toEqual({ class: 'worked', message: null })
})

test('a recording that grows while it is played counts as what it was at first', async () => {
  const place = atEnd.use(await makePlace(''))
  const path = join(place.root, 'recording.ndjson')
  const [begun = '', warned = '', ended = ''] = LINES
  // So long that it is not read to its end before its first event is due.
  await writeFile(path, `${begun}\n${`${' '.repeat(999)}\n`.repeat(1000)}${warned}\n`)
  const clock = new HandClock()
  const { outcome } = await replayIn(place, { path, pace: 'second' }, clock)
  await clock.over(1_000)
  appendFileSync(path, `${ended}\n`)
  await clock.over(1_000)
  expect(await outcome).toMatchObject({ class: 'crashed' })
})

test('a round that is interrupted before it runs is interrupted, whatever its recording is', async () => {
  const place = atEnd.use(await makePlace(''))
  const engine = await engineNamed('replay').open(await setupIn(place))
  const prepared = engine.prepare({ ...THREAD, recording: { path: 'nowhere', pace: 'at-once' } })
  await prepared.interrupt()
  expect(await play(prepared).outcome).toEqual({ class: 'interrupted', message: null })
})

test('what another thread does is not shown, and times are told from when the line was sent', async () => {
  const place = atEnd.use(await makePlace(''))
  const [begun = '', warned = ''] = LINES
  const completed = (thread: string, message: string) => ({
    method: 'turn/completed',
    params: {
      threadId: thread,
      turn: {
        id: 'u',
        status: 'failed',
        error: { message, codexErrorInfo: 'usageLimitExceeded', additionalDetails: null },
      },
    },
    emittedAtMs: 1_030_500,
  })
  const { outcome, events } = await replayed(place, [
    JSON.stringify({ id: 1, result: { thread: { id: 't' } } }),
    begun,
    warned.replace('"threadId":"t"', '"threadId":"of-a-sub-agent"'),
    JSON.stringify({
      id: 7,
      method: 'item/commandExecution/requestApproval',
      params: { threadId: 't', command: 'rm -f a' },
    }),
    JSON.stringify(completed('t', 'Try again in 1 hour.')),
    JSON.stringify(completed('of-a-sub-agent', 'Try again in 2 hours.')),
  ])
  expect(outcome).toEqual({ class: 'window', message: 'Try again in 1 hour.', retryAt: 1_030_500 + 3_600_000 })
  expect(events).toMatchObject([{ type: 'turn-started' }, { type: 'request-answered', answer: 'accepted' }])
})

test('what holds no turn to its end says so', async () => {
  const place = atEnd.use(await makePlace(''))
  const cut = await replayed(place, LINES.slice(0, 2))
  expect(cut.outcome).toEqual({
    class: 'crashed',
    message: 'The recording ../recording.ndjson ends before its turn does.',
  })
  const none = await replayed(place, ['not', 'a', 'recording'])
  expect(none.outcome).toEqual({
    class: 'config',
    message:
      'The recording ../recording.ndjson contains no turn of codex; name one that does, such as rounds/001.ndjson.',
  })
})

test('what is no file, is empty or is far too large is refused in one sentence', async () => {
  const place = atEnd.use(await makePlace(''))
  const at = (name: string) => join(place.directory, name)
  await writeFile(at('whole'), LINES.join('\n'))
  await symlink(at('whole'), at('link'))
  await mkdir(at('folder'))
  execFileSync('mkfifo', [at('pipe')])
  await writeFile(at('empty'), '')
  await using huge = await open(at('huge'), 'w')
  await huge.truncate(1024 ** 3)
  const refusals: Record<string, string> = {
    link: 'is a link; name the file itself.',
    folder: 'is a folder; name a file in it, such as rounds/001.ndjson.',
    pipe: 'is not a file; name one with lines of codex.',
    empty: 'is empty; name one with lines of codex.',
    huge: 'has 1024 MiB, and may have 512; name a shorter one.',
    nowhere: 'does not exist; name an existing file.',
  }
  for (const [path, why] of Object.entries(refusals)) {
    const { outcome, events } = await replayIn(place, { path, pace: 'at-once' })
    expect([await outcome, events]).toEqual([{ class: 'config', message: `The recording ${path} ${why}` }, []])
  }
  const engine = await engineNamed('replay').open(await setupIn(place))
  expect((await play(engine.prepare(THREAD)).outcome).message).toMatch(/names no recording/)
})
