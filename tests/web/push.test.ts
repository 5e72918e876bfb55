import { createECDH, createPublicKey, verify } from 'node:crypto'
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decrypt } from 'http_ece'
import { expect, onTestFinished, test } from 'vitest'
import { recorded, sampleEvents } from '../tui/samples.ts'
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
  const service = { status: 201 }
  const server = createServer(async (request, response) => {
    const parts = await Array.fromAsync(request as AsyncIterable<Buffer>)
    pushed.push({ headers: request.headers, body: Buffer.concat(parts) })
    response.writeHead(service.status).end()
    news.resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
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

test('a question reaches a device that wants it: encrypted, signed, without a word of the project, and led to the question', async () => {
  const { place, post, get, follow } = await serveApi()
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
  const { place, post, follow, access, key } = await serveApi()
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

test('a device cannot have this machine send elsewhere than to a service by https', async () => {
  const { post } = await serveApi()
  for (const endpoint of [
    'http://10.0.0.1/',
    'ftp://example.invalid/',
    'https://user:word@example.invalid/',
    'file:///etc/passwd',
  ])
    expect(await post('push/on', { subscription: { endpoint, keys: browser().keys } })).toMatchObject({ status: 400 })
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
