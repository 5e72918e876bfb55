import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { eventsOf } from '../../support/scene.ts'

/** Files that take no room on the disk, and of which git reads 15 GiB: minutes. */
function makeLarge({ place }: RealScene): void {
  for (let n = 0; n < 8; n++) {
    const file = openSync(join(place.directory, `${n}.img`), 'w')
    ftruncateSync(file, 2_000_000_000)
    closeSync(file)
  }
}

promise(
  'W26',
  'The first look at the work directory and its first savepoint end with `--max-time`, or when a person ends the session',
)
test('--max-time bounds the first look at a huge work directory, and says what can be done', async () => {
  await using scene = await openRealScene([])
  makeLarge(scene)
  const { exitCode, events } = await scene.run('--json', '--max-time', '2s', 'build X')
  expect(exitCode).toBe(3)
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'limit', limit: 'time' }, rounds: 0 })
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContain(
    `git could not read all files in ${scene.place.directory} in the time of the session. Raise --max-time, let git ignore large files, or check the disk.`,
  )
  expect(processesOf(scene.place)).toEqual([])
})

promise('W26')
test('a signal ends the first look at a huge work directory at once', async () => {
  await using scene = await openRealScene([])
  makeLarge(scene)
  await using running = scene.start('--json', 'build X')
  await running.event('session-created')
  const killedAt = Date.now()
  running.process.kill('SIGTERM')
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(143)
  const [over] = eventsOf(events, 'session-ended')
  expect(over?.outcome).toEqual({ kind: 'interrupted', by: 'SIGTERM' })
  // At once: a look at what a round has left may take 20 s more.
  expect(Date.parse(over?.at ?? '') - killedAt).toBeLessThan(15_000)
  expect(processesOf(scene.place)).toEqual([])
})
