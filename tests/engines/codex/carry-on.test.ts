import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { message, reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { killIfAlive } from '../../support/kill-if-alive.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { IMPATIENT } from '../../support/real-scene.ts'
import { cutStream, hold, startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { endAfterEach } from './end-after-each.ts'
import { MINUTE, openEngine } from './open-engine.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-carry-on-'))
})
afterAll(() => rm(folder, { recursive: true }))

const atEnd = endAfterEach()
const HOUR = 60 * MINUTE

async function peer(changes: string, endMs = 500) {
  const clock = new TestClock()
  const opened = await openEngine({ path: await writePeer(folder, changes), directory: folder, clock, endMs })
  atEnd.defer(() => opened.engine.close())
  return { clock, ...opened }
}

async function realCodex(steps: readonly ScriptStep[]) {
  // A step that codex has not got to its end is due again, so the fault is one of an attempt.
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted', IMPATIENT)))
  const opened = await openEngine({ directory: place.directory, env: place.env })
  atEnd.defer(() => opened.engine.close())
  return { model, place, ...opened }
}

const onceCut =
  (then: ScriptStep): ScriptStep =>
  request =>
    request.attempt === 0 ? cutStream : typeof then === 'function' ? then(request) : then

/** A peer whose first turn loses the network; `second` is what it does when it is asked for another. */
const loses = (second: string) => `
  const broken = { message: 'stream disconnected before completion: gone', codexErrorInfo: 'other' }
  let turns = 0
  const begin = turn => say('turn/started', { threadId: THREAD, turn: { id: turn } })
  const end = (turn, status, error = null) => say('turn/completed', { threadId: THREAD, turn: { id: turn, status, error, items: [] } })
  on['turn/start'] = (id, params) => {
    turns++
    if (turns > 1) { ${second}; return }
    send({ id, result: {} }); begin('one'); message(String(process.pid)); end('one', 'failed', broken)
  }`

describe('the real codex', () => {
  test('goes on in the same thread after a cut stream, with all that it had done', async () => {
    const { model, play } = await realCodex([
      reply(message('First.'), shell('echo done > file.txt')),
      onceCut(reply(message('Second.'))),
    ])
    const round = play()
    const outcome = await round.outcome
    expect(outcome.class).toBe('network')
    expect(await round.prepared.carryOn('The network is back.')).toEqual({ class: 'worked', message: null })
    const last = model.requests.at(-1)
    expect(last?.thread).toBe(model.requests[0]?.thread)
    expect(last?.userTexts.slice(-2)).toEqual(['Go on.', 'The network is back.'])
    const turns = round.events.flatMap(event => (event.type === 'turn-started' ? [event] : []))
    expect(turns).toHaveLength(2)
    expect(new Set(turns.map(({ thread }) => thread)).size).toBe(1)
    expect(new Set(turns.map(({ turn }) => turn)).size).toBe(2)
    expect(turns.map(({ model }) => model)).toEqual(['scripted', 'scripted'])
    expect(turns.map(({ effort }) => effort)).toEqual([null, null])
    const said = round.events.flatMap(event =>
      event.type === 'item-completed' && event.item.kind === 'agent-message' ? [event.item.text] : [],
    )
    expect(said).toEqual(['First.', 'Second.'])
  })

  test('takes texts and an interrupt in the second turn as in the first', async () => {
    const never = new Promise(() => {})
    const { play } = await realCodex([onceCut(reply(message('Second.'), hold(never)))])
    const round = play()
    expect((await round.outcome).class).toBe('network')
    const again = round.prepared.carryOn('On.')
    await round.event('turn-started', 2)
    await round.record(line => line.includes('"Second."'))
    expect(await round.prepared.steer('Also this.')).toBe(true)
    await round.prepared.interrupt()
    expect(await again).toEqual({ class: 'interrupted', message: null })
  })

  test('that is not carried on is ended, and nothing of it is left', async () => {
    const { place, engine, play } = await realCodex([reply(shell('sleep 1000', { yieldMs: 250 })), cutStream])
    const round = play()
    expect((await round.outcome).class).toBe('network')
    expect(processesOf(place).some(line => line.includes('sleep 1000'))).toBe(true)
    round.prepared.discard()
    round.prepared.discard()
    await engine.settle()
    expect(processesOf(place)).toEqual([])
    expect(await round.prepared.carryOn('On.')).toBeNull()
  })
})

test('what still comes of the first turn does not end the second, nor is it lost', async () => {
  const { play } = await peer(
    loses(
      `send({ id, result: {} }); end('one', 'completed'); begin('one'); begin('two'); end('one', 'failed', broken); message('late'); end('two', 'completed')`,
    ),
  )
  const round = play()
  expect((await round.outcome).class).toBe('network')
  expect(await round.prepared.carryOn('On.')).toEqual({ class: 'worked', message: null })
  const types = round.events.map(event => (event.type === 'turn-started' ? event.turn : event.type))
  expect(types).toEqual(['one', 'item-completed', 'two', 'item-completed'])
})

