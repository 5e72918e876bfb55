import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Access, signedText } from '../../../src/project/page/access.ts'
import { promise } from '../../support/promise.ts'

const MINUTE = 60_000

/** Who may open the page, in a folder of its own, at a time that the test sets. */
async function openAccess() {
  const folder = join(await mkdtemp(join(tmpdir(), 'codemachine-test-access-')), 'web')
  onTestFinished(() => rm(join(folder, '..'), { recursive: true }))
  const clock = { at: Date.parse('2026-11-27T20:00:00.000Z'), now: () => clock.at }
  return { access: new Access({ folder, clock, platform: process.platform }), folder, clock }
}

/** All that lies in a folder, as one text. */
async function everythingIn(folder: string): Promise<string> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = found.filter(each => each.isFile()).map(each => join(each.parentPath, each.name))
  return (await Promise.all(files.map(async file => `${file}\n${await readFile(file, 'utf8')}`))).join('\n')
}

promise('P3', 'A link lets one device in, once, within an hour')
test('a link is opened once, whoever tries at the same time, and gives a key of its right', async () => {
  const { access } = await openAccess()
  const token = await access.newLink('steer')
  const opened = await Promise.all(Array.from({ length: 20 }, (_, at) => access.openLink(token, `phone ${at}`)))
  const [only, ...others] = opened.filter(each => each !== null)
  expect(others).toEqual([])
  expect(await access.deviceOf(only?.key ?? '')).toMatchObject({ right: 'steer', id: only?.device.id })
  expect(await access.openLink(token, 'later')).toBeNull()
})

test('a link is too old after an hour, and one of another clock is none', async () => {
  const { access, clock } = await openAccess()
  const late = await access.newLink('look')
  clock.at += 61 * MINUTE
  expect(await access.openLink(late, 'late')).toBeNull()
  const ahead = await access.newLink('look')
  clock.at -= 10 * MINUTE
  expect(await access.openLink(ahead, 'ahead')).toBeNull()
})

test('a link that is left of a device that was ended opens nothing, and one that an earlier version has made does', async () => {
  const { access, folder, clock } = await openAccess()
  const { device } = await access.add('phone', 'steer')
  const left = await access.newLink('steer', device.id)
  const [file = ''] = await readdir(join(folder, 'links'))
  const kept = await readFile(join(folder, 'links', file), 'utf8')
  expect(JSON.parse(kept)).toMatchObject({ by: device.id })
  await access.end(device.id)
  expect(await readdir(join(folder, 'links'))).toEqual([])
  // Made in the moment in which the device was ended.
  await writeFile(join(folder, 'links', file), kept)
  expect(await access.openLink(left, 'phone')).toBeNull()
  const until = new Date(clock.at + 30 * MINUTE).toISOString()
  await writeFile(join(folder, 'links', file), JSON.stringify({ right: 'look', until }))
  expect(await access.openLink(left, 'tablet')).toMatchObject({ device: { right: 'look' } })
})

promise('P4', 'Nothing that opens anything lies in the files')
test('nothing that opens anything lies in the files, and nobody else can read them', async () => {
  const { access, folder } = await openAccess()
  const [token, other] = [await access.newLink('look'), await access.newLink('steer')]
  const opened = await access.openLink(token, 'phone')
  const [, secret = ''] = opened?.key?.split('.') ?? []
  expect(secret).toHaveLength(43)
  const all = await everythingIn(folder)
  for (const open of [token, other, secret]) expect(all).not.toContain(open)
  for (const path of [folder, join(folder, 'devices')]) expect((await stat(path)).mode & 0o777).toBe(0o700)
  const [file = ''] = await readdir(join(folder, 'devices'))
  expect((await stat(join(folder, 'devices', file))).mode & 0o777).toBe(0o600)
})

test('a device that was ended opens nothing, and no other key opens anything', async () => {
  const { access, folder, clock } = await openAccess()
  const first = await access.add('first', 'look')
  clock.at += MINUTE
  const second = await access.add('second', 'steer')
  expect((await access.devices()).map(({ name, right }) => [name, right])).toEqual([
    ['first', 'look'],
    ['second', 'steer'],
  ])
  expect(await access.end(first.device.id)).toBe(true)
  expect(await access.end(first.device.id)).toBe(false)
  expect(await access.end('../../lock')).toBe(false)
  expect(await access.deviceOf(first.key)).toBeNull()
  expect(await access.isThere(first.device.id)).toBe(false)
  const crossed = `${second.device.id}.${first.key.split('.')[1]}`
  for (const key of ['', 'x', crossed, second.key.slice(0, -1), `../${second.key}`, 'a'.repeat(1e6)])
    expect(await access.deviceOf(key)).toBeNull()
  await writeFile(join(folder, 'devices', `${second.device.id}.json`), '{"right":"steer"')
  expect(await access.deviceOf(second.key)).toBeNull()
  expect(await access.devices()).toEqual([])
})

test('a device is seen to a minute', async () => {
  const { access, clock } = await openAccess()
  const { key } = await access.add('phone', 'look')
  clock.at += 5 * MINUTE
  await access.deviceOf(key)
  expect(await access.devices()).toMatchObject([{ lastSeenAt: '2026-11-27T20:05:00.000Z' }])
})

promise('P16')
test('a browser signs in with a key that it shows nobody: once for each challenge, in time, and for its own origin', async () => {
  const { access, clock } = await openAccess()
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const shown = publicKey.export({ format: 'der', type: 'spki' }).toString('base64url')
  const origin = 'http://127.0.0.1:3000'
  const opened = await access.openLink(await access.newLink('steer'), 'phone', { publicKey: shown, origin })
  expect(opened).toMatchObject({ device: { name: 'phone', right: 'steer' }, key: null })
  const device = opened?.device.id ?? ''
  const signed = (challenge: string, by = privateKey, at = origin, sent = origin) => {
    const signature = sign('sha256', Buffer.from(signedText(at, challenge)), { key: by, dsaEncoding: 'ieee-p1363' })
    return { device, challenge, signature: signature.toString('base64url'), origin: sent }
  }
  const first = signed(access.challenge())
  const given = await access.signIn(first)
  const key = typeof given === 'object' && given !== null ? given.key : ''
  expect(await access.deviceOf(key)).toMatchObject({ id: device })
  expect(await access.signIn(first)).toBe('late')
  expect(await access.signIn(signed('of-somebody-else'))).toBe('late')
  expect(
    await access.signIn(signed(access.challenge(), generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)),
  ).toBeNull()
  // What was signed for another server, which passes it on.
  expect(await access.signIn(signed(access.challenge(), privateKey, 'http://127.0.0.1:3001'))).toBeNull()
  // What a script at the address that it was let in by signs for another.
  const elsewhere = 'http://127.0.0.1:3001'
  expect(await access.signIn(signed(access.challenge(), privateKey, elsewhere, elsewhere))).toBeNull()
  const late = access.challenge()
  clock.at += MINUTE
  expect(await access.signIn(signed(late))).toBe('late')
  await access.end(device)
  expect(await access.deviceOf(key)).toBeNull()
  expect(await access.signIn(signed(access.challenge()))).toBeNull()
})
