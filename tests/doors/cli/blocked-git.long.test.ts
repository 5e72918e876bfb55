import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { held, says } from '../../support/rounds.ts'

promise('W24')
test('stop --now ends a session although its git hangs at what is not done without, and that git with it', async () => {
  const release = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(release.promise), says('Done.')]])
  const session = scene.start('build X', '--rounds', '2', '--json')
  await session.event('turn-started')
  // In the records, where nothing of an agent's is looked for.
  const index = join(scene.records(), 'git', 'index')
  rmSync(index)
  execFileSync('mkfifo', [index])
  release.resolve()
  await session.event('item-completed', event => JSON.stringify(event).includes('"Done."'))
  await scene.run('stop', '--now')
  const { exitCode, events } = await session.ended
  expect([exitCode, events.at(-1)]).toEqual([130, expect.objectContaining({ type: 'session-ended' })])
  expect(processesOf(scene.place)).toEqual([])
})
