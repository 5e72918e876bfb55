import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { message, reply, roundsScript, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { networkLimit } from '../../../src/engines/codex/round-feed.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { hold, startScriptedModel } from '../../support/scripted-model.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'
import { endAfterEach } from './end-after-each.ts'
import { MINUTE, type OpenedEngine, openEngine } from './open-engine.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-silence-'))
})
afterAll(() => rm(folder, { recursive: true }))

const atEnd = endAfterEach()

async function peer(changes: string, limits: { requestMs?: number; endMs?: number; networkMs?: number } = {}) {
  const clock = new TestClock()
  const engine = await openEngine({ path: await writePeer(folder, changes), directory: folder, clock, ...limits })
  atEnd.defer(() => engine.engine.close())
  return { clock, ...engine }
}

async function realCodex(steps: readonly ScriptStep[]) {
  const clock = new TestClock()
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted')))
  const opened: OpenedEngine = await openEngine({ directory: place.directory, env: place.env, clock })
  atEnd.defer(() => opened.engine.close())
  return { clock, model, place, ...opened }
}

describe('the real codex', () => {
  test('that hears nothing from the model is silent, whatever it would wait for itself', async () => {
    const { clock, model, place, engine, play } = await realCodex([{ kind: 'hang-before-headers' }])
    const round = play()
    await expect.poll(() => model.requests.length, { timeout: 30_000 }).toBe(1)
    await clock.advance(6 * MINUTE + 5_000)
    expect(await round.outcome).toEqual({ class: 'silent', message: 'Nothing came from codex for 6 minutes.' })
    await engine.settle()
    expect(processesOf(place)).toEqual([])
  })

  test('with a command that hangs is silent after an hour, the command is named, and nothing of it is left', async () => {
    const { clock, place, engine, play } = await realCodex([
      reply(shell('sleep 1000', { yieldMs: 250 })),
      { kind: 'hang-before-headers' },
    ])
    const round = play()
    await round.command
    await clock.advance(50 * MINUTE)
    expect(round.events.some(({ type }) => type === 'item-completed')).toBe(true)
    await clock.advance(10 * MINUTE + 5_000)
    const outcome = await round.outcome
    expect(outcome.class).toBe('silent')
    expect(outcome.message).toMatch(/^`sleep 1000` was still running after 6[01] minutes\.$/)
    await engine.settle()
    expect(processesOf(place)).toEqual([])
  })

  test('in a machine that slept goes on, and says so', async () => {
    const woken = Promise.withResolvers<void>()
    const { clock, play } = await realCodex([reply(message('Working.'), hold(woken.promise))])
    const round = play()
    await round.event('item-completed', 2)
    clock.sleepMachine(8 * 60 * MINUTE)
    await clock.advance(5 * MINUTE)
    woken.resolve()
    expect(await round.outcome).toEqual({ class: 'worked', message: null })
    const slept = round.events.filter(({ type }) => type === 'machine-slept')
    expect(slept).toEqual([{ type: 'machine-slept', round: 1, ms: expect.any(Number) }])
    const [event] = slept
    expect(event?.type === 'machine-slept' && Math.round(event.ms / MINUTE)).toBe(480)
  })
})

