import { expect, test } from 'vitest'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { clientOf, openPage } from './client.ts'
import type { Card } from './evening-scene.ts'

promise('P2', 'The server can be killed and started again: keys count on, and a run does not notice')
test('the server can be killed and started again: the key of a device counts on, and a run does not notice', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using running = scene.start('--json', 'build X')
  await running.event('round-started')
  const page = await openPage(scene)
  const stream = await page.follow('now')
  await stream.until(({ data }) => (data.cards as Card[])[0]?.standing === 'running')
  page.serving.process.kill('SIGKILL')
  await page.serving.ended
  await stream.over
  const again = await openPage(scene)
  expect((await again.get('me')).body).toMatchObject({ device: { name: 'phone', right: 'steer' } })
  const { body } = await clientOf(again.address, '').get('me')
  expect(body).toEqual({ problem: 'This device has no key, or was removed.' })
  gate.resolve()
  expect((await running.ended).exitCode).toBe(0)
})
