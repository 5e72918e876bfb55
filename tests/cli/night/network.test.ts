import { expect } from 'vitest'
import { attempts, reply, shell } from '../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../support/night.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const MINUTE = 60_000
const never = new Promise<never>(() => {})

test('a network that goes away in the middle of a round and comes back costs nothing but the time', async () => {
  await using scene = await openScene([
    [reply(shell('true')), attempts(held(never), reply(shell(claimDone))), says('Done.')],
  ])
  const night = startNight(scene, ['--rounds', '1', 'build X'])
  await night.run.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.model.goAway()
  const away = await night.run.event('error', ({ waitsForNetwork }) => waitsForNetwork)
  expect(away).toMatchObject({ round: 1, willRetry: true, message: expect.stringContaining('waiting for network') })
  const { stdout } = await night.meanwhile('status').ended
  expect(stdout).toMatch(/network/)
  await scene.model.comeBack()
  const { exitCode, events } = await night.run.ended
  expect(eventsOf(events, 'turn-started')).toHaveLength(1)
  expect([exitCode, roundsOf(events)]).toEqual([0, [[1, 'worked', true]]])
})

test('a network that is not there is waited for until the person’s time is up, and uses up no round', async () => {
  await using scene = await openScene([round()], { provider: { base_url: 'http://model.invalid/v1' } })
  const env = { CODEMACHINE_SILENCE_MINUTES: '300' }
  const night = startNight(scene, ['--max-time', '2h', 'build X'], { env })
  expect(await night.run.event('error')).toMatchObject({ round: 1, willRetry: true })
  await night.run.event('error', ({ waitsForNetwork }) => waitsForNetwork)
  await night.nothingAsked()
  expect((await night.meanwhile('status').ended).stdout).toContain('network')
  await night.clock.advance(119 * MINUTE)
  expect(roundsOf(night.run.events)).toEqual([])
  await night.clock.advance(MINUTE)
  await night.run.event('winding-down')
  await night.clock.advance(5 * MINUTE)
  const { exitCode, events } = await night.run.ended
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'limit', limit: 'time' } }])
  expect(exitCode).toBe(3)
})
