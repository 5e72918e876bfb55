import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { claimDone, round, says, writeTasks } from '../../../support/rounds.ts'
import { eventsOf, openScene } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const idle = (text: string) => [says(text)]

describe('rounds that leave everything as it was', () => {
  promise(
    'L6',
    'Rounds that leave everything as it was are told so, then think harder, then end the session (exit code 5)',
  )
  test('are asked for another approach, then given more effort, and end the session with exit code 5', async () => {
    await using scene = await openScene(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(idle))
    const { exitCode, events } = await startNight(scene, ['--effort', 'low', 'build X']).run.ended
    expect(eventsOf(events, 'stuck')).toMatchObject([
      { round: 3, rounds: 3, why: 'nothing-changed', remedy: 'another-way' },
      { round: 4, rounds: 4, why: 'nothing-changed', remedy: 'more-effort' },
    ])
    expect(eventsOf(events, 'session-ended')).toMatchObject([
      { rounds: 5, outcome: { kind: 'stalled', rounds: 5, why: 'nothing-changed' } },
    ])
    expect(exitCode).toBe(5)
    expect(scene.input(4)).toMatch(/changed no file[\s\S]*another approach/)
    expect(scene.input(4)).toContain('c')
    const efforts = [0, 1, 2, 3, 4].map(
      n => scene.model.requests.find(({ conversation }) => conversation === n)?.effort,
    )
    expect(efforts).toEqual(['low', 'low', 'low', 'low', 'high'])
  })

  test('are forgotten once one gets on', async () => {
    await using scene = await openScene([
      idle('a'),
      idle('b'),
      idle('c'),
      [reply(shell('echo on > work.txt')), says('d')],
      idle('e'),
      round(claimDone),
    ])
    const { exitCode, events } = await startNight(scene, ['build X']).run.ended
    expect(eventsOf(events, 'stuck').map(({ remedy }) => remedy)).toEqual(['another-way'])
    expect([exitCode, roundsOf(events).length]).toEqual([0, 6])
  })
})

test('a claim that is refused again and again for the same reason ends as a stall, even if files change', async () => {
  const left = writeTasks([{ id: 'T1', name: 'One', done: false }])
  await using scene = await openScene(
    Array.from({ length: 8 }, (_, n) => round(`echo ${n} > work.txt`, left, claimDone)),
  )
  const { exitCode, events } = await startNight(scene, ['build X']).run.ended
  expect(eventsOf(events, 'stuck').map(({ why, remedy }) => [why, remedy])).toEqual([
    ['same-refusal', 'another-way'],
    ['same-refusal', 'more-effort'],
  ])
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'stalled', why: 'same-refusal' } }])
  expect(exitCode).toBe(5)
})
