import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { always, inTurn, openSmallBuild, readAt, smallBuild, UNATTENDED } from '../../../support/build-scene.ts'
import { promise } from '../../../support/promise.ts'
import { claimDone, says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'

const FILE = '.codemachine/inputs/specifications.md'

promise(
  'D67',
  'No round changes the specification of a build: it is put back, what the round made of it is kept, and a claim of that round is refused, also after a kill',
)
test('a round that changes the specification finds it as it was, cannot claim, and what it made of it is kept', async () => {
  const narrow = `printf '# Two parts\\n\\nA folder back will do.\\n' > ${FILE}`
  await using scene = await openSmallBuild(scene => ({
    'master-mind': always(
      ...smallBuild(scene)['master-mind']().slice(0, -1),
      reply(shell(`rm ${FILE}`)),
      says('That was all.'),
    ),
    'last-look': inTurn(
      [reply(shell(`${narrow}; ${claimDone}`)), says('It is all there.')],
      [reply(shell(claimDone)), says('It is all there.')],
    ),
  }))
  const before = readAt(scene, FILE)
  const { events, exitCode } = await scene.run('start', ...UNATTENDED)
  expect(exitCode).toBe(0)
  const restored = eventsOf(events, 'goal-restored')
  expect(restored).toMatchObject([
    { file: FILE, how: 'removed', found: null, setAside: null, restored: true },
    { file: FILE, how: 'changed', found: '# Two parts\n\nA folder back will do.\n', restored: true },
    // What was refused is looked at by the one who leads first, who removes it again.
    { file: FILE, how: 'removed', restored: true },
  ])
  expect(eventsOf(events, 'done-refused').map(({ reason }) => reason)).toEqual(['goal-changed'])
  expect(readAt(scene, FILE)).toBe(before)
  expect(readFileSync(join(scene.place.directory, restored[1]?.setAside ?? ''), 'utf8')).toContain('back will do')
  const started = eventsOf(events, 'round-started')
  for (const { input, part } of started) {
    expect(input, part).toContain('A folder `back` with a file `part.txt`, and a folder `front` with another one.')
  }
  expect(started.some(({ input }) => input.includes(`${FILE} was removed, and codemachine restored it`))).toBe(true)
  expect(started.some(({ input }) => input.includes(`${FILE} was changed, and codemachine restored it`))).toBe(true)
})
