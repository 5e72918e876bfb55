import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EngineEvent } from '../../../src/core/engine.ts'
import { message, reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { writeLossyCodex } from '../../support/lossy-codex.ts'
import { makePlace } from '../../support/place.ts'
import { incident, promise } from '../../support/promise.ts'
import { IMPATIENT } from '../../support/real-scene.ts'
import { failsWith, startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { endAfterEach } from './end-after-each.ts'
import { MINUTE, type OpenedEngine, openEngine } from './open-engine.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-lost-end-'))
})
afterAll(() => rm(folder, { recursive: true }))

const atEnd = endAfterEach()

/** The real codex, whose messages of this kind never arrive. */
async function lossyCodex(isLost: string, steps: readonly ScriptStep[]) {
  const clock = new TestClock()
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted', IMPATIENT)))
  const path = await writeLossyCodex(folder, isLost)
  return open({ path, directory: place.directory, env: place.env, clock }, clock)
}

async function peer(changes: string) {
  const clock = new TestClock()
  return open({ path: await writePeer(folder, changes), directory: folder, clock }, clock)
}

async function open(options: Parameters<typeof openEngine>[0], clock: TestClock) {
  const opened: OpenedEngine = await openEngine(options)
  atEnd.defer(() => opened.engine.close())
  const round = opened.play()
  return { clock, round, ...opened }
}

type Opened = Awaited<ReturnType<typeof open>>

/** Resolves once the notice that the thread is idle has come, and the end of the turn is waited for. */
async function waitsForEnd({ clock, round }: Opened) {
  await round.record(line => line.includes('"thread/status/changed"') && line.includes('"idle"'))
  await expect.poll(() => clock.waits().some(left => left > 5_000 && left <= 15_000), { timeout: 30_000 }).toBe(true)
}

/** How the round has ended; fails soon where it does not. */
async function outcomeOf({ round }: Opened) {
  await expect.poll(() => round.prepared.isOver, { timeout: 30_000 }).toBe(true)
  return await round.outcome
}

const said = (events: readonly EngineEvent[]) =>
  events.flatMap(event =>
    event.type !== 'item-completed'
      ? []
      : event.item.kind === 'agent-message'
        ? [event.item.text]
        : event.item.kind === 'command'
          ? [event.item.kind]
          : [],
  )

const turnOfTwo = [reply(message('Looking.'), shell('echo hi')), reply(message('Done.'))]

describe('the end of a turn that the real codex has sent and that never arrives', () => {
  promise(
    'L20',
    'A turn whose end never arrives is read back from codex 15 s after it is idle, with what was lost; codex is asked three times',
  )
  incident(
    'lost night',
    'Codex lost the end of a turn: each round was *silent* after six minutes, and no claim was heard',
    { since: '2026-11-21', fixed: '2026-11-22', foundBy: 'a measurement of codex' },
  )
  test('is read back from the thread after a grace of 15 s, and the round has worked', async () => {
    const opened = await lossyCodex(`message.method === 'turn/completed'`, turnOfTwo)
    const { clock, round, logged } = opened
    await waitsForEnd(opened)
    // The clock runs with real time, which a busy machine may take.
    await clock.advance(4_000)
    expect(round.prepared.isOver).toBe(false)
    await clock.advance(11_500)
    expect(await outcomeOf(opened)).toEqual({ class: 'worked', message: null })
    expect(said(round.events)).toEqual(['Looking.', 'command', 'Done.'])
    expect(round.events.filter(({ type }) => type === 'turn-started')).toHaveLength(1)
    expect(logged).toContainEqual(expect.stringContaining('codex did not report the end of its turn (completed)'))
    expect(round.events.some(event => event.type === 'warning' && event.message.includes('hydration'))).toBe(false)
    expect(await round.record(line => line.includes('"turn/completed"'))).toContain('"completed"')
  })

  promise('L20')
  test('brings along what was lost before it', async () => {
    const lost = `['turn/completed', 'item/completed'].includes(message.method)`
    const opened = await lossyCodex(lost, turnOfTwo)
    await waitsForEnd(opened)
    await opened.clock.advance(15_500)
    expect((await outcomeOf(opened)).class).toBe('worked')
    expect(said(opened.round.events)).toEqual(['Looking.', 'command', 'Done.'])
  })

  promise('L20')
  test('and of which the beginning never arrived either, is read back all the same', async () => {
    const lost = `['turn/started', 'turn/completed'].includes(message.method)`
    const opened = await lossyCodex(lost, turnOfTwo)
    await waitsForEnd(opened)
    await opened.clock.advance(15_500)
    expect(await opened.round.outcome).toEqual({ class: 'worked', message: null })
    expect(said(opened.round.events)).toEqual(['Looking.', 'command', 'Done.'])
    expect(opened.round.events.filter(event => event.type === 'turn-started')).toMatchObject([{ model: 'scripted' }])
  })

  test('is a failure where the turn failed, in codex’s own words', async () => {
    const opened = await lossyCodex(`message.method === 'turn/completed'`, [
      failsWith('context_length_exceeded', 'too long'),
    ])
    const { clock, round } = opened
    await round.record(line => line.includes('"systemError"'))
    await expect.poll(() => clock.waits().some(left => left > 5_000 && left <= 15_000), { timeout: 30_000 }).toBe(true)
    await clock.advance(15_500)
    expect(await outcomeOf(opened)).toEqual({
      class: 'context-full',
      message: expect.stringContaining('ran out of room'),
    })
  })
})

