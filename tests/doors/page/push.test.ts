import { createECDH, createPublicKey, verify } from 'node:crypto'
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'
import { decrypt } from 'http_ece'
import { expect, onTestFinished, test } from 'vitest'
import { promise } from '../../support/promise.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { serveApi } from './client.ts'

const created = sampleEvents['session-created']

interface Pushed {
  headers: IncomingMessage['headers']
  body: Buffer
}

/** The service of a browser's maker, on loopback; it answers each message with the status. */
async function pushService() {
  const pushed: Pushed[] = []
  let news = Promise.withResolvers<void>()
  const service = { status: 201 as number | 'hangs' }
  const server = createServer(async (request, response) => {
    const parts = await Array.fromAsync(request as AsyncIterable<Buffer>)
    pushed.push({ headers: request.headers, body: Buffer.concat(parts) })
    if (service.status !== 'hangs') response.writeHead(service.status).end()
    news.resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/push/1`,
    service,
    pushed,
    async next(): Promise<Pushed> {
      while (pushed.length === 0) {
        news = Promise.withResolvers<void>()
        await news.promise
      }
      return pushed.shift() as Pushed
    },
  }
}

/** A browser that has switched notifications on, and reads them. */
function browser() {
  const keys = createECDH('prime256v1')
  const p256dh = keys.generateKeys().toString('base64url')
  const auth = Buffer.alloc(16, 7).toString('base64url')
  return {
    keys: { p256dh, auth },
    read: ({ body }: Pushed) =>
      JSON.parse(
        decrypt(body, { version: 'aes128gcm', privateKey: keys, authSecret: auth }).toString('utf8'),
      ) as unknown,
  }
}

promise('P10', 'A notification is encrypted for its device, and has no word of the project')
test('a question reaches a device that wants it: encrypted, signed, without a word of the project, and led to the question', async () => {
  const { place, post, get, follow } = await serveApi({ allowsLoopbackPush: true })
  const path = await place.journal('20261120_1', [{ ...created, goal: 'secret plans' }])
  const now = await follow('now')
  await now.until(({ data }) => data.isWhole === true && (data.cards as unknown[]).length === 1)
  const { endpoint, next, pushed } = await pushService()
  const { keys, read } = browser()
  expect(await post('push/on', { subscription: { endpoint, keys } })).toMatchObject({ status: 200 })
  const [, question] = recorded([created, sampleEvents['question-asked']], '20261120_1')
  await appendFile(path, `${JSON.stringify(question)}\n`)
  const message = await next()
  expect(read(message)).toEqual({
    kind: 'question',
    path: `#/s/${place.records.key}/20261120_1?q=${sampleEvents['question-asked'].question}`,
  })
  expect(message.headers).toMatchObject({ 'content-encoding': 'aes128gcm', ttl: '43200', urgency: 'high' })
  const { publicKey } = (await get('me')).body.push as { publicKey: string }
  expect(isSigned(String(message.headers.authorization), publicKey, new URL(endpoint).origin)).toBe(true)
  expect(pushed).toEqual([])
})

test('what was there before is no news, and a device that the service has forgotten, or that was ended, is told nothing more', async () => {
  const { place, post, follow, access, key } = await serveApi({ allowsLoopbackPush: true })
  const path = await place.journal('20261120_1', [created, sampleEvents['question-asked']])
  const now = await follow('now')
  await now.until(({ data }) => data.isWhole === true && (data.cards as unknown[]).length === 1)
  const [first, second] = [await pushService(), await pushService()]
  const other = await access.add('lost phone', 'look')
  expect(await post('push/on', { subscription: { endpoint: first.endpoint, keys: browser().keys } })).toMatchObject({
    status: 200,
  })
  // Whoever may only look may be told, too.
  expect(
    await post('push/on', { subscription: { endpoint: second.endpoint, keys: browser().keys } }, other.key),
  ).toMatchObject({ status: 200 })
  await post(`devices/${other.device.id}/end`, {}, key)
  first.service.status = 410
  const events = recorded(
    [
      created,
      sampleEvents['question-asked'],
      { ...sampleEvents['question-asked'], question: 'Q8' },
      sampleEvents['session-ended'],
    ],
    '20261120_1',
  )
  await appendFile(path, `${JSON.stringify(events[2])}\n`)
  await first.next()
  await appendFile(path, `${JSON.stringify(events[3])}\n`)
  await now.until(({ data }) => (data.cards as { outcome: unknown }[])[0]?.outcome !== null)
  expect([first.pushed, second.pushed]).toEqual([[], []])
})