test('what comes between the two turns is told with the second', async () => {
  const { play } = await peer(`
    ${loses(`send({ id, result: {} }); begin('two'); end('two', 'completed')`)}
    on['account/rateLimits/read'] = id => { message('between'); send({ id, result: {} }) }`)
  const round = play()
  await round.outcome
  const before = round.events.length
  expect(await round.prepared.limits()).toBeNull()
  expect(round.events).toHaveLength(before)
  await round.prepared.carryOn('On.')
  expect(round.events.slice(before).map(({ type }) => type)).toEqual(['item-completed', 'turn-started'])
})

test('what is malformed and comes between the two turns harms nothing, and is logged', async () => {
  const { play, logged } = await peer(`
    ${loses(`send({ id, result: {} }); begin('two'); end('two', 'completed')`)}
    on['account/rateLimits/read'] = id => { say('warning'); send({ id, result: {} }) }`)
  const round = play()
  await round.outcome
  await round.prepared.limits()
  expect(await round.prepared.carryOn('On.')).toEqual({ class: 'worked', message: null })
  expect(logged).toContainEqual(expect.stringContaining('warning from codex was not understood: '))
})

const beginsCommand = `say('item/started', { threadId: THREAD, item: { type: 'commandExecution', id: 'c', command: 'sleep 1' } })`
const alsoBegins = (second: string) =>
  loses(second).replace(`message(String(process.pid))`, `message(String(process.pid)); ${beginsCommand}`)

test('a command that the first turn left open does not put off that the second is silent', async () => {
  const { clock, play } = await peer(alsoBegins(`send({ id, result: {} }); begin('two')`))
  const round = play()
  expect((await round.outcome).class).toBe('network')
  const second = round.prepared.carryOn('On.')
  await round.event('turn-started', 2)
  await clock.advance(8 * MINUTE)
  expect(await second).toEqual({ class: 'silent', message: 'Nothing came from codex for 6 minutes.' })
})

test('nor does it put off the end of the second until codex has ended', async () => {
  const { play } = await peer(
    `${alsoBegins(`send({ id, result: {} }); begin('two'); end('two', 'completed')`)}
     on.end = () => {}; process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`,
    HOUR,
  )
  const round = play()
  const event = await round.event('item-completed')
  const pid = event.item.kind === 'agent-message' ? Number(event.item.text) : 0
  atEnd.defer(() => killIfAlive(pid))
  expect((await round.outcome).class).toBe('network')
  expect(await round.prepared.carryOn('On.')).toEqual({ class: 'worked', message: null })
  // It takes no end, and it would be killed in an hour.
  expect(await isAlive(pid, 'linux')).toBe(true)
})

test('an interrupt while the second turn is being refused ends the round as interrupted', async () => {
  const { play } = await peer(
    loses(`message('asked')
      on['account/rateLimits/read'] = () => send({ id, error: { code: -32600, message: 'thread not found' } })`),
  )
  const round = play()
  await round.outcome
  const second = round.prepared.carryOn('On.')
  await round.event('item-completed', 2)
  const interrupted = round.prepared.interrupt()
  void round.prepared.limits()
  await interrupted
  expect(await second).toEqual({ class: 'interrupted', message: null })
})

test('a process that has gone meanwhile cannot be carried on', async () => {
  const { play } = await peer(loses(''))
  const round = play()
  await round.outcome
  const event = await round.event('item-completed')
  const pid = event.item.kind === 'agent-message' ? Number(event.item.text) : 0
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isAlive(pid, 'linux'), { timeout: 30_000 }).toBe(false)
  expect(await round.prepared.carryOn('On.')).toBeNull()
})

test('a thread that codex no longer knows cannot be carried on', async () => {
  const { play } = await peer(loses(`send({ id, error: { code: -32600, message: 'thread not found' } })`))
  const round = play()
  await round.outcome
  expect(await round.prepared.carryOn('On.')).toBeNull()
})

test('a round that was not broken off by the network cannot be carried on', async () => {
  const { play } = await peer('')
  const round = play()
  expect((await round.outcome).class).toBe('worked')
  expect(await round.prepared.carryOn('On.')).toBeNull()
})

test('an interrupt between the two turns ends the round', async () => {
  const { play } = await peer(loses(`completed()`))
  const round = play()
  await round.outcome
  await round.prepared.interrupt()
  expect(await round.prepared.carryOn('On.')).toEqual({ class: 'interrupted', message: null })
})

test('the second turn is watched for silence too, and may be broken off again', async () => {
  const { clock, play } = await peer(
    loses(`send({ id, result: {} }); begin('t' + turns); if (turns === 2) end('t2', 'failed', broken)`),
  )
  const round = play()
  expect((await round.outcome).class).toBe('network')
  expect(await round.prepared.carryOn('On.')).toMatchObject({ class: 'network' })
  const third = round.prepared.carryOn('On.')
  await round.event('turn-started', 3)
  await clock.advance(8 * MINUTE)
  expect(await third).toMatchObject({ class: 'silent' })
})
