import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { startWithKills } from '../../../support/kill-points.ts'
import { processesOf } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { claimDone, round } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'

vi.setConfig({ maxConcurrency: 4 })

/** Writes into the work tree for as long as it lives. */
const WRITER = 'while :; do echo alive >> heard; sleep 0.02; done'
/** Says how long the file is, and whether it still grows. */
const LISTEN = 'wc -c < heard > first; sleep 0.3; wc -c < heard > second'

promise('L7', 'No round starts before what the last one left running has ended')
test.concurrent.each([
  ['in the foreground', WRITER],
  ['in a session of its own', `setsid sh -c '${WRITER}' >/dev/null 2>&1 < /dev/null & sleep 305`],
])(
  'what a round runs %s does not write into the round that follows when codex alone was killed',
  async (_, command) => {
    await using scene = await openRealScene([
      // After its end was looked for what it left, which is not done again for some seconds.
      round('true'),
      [reply(shell(command, { yieldMs: 300 })), reply(message('It runs.'), shell('sleep 306'))],
      round(LISTEN),
      round(claimDone),
    ])
    const args = ['--json', '--no-keep-awake', '--sandbox', 'danger-full-access', 'build X']
    const points = [{ victim: 'codex', event: 'item-completed', item: 'agent-message', when: 'after', n: 2 }] as const
    const { exitCode, events, stderr } = await startWithKills(scene.place, args, points).ended
    expect([exitCode, stderr]).toEqual([0, ''])
    const [, crashed, next] = eventsOf(events, 'round-ended')
    expect(crashed).toMatchObject({ round: 2, outcome: { class: 'crashed' }, counts: false, changed: ['heard'] })
    // Nothing has written between the two, nor while the next one ran.
    expect(next).toMatchObject({ round: 2, outcome: { class: 'worked' }, changed: ['first', 'second'] })
    const length = (name: string) => Number(readFileSync(join(scene.place.directory, name), 'utf8'))
    expect(length('first')).toBeGreaterThan(0)
    expect(length('second')).toBe(length('first'))
    expect(processesOf(scene.place)).toEqual([])
  },
)
