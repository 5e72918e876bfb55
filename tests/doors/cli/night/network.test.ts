import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, held, round, says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { attempts } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'

const never = new Promise<never>(() => {})

promise('E15', 'A network that goes away costs nothing but the time')
test('a network that goes away in the middle of a round and comes back costs nothing but the time', async () => {
  await using scene = await openRealScene([
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

promise('W4', 'A network that is away is waited for no longer than the person allows, and uses up no round')
test('a network that is not there is waited for in waits with an end, no longer than the person allows, and uses up no round', async () => {
  await using scene = await openRealScene([round()], { provider: { base_url: 'http://model.invalid/v1' } })
  const { run, meanwhile } = startNight(scene, ['--max-wait', '10s', 'build X'])
  const gone = await run.event('error', ({ waitsForNetwork }) => waitsForNetwork)
  expect(gone).toMatchObject({ round: 1, willRetry: true })
  await run.event('waiting')
  const { stdout } = await meanwhile('status').ended
  expect(stdout).toMatch(/waiting .*network/)
  const { exitCode, events } = await run.ended
  const waits = eventsOf(events, 'waiting')
  expect(waits.length).toBeGreaterThan(0)
  for (const { reason, cause, until } of waits) {
    expect([reason, cause.class]).toEqual(['round-failed', 'network'])
    expect(cause.message).toContain('No network: codex cannot reach its server')
    expect(Date.parse(until) - Date.parse(gone.at)).toBeLessThanOrEqual(10_000)
  }
  expect(new Set(roundsOf(events).map(String))).toEqual(new Set(['1,network,false']))
  expect(eventsOf(events, 'session-ended')).toMatchObject([
    { outcome: { kind: 'needs-person', hint: { do: 'mend-cause' } } },
  ])
  expect(exitCode).toBe(4)
})