describe('a codex', () => {
  test('that begins no turn is silent', async () => {
    const { clock, play } = await peer(`on['turn/start'] = id => send({ id, result: { turn: { id: TURN } } })`)
    const round = play()
    await round.record(line => line.includes('"result":{"turn"'))
    await clock.advance(8 * MINUTE)
    expect(await round.outcome).toEqual({ class: 'silent', message: 'Nothing came from codex for 6 minutes.' })
  })

  test('that takes no interrupt is closed half a minute later, and killed if it takes no end either', async () => {
    const { clock, play } = await peer(
      `on['turn/start'] = id => { send({ id, result: {} }); started(); message(String(process.pid)) }
       on['turn/interrupt'] = () => {}
       on.end = () => {}
       process.on('SIGTERM', () => {})
       setInterval(() => {}, 1000)`,
      { endMs: 2_000 },
    )
    const round = play()
    const event = await round.event('item-completed')
    const pid = event.item.kind === 'agent-message' ? Number(event.item.text) : 0
    await clock.advance(6 * MINUTE + 10_000)
    let over = false
    void round.outcome.then(() => {
      over = true
    })
    await clock.advance(15_000)
    expect([over, await isAlive(pid, 'linux')]).toEqual([false, true])
    await clock.advance(30_000)
    expect(await round.outcome).toEqual({ class: 'silent', message: 'Nothing came from codex for 6 minutes.' })
    await clock.advance(10_000)
    await expect.poll(() => isAlive(pid, 'linux'), { timeout: 30_000 }).toBe(false)
  })

  test('that completes its turn when it is interrupted has worked', async () => {
    const { clock, play } = await peer(
      `on['turn/start'] = id => { send({ id, result: {} }); started() }
       on['turn/interrupt'] = id => { send({ id, result: {} }); completed() }`,
    )
    const round = play()
    await round.event('turn-started')
    await clock.advance(6 * MINUTE + 5_000)
    expect(await round.outcome).toEqual({ class: 'worked', message: null })
  })

  test('whose person interrupts it while it is being given up stays what it was first', async () => {
    const { clock, play } = await peer(
      `on['turn/start'] = id => { send({ id, result: {} }); started() }
       on['turn/interrupt'] = () => {}`,
      { endMs: 300 },
    )
    const round = play()
    await round.event('turn-started')
    await clock.advance(6 * MINUTE + 5_000)
    await round.prepared.interrupt()
    expect(await round.outcome).toMatchObject({ class: 'silent' })
  })

  test('that takes no text says so within five seconds, however long a request may take', async () => {
    const { clock, play, logged } = await peer(
      `on['turn/start'] = id => { send({ id, result: {} }); started() }
       on['turn/steer'] = () => {}`,
    )
    const round = play()
    await round.event('turn-started')
    const steered = round.prepared.steer('more')
    await clock.advance(5_000)
    expect(await steered).toBe(false)
    expect(logged).toEqual(['codex did not accept the text: codex did not answer turn/steer within 5 s.'])
  })

  test('with a sub-agent that does something is not silent', async () => {
    const { clock, play } = await peer(`
      on['turn/start'] = id => { send({ id, result: {} }); started() }
      on['turn/steer'] = id => { send({ id, result: {} }); say('item/agentMessage/delta', { threadId: 'other', turnId: 'o', itemId: 'i', delta: 'x' }) }
      on['turn/interrupt'] = id => { send({ id, result: {} }); completed('interrupted') }`)
    const round = play()
    await round.event('turn-started')
    for (let n = 0; n < 5; n++) {
      await clock.advance(4 * MINUTE)
      expect(await round.prepared.steer('more')).toBe(true)
    }
    await round.prepared.interrupt()
    expect(await round.outcome).toMatchObject({ class: 'interrupted' })
  })

  test('that waits for the network for a night is left to it where nobody bounds it, and says so now and then', async () => {
    const { clock, play } = await peer(`
      const away = { message: 'Reconnecting... waiting for network', codexErrorInfo: null, additionalDetails: 'dns' }
      on['turn/start'] = id => { send({ id, result: {} }); started() }
      on['turn/steer'] = id => { send({ id, result: {} }); say('error', { threadId: THREAD, turnId: TURN, error: away, willRetry: true }) }
      on['turn/interrupt'] = id => { send({ id, result: {} }); completed('interrupted') }`)
    const round = play()
    await round.event('turn-started')
    for (let n = 0; n < 120; n++) {
      await clock.advance(MINUTE)
      expect(await round.prepared.steer('again')).toBe(true)
    }
    const notices = round.events.filter(({ type }) => type === 'error')
    expect(notices.length).toBeGreaterThan(15)
    expect(notices.length).toBeLessThanOrEqual(25)
    expect(notices[0]).toMatchObject({ waitsForNetwork: true, willRetry: true })
    await round.prepared.interrupt()
    expect(await round.outcome).toMatchObject({ class: 'interrupted' })
  })

  const goesOffline = (before: string) => `
    const away = { message: 'Reconnecting... waiting for network', codexErrorInfo: null, additionalDetails: 'dns' }
    on['turn/start'] = id => { send({ id, result: {} }); started(); ${before}; say('error', { threadId: THREAD, turnId: TURN, error: away, willRetry: true }) }`
  const isGone = { class: 'network', message: 'No network: codex cannot reach its server (dns).' }

  promise('W4')
  test('that waits for the network before its agent has done anything is ended after 15 s, as far as it may wait', async () => {
    const { clock, play } = await peer(goesOffline(''), { networkMs: 2 * MINUTE })
    const round = play()
    await round.event('error')
    // The clock runs with real time, which a busy machine may take.
    await clock.advance(4_000)
    expect(round.prepared.isOver).toBe(false)
    await clock.advance(12_000)
    expect(await round.outcome).toEqual(isGone)
    const impatient = await peer(goesOffline(''), { networkMs: 100 })
    expect(await impatient.play().outcome).toEqual(isGone)
  })

  test('that waits for the network once its agent has worked is given as long as it may wait', async () => {
    const { clock, play } = await peer(goesOffline(`message('Working.')`), { networkMs: 2 * MINUTE })
    const round = play()
    await round.event('error')
    await clock.advance(MINUTE)
    expect(round.prepared.isOver).toBe(false)
    await clock.advance(MINUTE + 2_000)
    expect(await round.outcome).toEqual(isGone)
  })

  test('that reaches it again in time is not ended, and is given as long once more the next time', async () => {
    const { clock, play } = await peer(
      `${goesOffline(`message('Working.')`)}
      const goOn = ['comes back', 'does nothing', 'is away again']
      on['turn/steer'] = id => {
        const next = goOn.shift()
        if (next === 'comes back') message('Back.')
        if (next === 'is away again') say('error', { threadId: THREAD, turnId: TURN, error: away, willRetry: true })
        send({ id, result: { turnId: TURN } })
      }`,
      { networkMs: 2 * MINUTE },
    )
    const round = play()
    await round.event('error')
    await clock.advance(MINUTE)
    expect(await round.prepared.steer('Go on.')).toBe(true)
    await clock.advance(MINUTE + 5_000)
    expect(await round.prepared.steer('Go on.')).toBe(true)
    expect(await round.prepared.steer('Go on.')).toBe(true)
    await clock.advance(MINUTE)
    expect(round.prepared.isOver).toBe(false)
    await clock.advance(MINUTE + 2_000)
    expect(await round.outcome).toEqual(isGone)
  })
})

test('a turn waits for the network for a part of what the person allows, and for two minutes at most', () => {
  expect([0, 10_000, 24 * 60 * MINUTE].map(networkLimit)).toEqual([0, 2_500, 2 * MINUTE])
})
