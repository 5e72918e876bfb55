import { expect } from 'vitest'
import { openSmallBuild, planOf, readAt, UNATTENDED } from '../../../support/build-scene.ts'
import { type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { processesOf } from '../../../support/processes.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'

/** Plays a small build, in which the SIGKILL strikes at these points, one after the other, and resumes it to its end. */
export async function survive(points: readonly KillPoint[]): Promise<void> {
  await using scene = await openSmallBuild(undefined, openRealScene)
  const { place } = scene
  let ended = await startWithKills(place, ['start', ...UNATTENDED], points).ended
  while (ended.signal === 'SIGKILL')
    ended = await startWithKills(place, ['resume', '--json', '--no-keep-awake'], points).ended
  expect([ended.exitCode, ended.stderr]).toEqual([0, ''])
  // Every point was struck, and where codex was to die, one was there to die.
  expect(killsIn(place).map(codexes => codexes > 0)).toEqual(points.map(({ victim }) => victim !== 'codemachine'))

  expect(planOf(scene).map(({ id, done }) => [id, done])).toEqual([
    ['T1', true],
    ['T2', true],
  ])
  expect(readAt(scene, 'back/part.txt')).toBe('This is the back.\n')
  expect(readAt(scene, 'front/part.txt')).toBe('This is the front.\n')
  const journal = scene
    .recorded('journal.ndjson')
    .split('\n')
    .flatMap(line => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []))
  expect(eventsOf(journal, 'session-ended').at(-1)).toMatchObject({ outcome: { kind: 'done' } })
  expect(eventsOf(journal, 'plan-ready')).toHaveLength(1)
  // What an agent was cut off in is not taken for done before one has come to its end.
  const verdicts = eventsOf(journal, 'task-judged').filter(({ verdict }) => verdict !== 'refused')
  expect(verdicts.map(({ task, verdict }) => `${task} ${verdict}`).toSorted()).toEqual(['T1 done', 'T2 done'])
  expect(processesOf(place)).toEqual([])
}
