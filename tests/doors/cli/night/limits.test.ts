import { expect } from 'vitest'
import { type ItemsReply, message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { claimDone, held, round } from '../../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../../support/scene.ts'
import { attempts } from '../../../support/scripted-model.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const MINUTE = 60_000
/** Hours in which nothing comes is no silence. */
const patient = { CODEMACHINE_SILENCE_MINUTES: '300' }
const never = new Promise<never>(() => {})
const isWords = ({ item }: { item: { kind: string } }) => item.kind === 'agent-message'

/** What the person's limit made the agent be told: the last words of a request that ask for a safe stop. */
const askedToStop = (scene: Scene) =>
  scene.model.requests.filter(({ userTexts }) => userTexts.at(-1)?.includes('Stop safely')).length

describe('time that is up in the middle of a round', () => {
  promise('M2', 'A limit of time or tokens lets the agent come to a safe stop, then interrupts it')
  test('lets the agent come to a safe stop, and ends the session with exit code 3', async () => {
    const stop = reply(shell('echo stopped > work.txt'))
    await using scene = await openScene([[attempts(held(never), stop)], round(claimDone)])
    const night = startNight(scene, ['--max-time', '2h', 'build X'], { env: patient })
    await night.run.event('item-completed', isWords)
    await night.nothingAsked()
    await night.clock.advance(119 * MINUTE)
    expect(eventsOf(night.run.events, 'winding-down')).toEqual([])
    await night.clock.advance(MINUTE)
    expect(await night.run.event('winding-down')).toMatchObject({ round: 1, limit: 'time', graceMs: 5 * MINUTE })
    const { exitCode, events } = await night.run.ended
    expect(askedToStop(scene)).toBeGreaterThan(0)
    expect(eventsOf(events, 'round-ended')).toMatchObject([{ outcome: { class: 'worked' }, changed: ['work.txt'] }])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'limit', limit: 'time' } }])
    expect(exitCode).toBe(3)
  })

  promise('M2')
  test('interrupts an agent that does not stop', async () => {
    await using scene = await openScene([[held(never)], round(claimDone)])
    const night = startNight(scene, ['--max-time', '2h', 'build X'], { env: patient })
    await night.run.event('item-completed', isWords)
    await night.nothingAsked()
    await night.clock.advance(120 * MINUTE)
    await night.run.event('winding-down')
    await night.clock.advance(4 * MINUTE)
    expect(roundsOf(night.run.events)).toEqual([])
    await night.clock.advance(MINUTE)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events).map(([, end]) => end)).toEqual(['interrupted'])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'limit', limit: 'time' } }])
    expect(exitCode).toBe(3)
  })

  test('does not stand in the way of a claim that the round makes on its way out', async () => {
    await using scene = await openScene([[attempts(held(never), reply(shell(claimDone)))]])
    const night = startNight(scene, ['--max-time', '2h', 'build X'], { env: patient })
    await night.run.event('item-completed', isWords)
    await night.nothingAsked()
    await night.clock.advance(120 * MINUTE)
    expect(await night.run.ended).toMatchObject({ exitCode: 0 })
  })
})

describe('tokens that are used up', () => {
  const costly = (tokens: number, ...items: ItemsReply['items']): ItemsReply => ({
    ...reply(...items),
    usage: { input: tokens - 100, cachedInput: 0, output: 100, reasoning: 0 },
  })

  test('in the middle of a round: the agent comes to a safe stop, exit code 3', async () => {
    const told = Promise.withResolvers<void>()
    await using scene = await openScene([
      [
        costly(3000, shell('echo one > work.txt')),
        costly(3000, shell('echo two > work.txt')),
        held(told.promise),
        costly(500, message('I have come to a stop.')),
      ],
      round(claimDone),
    ])
    const night = startNight(scene, ['--max-tokens', '5k', 'build X'])
    await night.run.event('winding-down')
    // Only a turn that still runs can be told.
    await night.nothingAsked()
    told.resolve()
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'winding-down')).toMatchObject([{ round: 1, limit: 'tokens' }])
    expect(askedToStop(scene)).toBeGreaterThan(0)
    expect(roundsOf(events)).toEqual([[1, 'worked', true]])
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'limit', limit: 'tokens' } }])
    expect(exitCode).toBe(3)
  })

  test('over several rounds: each is counted once, and resume with more goes on', async () => {
    const last = (tokens: number) => [costly(tokens, message('So far.'))]
    await using scene = await openScene([last(3000), last(3000), round(claimDone)])
    const { exitCode, events } = await startNight(scene, ['--max-tokens', '5k', 'build X']).run.ended
    expect([exitCode, roundsOf(events).length]).toEqual([3, 2])
    const [first] = eventsOf(events, 'round-ended')
    expect(first?.tokens).toMatchObject({ total: 3000 })
    // A request to come to a safe stop that still reaches the turn costs one more answer.
    const [end] = eventsOf(events, 'session-ended')
    expect(end).toMatchObject({ outcome: { limit: 'tokens' } })
    expect(end?.tokens).toBeGreaterThanOrEqual(6000)
    const resumed = await startNight(scene, ['resume', '--max-tokens', '5M']).run.ended
    expect(resumed.exitCode).toBe(0)
  })
})
