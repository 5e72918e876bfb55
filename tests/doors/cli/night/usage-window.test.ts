import { expect } from 'vitest'
import { message, type Reply, reply, shell } from '../../../../src/demo/model/reply.ts'
import { formatMoment } from '../../../../src/tell/words/numbers.ts'
import { wordsForHint } from '../../../../src/tell/words/outcome.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { IMPATIENT, openRealScene } from '../../../support/real-scene.ts'
import { claimDone, round, says } from '../../../support/rounds.ts'
import { eventsOf, openScene } from '../../../support/scene.ts'
import { hold, usageHeaders } from '../../../support/scripted-model.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { HOUR, inHours, limitReached, SPREAD_MS } from './window-night.ts'

describe('a usage limit at night', () => {
  promise('W1', 'A usage limit is waited out until the moment that codex gave, and the same round starts again')
  promise('E14', 'A usage limit is waited out')
  test('is waited out until the moment that codex gave, and the same round starts again', async () => {
    const clock = new TestClock()
    const resetsAt = inHours(clock, 5)
    await using scene = await openRealScene([[limitReached(resetsAt)], round(claimDone)], { provider: IMPATIENT })
    const night = startNight(scene, ['--rounds', '1', 'build X'], { clock })
    const waiting = await night.run.event('waiting')
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeGreaterThan(0)
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeLessThan(SPREAD_MS)
    expect(waiting).toMatchObject({ round: 1, cause: { class: 'window' } })

    await clock.advance(2 * HOUR)
    const { stdout } = await night.meanwhile('status').ended
    expect(stdout).toMatch(/waiting until .*, (3 h|2 h 5\d min|3 h 1 min) from now \(usage limit: /)

    await night.passWait()
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events)).toEqual([
      [1, 'window', false],
      [1, 'worked', true],
    ])
    expect(eventsOf(events, 'wait-ended')).toMatchObject([{ round: 1, reason: 'over' }])
    const again = eventsOf(events, 'round-started')[1]
    expect(Date.parse(again?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(waiting.until))
    expect(exitCode).toBe(0)
  })

  test('ends the session where a person does not want to wait as long, and says until when it would be', async () => {
    const clock = new TestClock()
    const resetsAt = inHours(clock, 5)
    await using scene = await openScene([[limitReached(resetsAt)], round(claimDone)])
    const night = startNight(scene, ['--max-wait', '1h', 'build X'], { clock })
    await night.run.event('session-created')
    await night.meanwhile('queue', 'add', 'then Y').ended
    const { exitCode, events } = await night.run.ended
    expect([exitCode, eventsOf(events, 'waiting')]).toEqual([4, []])
    const [end] = eventsOf(events, 'session-ended')
    const hint = end?.outcome.kind === 'needs-person' ? end.outcome.hint : null
    expect(hint).toMatchObject({ do: 'resume', session: end?.session })
    const [, when] = /until (\d{4}-\d\d-\d\d \d\d:\d\d)/.exec(hint == null ? '' : wordsForHint(hint)) ?? []
    expect(Math.abs(new Date(when ?? '').getTime() - resetsAt * 1000)).toBeLessThan(2 * SPREAD_MS)
    expect((await night.meanwhile('queue', 'list').ended).stdout).toContain('then Y')
  })

  test('is not waited for any longer once a person says retry from another terminal', async () => {
    const clock = new TestClock()
    await using scene = await openScene([[limitReached(inHours(clock, 5))], round(claimDone)])
    const night = startNight(scene, ['--rounds', '1', 'build X'], { clock })
    await night.run.event('waiting')
    expect(await night.meanwhile('retry').ended).toMatchObject({ exitCode: 0, stderr: '' })
    const { exitCode, events } = await night.run.ended
    expect(eventsOf(events, 'wait-ended')).toMatchObject([{ reason: 'retry' }])
    expect(roundsOf(events).at(-1)).toEqual([1, 'worked', true])
    expect(exitCode).toBe(0)
  })

  test('is not waited for again after retry where the session is ended and resumed', async () => {
    const clock = new TestClock()
    const headers = usageHeaders({ primary: { usedPercent: 95, windowMinutes: 300, resetsAt: inHours(clock, 5) } })
    await using scene = await openScene([
      [{ ...reply(shell('echo one > work.txt')), headers }, says('So far.')],
      [reply(message('On it.'), hold(new Promise(() => {})))],
      round(claimDone),
    ])
    const limits = ['--rounds', '3', '--max-usage', '90']
    const night = startNight(scene, [...limits, 'build X'], { clock })
    await night.run.event('waiting')
    await night.meanwhile('retry').ended
    await night.run.event('turn-started', ({ round }) => round === 2)
    night.run.signal('SIGINT')
    await night.run.ended
    const resumed = startNight(scene, ['resume', ...limits], { clock })
    const { exitCode, events } = await resumed.run.ended
    expect([exitCode, eventsOf(events, 'waiting')]).toEqual([0, []])
  })

  test('that has been reached before the first round is waited out before it', async () => {
    const clock = new TestClock()
    const resetsAt = inHours(clock, 5)
    let usedPercent = 100
    await using scene = await openScene([round(claimDone)], {
      account: () => ({ primary: { usedPercent, windowMinutes: 300, resetsAt } }),
    })
    const night = startNight(scene, ['--rounds', '1', 'build X'], { clock })
    await night.run.event('waiting')
    expect(eventsOf(night.run.events, 'limits')).toMatchObject([{ primary: { usedPercent: 100 } }])
    expect([eventsOf(night.run.events, 'round-started'), scene.model.requests]).toEqual([[], []])
    usedPercent = 0
    const waiting = await night.passWait()
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeGreaterThan(0)
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeLessThan(SPREAD_MS)
    const { exitCode, events } = await night.run.ended
    expect([exitCode, roundsOf(events)]).toEqual([0, [[1, 'worked', true]]])
  })

  promise('W3', 'With `--max-usage` the next round waits for the reset before the window is used up')
  test('is not run into where only a part of it may be used: the agent stops safely, and the next round waits', async () => {
    const clock = new TestClock()
    const resetsAt = inHours(clock, 5)
    const used = (usedPercent: number) =>
      usageHeaders({
        primary: { usedPercent, windowMinutes: 300, resetsAt: resetsAt + (usedPercent < 50 ? 18_000 : 0) },
      })
    await using scene = await openScene([
      [
        { ...reply(shell('echo one > work.txt')), headers: used(80) },
        { ...reply(shell('echo two > work.txt')), headers: used(91) },
        // It would go on if it were not told.
        ({ userTexts }) =>
          userTexts.some(text => text.includes('Stop safely'))
            ? { ...reply(message('I have come to a stop.')), headers: used(92) }
            : { ...reply(message('On it.'), hold(new Promise(() => {}))), headers: used(91) },
      ],
      [{ ...reply(shell(claimDone)), headers: used(3) }, { ...(says('Done.') as Reply), headers: used(4) } as Reply],
    ])
    const night = startNight(scene, ['--rounds', '2', '--max-usage', '90', 'build X'], { clock })
    expect(await night.run.event('winding-down')).toMatchObject({ round: 1, limit: 'usage' })
    const waiting = await night.passWait()
    expect(waiting).toMatchObject({ round: 2, cause: { class: 'window' } })
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeGreaterThan(0)
    expect(Date.parse(waiting.until) - resetsAt * 1000).toBeLessThan(SPREAD_MS)
    const { exitCode, events } = await night.run.ended
    expect(roundsOf(events).map(([n, end]) => [n, end])).toEqual([
      [1, 'worked'],
      [2, 'worked'],
    ])
    expect(exitCode).toBe(0)
    expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).toContain('Stop safely')
  })
})

