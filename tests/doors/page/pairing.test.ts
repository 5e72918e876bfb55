import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Pairings } from '../../../src/doors/page/pairing.ts'
import { Access } from '../../../src/project/page/access.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { TestClock } from '../../support/test-clock.ts'
import { clientOf, openPage } from './client.ts'

/** Pairings on a clock of the test's. */
async function pairings() {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-test-pairing-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const clock = new TestClock()
  const access = new Access({ folder, clock, platform: process.platform })
  const { device: host } = await access.add('host', 'steer')
  return { access, clock, host, all: new Pairings({ access, clock }), signal: new AbortController().signal }
}

const named = (name: string) => ({ name, shown: null })

promise(
  'P9',
  'A device is paired only by the code that is shown and the word of the host; ten wrong codes lock for a minute',
)
test('a device that types the code is let in with the right that the host gives, and nobody else by that code', async () => {
  const { access, all, host, signal } = await pairings()
  const { id, code } = all.begin(host.id)
  const states = all.watch(id, signal)
  expect((await states.next()).value).toEqual({ state: 'waiting' })
  const asked = all.ask(`${code.slice(0, 4)} ${code.slice(4)}`, named('phone'), signal)
  expect((await states.next()).value).toEqual({ state: 'asking', name: 'phone' })
  // It is taken.
  await expect(all.ask(code, named('thief'), signal)).rejects.toThrow('No device shows this code')
  await all.answer(id, 'look')
  const given = await asked
  expect(given?.device).toMatchObject({ name: 'phone', right: 'look' })
  expect(await access.deviceOf(given?.key ?? '')).toMatchObject({ name: 'phone' })
  expect((await states.next()).value).toEqual({ state: 'over', how: 'let-in' })
  await expect(all.answer(id, 'steer')).rejects.toThrow('This request to pair has ended')
})

test('a device that the host refuses, or is too late to let in, gets no key', async () => {
  const { access, all, host, signal, clock } = await pairings()
  const refused = all.begin(host.id)
  const asked = all.ask(refused.code, named('stranger'), signal)
  await all.answer(refused.id, null)
  expect(await asked).toBeNull()
  const late = all.begin(host.id)
  const waiting = all.ask(late.code, named('phone'), signal)
  await clock.advance(5 * 60_000 + 1_000)
  expect(await waiting).toBeNull()
  await expect(all.answer(late.id, 'steer')).rejects.toThrow('This request to pair has ended')
  const old = all.begin(host.id)
  await clock.advance(5 * 60_000 + 1_000)
  await expect(all.ask(old.code, named('phone'), signal)).rejects.toThrow('No device shows this code')
  expect(await access.devices()).toMatchObject([{ name: 'host' }])
})

promise('P9')
test('ten wrong codes lock for a minute, the right one too', async () => {
  const { all, host, signal, clock } = await pairings()
  const { code, id } = all.begin(host.id)
  const wrong = code === '00000000' ? '00000001' : '00000000'
  for (let n = 0; n < 10; n += 1)
    await expect(all.ask(wrong, named('thief'), signal)).rejects.toThrow('No device shows this code')
  await expect(all.ask(code, named('phone'), signal)).rejects.toThrow('Too many wrong codes')
  await clock.advance(61_000)
  const asked = all.ask(code, named('phone'), signal)
  await all.answer(id, 'steer')
  expect((await asked)?.device.right).toBe('steer')
})

test('web pair shows a code on the terminal, and asks there whether a device is let in', async () => {
  await using scene = await openRealScene([])
  const page = await openPage(scene, '--name', 'mac.lan')
  await using terminal = startInEmulator(scene.place, ['web', 'pair', '--look'], { columns: 100 })
  await terminal.until('Open https://mac.lan/ on the new device')
  await terminal.until(/\d{4} \d{4}/)
  const [code = ''] = /\d{4} \d{4}/.exec(terminal.screen().join('\n')) ?? []
  const asking = await clientOf(page.address, '').postStream('pair', { code, name: 'tablet' })
  await asking.until(({ data }) => data.state === 'asked')
  await terminal.until('Let "tablet" look?')
  terminal.type('y\r')
  const { data } = await asking.until(each => each.data.state === 'in')
  await terminal.until('Paired.')
  const tablet = clientOf(page.address, String(data.key))
  expect((await tablet.get('me')).body).toMatchObject({ device: { name: 'tablet', right: 'look' } })
  expect(await tablet.post('link', { right: 'steer' })).toMatchObject({ status: 403 })
  // The terminal was a device for as long as it took.
  expect((await page.get('devices')).body).toMatchObject({ devices: [{ name: 'phone' }, { name: 'tablet' }] })
})
