import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWithKills } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { eventsOfSession } from './survive.ts'
import { openWork } from './work.ts'

promise(
  'R49',
  'A round after which codemachine was killed has its savepoint when the session goes on, or a warning says that it has none',
)
test('a round that was killed before its savepoint has it late, also when files were changed since, and where that cannot be it is said', async () => {
  await using scene = await openWork()
  const { place } = scene
  const afterRound = { victim: 'codemachine', event: 'round-ended', when: 'after', n: 1 } as const
  const run = (...args: string[]) => startWithKills(place, [...args, '--json'], [afterRound, afterRound]).ended
  expect((await run('--no-keep-awake', 'build X')).signal).toBe('SIGKILL')
  expect(eventsOf(eventsOfSession(scene), 'savepoint').map(({ round }) => round)).toEqual([0])
  const changed = eventsOf(eventsOfSession(scene), 'round-ended')[0]?.changedCount
  const files = changed === 1 ? '1 file' : `${changed} files`
  const told = `What round 1 left (${files}) is in no savepoint yet: codemachine resume makes it`
  expect((await scene.run('report', '--md')).stdout).toContain(`${told}.\n`)
  appendFileSync(join(place.directory, 'README.md'), 'A person was here.\n')
  expect((await run('resume')).signal).toBe('SIGKILL')
  const [, late] = eventsOf(eventsOfSession(scene), 'savepoint')
  const [first, second] = eventsOf(eventsOfSession(scene), 'round-ended')
  expect([late?.round, late?.tree]).toEqual([1, first?.treeAfter])
  const { stdout } = await scene.run('diff', 'start', '1', '--stat')
  expect(stdout).toContain('parts/1.txt')
  expect(stdout).not.toContain('README.md')

  // Nothing is left of what the second round made.
  rmSync(join(scene.records(), 'git'), { recursive: true })
  appendFileSync(join(place.directory, 'README.md'), 'And here.\n')
  expect(await run('resume')).toMatchObject({ exitCode: 0, stderr: '' })
  const events = eventsOfSession(scene)
  expect(eventsOf(events, 'savepoint').filter(({ tree }) => tree === second?.treeAfter)).toEqual([])
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContain(
    'Round 2 has no savepoint: it could not be made after the round, and git cannot make it now.',
  )
})