test('a device whose service does not answer keeps no other one waiting', async () => {
  const { place, post, follow, access } = await serveApi({ allowsLoopbackPush: true })
  const path = await place.journal('20261120_1', [created])
  const now = await follow('now')
  await now.until(({ data }) => data.isWhole === true && (data.cards as unknown[]).length === 1)
  const [good, bad] = [await pushService(), await pushService()]
  bad.service.status = 'hangs'
  for (const { endpoint } of [good, bad]) {
    const { key } = await access.add('phone', 'look')
    await post('push/on', { subscription: { endpoint, keys: browser().keys } }, key)
  }
  const asked = sampleEvents['question-asked']
  const events = recorded([created, asked, { ...asked, question: 'Q8' }], '20261120_1')
  const start = performance.now()
  for (const event of events.slice(1)) {
    await appendFile(path, `${JSON.stringify(event)}\n`)
    await good.next()
  }
  await bad.next()
  // The one that hangs is waited for half a minute.
  expect(performance.now() - start).toBeLessThan(25_000)
})

promise('P13', 'Notifications go by https, and to no address of this machine or its networks')
test('a device cannot have this machine send elsewhere than to a service on the internet by https', async () => {
  const { place, post, follow, problems } = await serveApi()
  let knocked = 0
  const knocks = createPlainServer(socket => {
    knocked += 1
    socket.destroy()
  })
  knocks.listen(0, '127.0.0.1')
  await once(knocks, 'listening')
  onTestFinished(() => void knocks.close())
  const { port } = knocks.address() as AddressInfo
  const on = (endpoint: string) => post('push/on', { subscription: { endpoint, keys: browser().keys } })
  for (const endpoint of [
    'http://10.0.0.1/',
    'http://93.184.215.14/',
    `http://127.0.0.1:${port}/`,
    `http://localhost:${port}/`,
    `https://127.0.0.1:${port}/`,
    `https://0x7f.1:${port}/`,
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://100.100.100.100/',
    'https://169.254.169.254/latest/meta-data/',
    'https://172.31.0.1/',
    'https://192.168.1.1/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[fd00::1]/',
    'https://[fe80::1]/',
    'ftp://example.invalid/',
    'https://user:word@example.invalid/',
    'file:///etc/passwd',
  ])
    expect(await on(endpoint), endpoint).toMatchObject({ status: 400 })
  // What a name stands for is looked up when something is sent.
  const path = await place.journal('20261120_1', [created])
  const now = await follow('now')
  await now.until(({ data }) => data.isWhole === true && (data.cards as unknown[]).length === 1)
  expect(await on(`https://localhost:${port}/`)).toMatchObject({ status: 200 })
  const [, question] = recorded([created, sampleEvents['question-asked']], '20261120_1')
  await appendFile(path, `${JSON.stringify(question)}\n`)
  await expect
    .poll(() => problems, { timeout: 20_000 })
    .toEqual(['Could not send a notification: localhost belongs to this machine or its networks.'])
  expect(knocked).toBe(0)
})

function isSigned(authorization: string, publicKey: string, audience: string): boolean {
  const [, header = '', body = '', signature = '', key] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(authorization) ?? []
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33).toString('base64url'), point.subarray(33).toString('base64url')]
  const known = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  const { aud } = JSON.parse(Buffer.from(body, 'base64url').toString()) as { aud: string }
  const isTrue = verify(
    'sha256',
    Buffer.from(`${header}.${body}`),
    { key: known, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  return isTrue && key === publicKey && aud === audience
}
