import { expect, test } from 'vitest'
import { openRealScene } from '../support/real-scene.ts'
import { openPage } from './client.ts'

test('web devices lists who can open the page, and web end takes that away while a stream is open', async () => {
  await using scene = await openRealScene([])
  const page = await openPage(scene)
  const stream = await page.follow('now')
  await stream.until(() => true)
  const devices = JSON.parse((await scene.run('web', 'devices', '--json')).stdout) as { id: string; name: string }[]
  expect(devices).toMatchObject([{ name: 'phone', right: 'steer' }])
  expect((await scene.run('web', 'devices')).stdout).toContain('phone')
  const [device] = devices
  expect(await scene.run('web', 'end', device?.id ?? '')).toMatchObject({ exitCode: 0 })
  expect((await page.get('me')).status).toBe(401)
  // Another process has ended it: the stream ends with its next beat.
  await stream.over
  expect(await scene.run('web', 'end', device?.id ?? '')).toMatchObject({ exitCode: 2 })
})