const idle = `const idle = (type = 'idle') => say('thread/status/changed', { threadId: THREAD, status: { type } })
  const read = turn => id => send({ id, result: { thread: { id: THREAD, turns: turn ? [turn] : [] } } })`

describe('a codex that is idle', () => {
  test('and completes its turn within the grace is not asked, and one that completes it later changes nothing', async () => {
    const opened = await peer(`${idle}
      on['thread/read'] = id => { read({ id: TURN, status: 'completed', error: null, items: [] })(id); completed('failed', { message: 'late' }) }
      on['turn/start'] = id => { send({ id, result: {} }); started(); message('hello'); idle() }`)
    await waitsForEnd(opened)
    await opened.clock.advance(15_500)
    expect(await outcomeOf(opened)).toEqual({ class: 'worked', message: null })
  })

  test('and reads back what are no items brings along the others', async () => {
    const items = [null, 3, {}, { type: 'agentMessage', id: 'm9', text: 'bye', phase: null }]
    const opened = await peer(`${idle}
      on['thread/read'] = read({ id: TURN, status: 'completed', error: null, items: ${JSON.stringify(items)} })
      on['turn/start'] = id => { send({ id, result: {} }); started(); idle() }`)
    await waitsForEnd(opened)
    await opened.clock.advance(15_500)
    expect((await outcomeOf(opened)).class).toBe('worked')
    expect(said(opened.round.events)).toEqual(['bye'])
  })

  test('and works on before the grace is over is not asked', async () => {
    const opened = await peer(`${idle}
      on['thread/read'] = id => { message('I am asked.'); read({ id: TURN, status: 'completed', error: null, items: [] })(id) }
      on['turn/start'] = id => { send({ id, result: {} }); started(); idle() }
      on['turn/steer'] = id => { idle('active'); send({ id, result: {} }) }`)
    await waitsForEnd(opened)
    expect(await opened.round.prepared.steer('Go on.')).toBe(true)
    await opened.clock.advance(15_500)
    // What would have been asked by then is answered before this.
    expect(await opened.round.prepared.steer('Go on.')).toBe(true)
    expect(said(opened.round.events)).toEqual([])
    expect(opened.round.prepared.isOver).toBe(false)
    await opened.round.prepared.interrupt()
    expect((await opened.round.outcome).class).toBe('interrupted')
  })

  const unhelpful = {
    'says that its turn still runs': `read({ id: TURN, status: 'inProgress', error: null, items: [] })`,
    'does not know its turn': `read(null)`,
    'refuses to say': `id => send({ id, error: { code: -32600, message: 'no' } })`,
    'answers rubbish': `id => send({ id, result: { thread: { turns: [null, 3] } } })`,
    'does not answer': `() => {}`,
  }
  for (const [how, read] of Object.entries(unhelpful)) {
    test(`and ${how} is asked three times in all, and silent as any other after that`, async () => {
      const opened = await peer(`${idle}
        on['thread/read'] = ${read}
        on['turn/start'] = id => { send({ id, result: {} }); started(); idle() }`)
      const { clock, round, logged } = opened
      await waitsForEnd(opened)
      for (const asked of [1, 2, 3]) await failsToTell(opened, how, asked)
      expect(round.prepared.isOver).toBe(false)
      await clock.advance(8 * MINUTE)
      expect((await round.outcome).class).toBe('silent')
      expect(logged.filter(isOfIdle)).toHaveLength(3)
    })

    promise('L20')
    test(`is believed when asked for the third time, though before it ${how}`, async () => {
      const opened = await peer(`${idle}
        let asked = 0
        const [fails, tells] = [${read}, read({ id: TURN, status: 'completed', error: null, items: [] })]
        on['thread/read'] = id => (++asked < 3 ? fails : tells)(id)
        on['turn/start'] = id => { send({ id, result: {} }); started(); idle() }`)
      await waitsForEnd(opened)
      for (const asked of [1, 2]) await failsToTell(opened, how, asked)
      await opened.clock.advance(15_500)
      expect(await opened.round.outcome).toEqual({ class: 'worked', message: null })
    })
  }
})

const isOfIdle = (line: string) => line.startsWith('codex is idle, and')

/** Moves the clock on until codex has been asked so often, in vain, and is about to be asked again. */
async function failsToTell({ clock, logged }: Opened, how: string, asked: number) {
  await clock.advance(15_500)
  if (how === 'does not answer') await clock.advance(10_500)
  await expect.poll(() => logged.filter(isOfIdle).length, { timeout: 30_000 }).toBe(asked)
}
