import { expect } from 'vitest'
import { startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { IMPATIENT, openRealScene } from '../../../support/real-scene.ts'
import { claimDone, round } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { HOUR, inHours, limitReached, SPREAD_MS } from './window-night.ts'

describe('a usage limit at night', () => {
  test('is waited out by what codex says in words, where that is all there is', async () => {
    const clock = new TestClock()
    const resetsAt = inHours(clock, 3)
    await using scene = await openRealScene([[limitReached(resetsAt, false)], round(claimDone)], {
      provider: IMPATIENT,
    })
    const night = startNight(scene, ['--rounds', '1', 'build X'], { clock })
    const waiting = await night.passWait()
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeGreaterThan(-SPREAD_MS)
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeLessThan(2 * SPREAD_MS)
    expect(await night.run.ended).toMatchObject({ exitCode: 0 })
  })

  test('is still waited out after Ctrl+C and resume, until the same moment', async () => {
    const clock = new TestClock()
    await using scene = await openRealScene([[limitReached(inHours(clock, 5))], round(claimDone)], {
      provider: IMPATIENT,
    })
    const night = startNight(scene, ['--rounds', '1', 'build X'], { clock })
    const { until } = await night.run.event('waiting')
    await clock.advance(HOUR)
    night.run.signal('SIGINT')
    const { exitCode, events } = await night.run.ended
    expect(exitCode).toBe(130)
    expect(eventsOf(events, 'wait-ended')).toMatchObject([{ reason: 'stopped' }])
    expect((await night.meanwhile('status').ended).stdout).toMatch(/waits +until .* from now \(usage limit: /)

    const resumed = startNight(scene, ['resume'], { clock })
    await resumed.run.event('session-resumed')
    await clock.nextWait(30_000)
    await resumed.nothingAsked()
    await clock.advance(3.9 * HOUR)
    expect(eventsOf(resumed.run.events, 'round-started')).toEqual([])
    await clock.advance(0.2 * HOUR)
    const end = await resumed.run.ended
    expect(Date.parse(eventsOf(end.events, 'round-started')[0]?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(until))
    expect(eventsOf(end.events, 'wait-ended')).toMatchObject([{ reason: 'over' }])
    expect(end.exitCode).toBe(0)
  })
})

promise('W2', 'A wait that was cut off is still waited when the session is resumed')
test('a run that was killed while it waited goes on waiting', async () => {
  const clock = new TestClock()
  await using scene = await openRealScene([[limitReached(inHours(clock, 5))], round(claimDone)], {
    provider: IMPATIENT,
  })
  const killed = scene.start('--json', '--rounds', '1', 'build X')
  const waiting = await killed.event('waiting')
  killed.process.kill('SIGKILL')
  await killed.ended
  const night = startNight(scene, ['resume'], { clock })
  await night.run.event('session-resumed')
  await clock.nextWait(30_000)
  await night.nothingAsked()
  await clock.advance(4.9 * HOUR)
  expect(eventsOf(night.run.events, 'round-started')).toEqual([])
  await clock.advance(0.2 * HOUR)
  const { exitCode, events } = await night.run.ended
  expect(waiting.type === 'waiting' && waiting.until <= (eventsOf(events, 'round-started')[0]?.at ?? '')).toBe(true)
  // The wait that was journaled goes on; no other one is begun.
  expect([eventsOf(events, 'waiting'), eventsOf(events, 'wait-ended').map(({ reason }) => reason)]).toEqual([
    [],
    ['over'],
  ])
  expect(exitCode).toBe(0)
})
