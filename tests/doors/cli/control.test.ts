import { writeFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, held, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { usageLimitReached } from '../../support/scripted-model.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { recordsOf } from './journaled.ts'

const never = new Promise<never>(() => {})
/** A usage limit for an hour, so that a wait does not end by itself. */
const usedUp = () => usageLimitReached(Math.round(Date.now() / 1000) + 3600)

test('stop ends the run after the round, keeps what waits, and resume continues from there', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([
    [held(gate.promise), ...round('echo one > one.txt')],
    round(claimDone),
    round(claimDone),
  ])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  await scene.run('queue', 'add', 'goal two')
  const { exitCode, stdout } = await scene.run('stop')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^\d{8}_1 stops when round 1 has ended; codemachine resume continues\.\n$/),
  ])
  gate.resolve()
  const stopped = await running.ended
  expect(stopped.exitCode).toBe(130)
  expect(eventsOf(stopped.events, 'stop-asked')).toMatchObject([{ now: false }])
  expect(eventsOf(stopped.events, 'round-ended')).toMatchObject([
    { outcome: { class: 'worked' }, changed: ['one.txt'] },
  ])
  expect(eventsOf(stopped.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'interrupted', by: 'stop' } }])
  expect(stopped.stderr).toMatch(/^To continue: codemachine resume \d{8}_1\nThe queue \(1\) is kept\.\n$/m)
  const resumed = await scene.run('resume', '--json')
  expect(resumed.exitCode).toBe(0)
  expect(eventsOf(resumed.events, 'session-ended').map(({ outcome }) => outcome.kind)).toEqual(['done', 'done'])
})

test('stop --now interrupts the round, which uses up none', async () => {
  await using scene = await openScene([[held(never)]])
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  const { exitCode, stdout } = await scene.run('stop', '--now', '-C', '.')
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/_1 stops now; codemachine resume continues\.\n$/)])
  const { exitCode: endedWith, events } = await running.ended
  expect(endedWith).toBe(130)
  expect(eventsOf(events, 'round-ended')).toMatchObject([{ outcome: { class: 'interrupted' }, counts: false }])
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'interrupted', by: 'stop' }, rounds: 0 }])
})

test('after pause no round starts until unpause', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[held(gate.promise), says('That is all.')], round(claimDone)])
  await using running = scene.start('--json', 'build X')
  await running.event('turn-started')
  expect((await scene.run('pause')).stdout).toMatch(
    /_1 pauses when round 1 has ended; codemachine unpause continues\.\n$/,
  )
  const { exitCode, stderr } = await scene.run('pause')
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringMatching(
      /_1 is paused already; codemachine unpause continues\. \(CM0617\)\n {2}What it is doing: codemachine status\n$/,
    ),
  ])
  gate.resolve()
  await running.event('round-ended')
  expect((await scene.run('status', '--json')).stdout).toContain('"standing":"running"')
  expect(scene.model.requests.filter(({ conversation }) => conversation === 1)).toEqual([])
  expect((await scene.run('unpause')).stdout).toMatch(/^\d{8}_1 continues\.\n$/)
  const { exitCode: endedWith, events } = await running.ended
  expect(endedWith).toBe(0)
  const types = events.map(({ type }) => type).filter(type => /paused|^round-/.test(type))
  expect(types).toEqual(['round-started', 'paused', 'round-ended', 'unpaused', 'round-started', 'round-ended'])
})

test('pause while a gate runs says that it waits for the gate', async () => {
  await using scene = await openScene([round(claimDone)])
  await using running = scene.start('--json', '--verify', 'sleep 600', 'build X')
  await running.event('gate-started')
  expect((await scene.run('pause')).stdout).toMatch(/_1 pauses after this gate; codemachine unpause continues\.\n$/)
  await scene.run('stop', '--now')
  expect((await running.ended).exitCode).toBe(130)
})

promise('W11')
test('retry ends a wait early, and says so where there is none', async () => {
  await using scene = await openScene([[usedUp()], round(claimDone)])
  await using running = scene.start('--json', 'build X')
  await running.event('waiting')
  const { exitCode, stdout } = await scene.run('retry')
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^The wait is over; round 1 of \d{8}_1 starts\.\n$/)])
  const { exitCode: endedWith, events } = await running.ended
  expect(endedWith).toBe(0)
  expect(eventsOf(events, 'wait-ended')).toMatchObject([{ round: 1, reason: 'retry' }])
})

promise('W11', '`stop` in a wait ends the run at once, and `retry` ends the wait')
test('stop in a wait ends the run at once', async () => {
  await using scene = await openScene([[usedUp()]])
  await using running = scene.start('--json', 'build X')
  await running.event('waiting')
  expect((await scene.run('stop')).exitCode).toBe(0)
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(130)
  expect(eventsOf(events, 'wait-ended')).toMatchObject([{ reason: 'stopped' }])
})

describe('where nobody runs it is said so, with what to do instead', () => {
  test.each([
    [['stop'], 'stop', 'All sessions: codemachine list'],
    [['stop', '--now'], 'stop', 'All sessions: codemachine list'],
    [['pause'], 'pause', 'All sessions: codemachine list'],
    [['unpause'], 'unpause', 'To resume a session: codemachine resume'],
    [['retry'], 'retry', 'To resume a session: codemachine resume'],
  ])('%j', async (args, verb, mend) => {
    await using place = await makePlace('')
    expect(await codemachineHere(place, args)).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: `codemachine: No codemachine runs in ${place.directory}, so there is nothing to ${verb}. (CM0613)\n  ${mend}\n`,
    })
  })

  test('a lock that cannot be read is named, and left', async () => {
    await using place = await makePlace('')
    const { lock } = await recordsOf(place)
    await writeFile(lock, 'rubbish')
    for (const args of [['stop'], ['steer', 'x']]) {
      expect(await codemachineHere(place, args)).toMatchObject({
        exitCode: 6,
        stderr: `codemachine: ${lock} is not a lock of codemachine; if no codemachine runs here, delete it. (CM0602)\n`,
      })
    }
  })
})