promise(
  'M12',
  'Status and report say how many more rounds the usage window has room for and until when a wait would last, or nothing where that cannot be known',
)
test('status and report say how many more rounds the usage window has room for, and when a wait comes', async () => {
  const clock = new TestClock()
  const resetsAt = inHours(clock, 5)
  const working = (usedPercent: number) => [
    {
      ...reply(shell(`echo ${usedPercent} > work.txt`)),
      headers: usageHeaders({ primary: { usedPercent, windowMinutes: 300, resetsAt } }),
    },
    says('So far.'),
  ]
  await using scene = await openScene([working(20), working(35), working(50)])
  const night = startNight(scene, ['--rounds', '3', 'build X'], { clock })
  expect((await night.run.ended).exitCode).toBe(3)
  const words = `about 3 more rounds in this usage window, then a wait until ${formatMoment(resetsAt * 1000, clock.now())}`
  expect((await night.meanwhile('status').ended).stdout).toContain(`ahead    ${words}\n`)
  expect((await night.meanwhile('report', '--md').ended).stdout).toContain(`- Ahead: ${words}\n`)
  const { session } = JSON.parse((await night.meanwhile('status', '--json').ended).stdout)
  expect(session.forecast).toEqual({ rounds: 3, until: new Date(resetsAt * 1000).toISOString() })
})
