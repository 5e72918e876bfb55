import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import type { WebEnv } from '../../../src/doors/page/guard.ts'
import { serveWeb, type WebOptions } from '../../../src/doors/page/server.ts'
import { Access } from '../../../src/project/page/access.ts'
import { promise } from '../../support/promise.ts'
import { type Sent, send } from './client.ts'

/** A served page whose API answers who asks, and what they sent. */
async function serve(options: Partial<WebOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-test-web-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>codemachine</title>')
  await writeFile(join(folder, 'app-ABCD1234.js'), 'export {}\n'.repeat(100))
  const access = new Access({
    folder: join(folder, '.access'),
    clock: { now: () => Date.now() },
    platform: process.platform,
  })
  const failures: unknown[] = []
  const api = new Hono<WebEnv>()
  api.get('/who', c => c.json({ name: c.get('device').name }))
  api.post('/say', async c => c.json({ said: await c.req.json() }))
  api.post('/enter', c => c.json({ came: true }))
  api.get('/fails', () => {
    throw new Error('a bug')
  })
  const server = await serveWeb({
    access,
    page: folder,
    api,
    takeReport: ticket => (ticket === 'one' ? '<!doctype html><style>p{color:red}</style><p>A report' : null),
    host: '127.0.0.1',
    port: 0,
    isExact: true,
    names: [],
    tls: null,
    onFailure: error => void failures.push(error),
    ...options,
  })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const own = { host: `127.0.0.1:${server.port}` }
  const ask = (path: string, { headers = {}, method = 'GET', body }: Sent = {}) =>
    send(server.port, path, { headers: { ...own, ...headers }, method, body })
  return { server, access, ask, failures }
}

const JSON_HEADERS = { 'content-type': 'application/json', 'x-codemachine': '1' }

promise('P5', 'A request under a foreign name, from a page of another origin, or without a key, is refused, reads too')
test('the page is read by anybody here, the API by nobody without a key', async () => {
  const { ask, access } = await serve()
  expect(await ask('/')).toMatchObject({ status: 200, text: '<!doctype html><title>codemachine</title>' })
  expect(await ask('/sessions/x')).toMatchObject({ status: 200 })
  const zipped = await ask('/app-ABCD1234.js', { headers: { 'accept-encoding': 'gzip' } })
  expect(zipped.headers).toMatchObject({
    'content-encoding': 'gzip',
    'cache-control': expect.stringMatching('immutable'),
  })
  for (const path of ['/../package.json', '/.access/devices', '/nothing.js', '//etc/passwd.txt'])
    expect((await ask(path)).status, path).toBe(404)
  expect((await ask('/api/who')).status).toBe(401)
  const { key, device } = await access.add('phone', 'look')
  const authorization = `Bearer ${key}`
  expect(await ask('/api/who', { headers: { authorization } })).toMatchObject({ status: 200, text: '{"name":"phone"}' })
  expect((await ask('/api/who', { headers: { cookie: `key=${key}` } })).status).toBe(401)
  await access.end(device.id)
  expect((await ask('/api/who', { headers: { authorization } })).status).toBe(401)
})

test('every answer forbids what the page does not need, and sets no cookie', async () => {
  const { ask } = await serve()
  for (const path of ['/', '/nothing.js', '/api/who', '/api/nothing']) {
    const { headers } = await ask(path)
    expect(headers['content-security-policy'], path).toMatch(/^default-src 'self'; .*frame-ancestors 'none'/)
    expect(headers['content-security-policy'], path).not.toContain('unsafe')
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    expect(headers['set-cookie']).toBeUndefined()
    expect(headers['access-control-allow-origin']).toBeUndefined()
  }
})

test('a foreign Host, Origin or page is refused, with the right key too', async () => {
  const { ask, access, server } = await serve()
  const { key } = await access.add('phone', 'steer')
  const good = { authorization: `Bearer ${key}` }
  const own = `http://127.0.0.1:${server.port}`
  const refused: Record<string, string>[] = [
    { host: 'evil.example' },
    { host: `evil.example:${server.port}` },
    { host: '127.0.0.1' },
    { host: `127.0.0.1:${server.port + 1}` },
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: `http://127.0.0.1:${server.port + 1}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  ]
  for (const headers of refused) {
    expect((await ask('/api/who', { headers: { ...good, ...headers } })).status, JSON.stringify(headers)).toBe(403)
    const write = { method: 'POST', body: '{}', headers: { ...good, ...JSON_HEADERS, ...headers } }
    expect((await ask('/api/say', write)).status, JSON.stringify(headers)).toBe(403)
  }
  const accepted: Record<string, string>[] = [
    {},
    { origin: own, 'sec-fetch-site': 'same-origin' },
    { host: `localhost:${server.port}`, origin: `http://localhost:${server.port}` },
    { host: `[::1]:${server.port}` },
  ]
  for (const headers of accepted)
    expect((await ask('/api/who', { headers: { ...good, ...headers } })).status, JSON.stringify(headers)).toBe(200)
  const followed = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  expect((await ask('/', { headers: followed })).status).toBe(200)
  expect((await ask('/', { headers: { ...followed, 'sec-fetch-dest': 'iframe' } })).status).toBe(403)
})

test('by another name of this machine the page is the one of the name that it is served by, where the browser is let in', async () => {
  const { ask, server } = await serve({ names: ['localhost:8080'] })
  const to = async (host: string, path: string) => {
    const { status, headers } = await ask(path, { headers: { host } })
    return [status, headers.location ?? null]
  }
  const own = `http://127.0.0.1:${server.port}`
  expect(await to(`localhost:${server.port}`, '/')).toEqual([302, `${own}/`])
  expect(await to(`[::1]:${server.port}`, '/sessions/x')).toEqual([302, `${own}/sessions/x`])
  expect(await to(`LocalHost:${server.port}`, '//evil.example/')).toEqual([404, null])
  expect(await to(`localhost:${server.port}`, '/app-ABCD1234.js')).toEqual([200, null])
  expect(await to(`127.0.0.1:${server.port}`, '/')).toEqual([200, null])
  // That of ssh, which the person has named.
  expect(await to('localhost:8080', '/')).toEqual([200, null])
})

const problemOfPort80 = await whyNotOn(80)
test.skipIf(problemOfPort80 !== null)(
  `on port 80 the page is opened without a port, as browsers do${problemOfPort80 === null ? '' : ` (skipped: ${problemOfPort80})`}`,
  async () => {
    const { ask } = await serve({ port: 80 })
    const write = (host: string) =>
      ask('/api/enter', { method: 'POST', body: '{}', headers: { ...JSON_HEADERS, host, origin: `http://${host}` } })
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.0.0.1:80']) {
      expect((await write(host)).status, host).toBe(200)
      expect((await ask('/', { headers: { host } })).status, host).toBe(host.startsWith('127.') ? 200 : 302)
    }
    expect((await ask('/', { headers: { host: 'evil.example' } })).status).toBe(403)
  },
)

/** Why this user can have no such port just now; null: they can. */
async function whyNotOn(port: number): Promise<string | null> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return null
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  } finally {
    server.close()
  }
}

promise('P14')
test('under another name, which a proxy has, nothing is written from a page that was opened without https', async () => {
  const { ask, access } = await serve({ names: ['Mac.lan', 'localhost:8080'] })
  const { key } = await access.add('phone', 'steer')
  const statusOf = async (method: 'GET' | 'POST', headers: Record<string, string>) => {
    const sent = { ...JSON_HEADERS, authorization: `Bearer ${key}`, ...headers }
    const [path, body] = method === 'GET' ? ['/api/who', undefined] : ['/api/say', '{}']
    return (await ask(path, { method, headers: sent, body })).status
  }
  const named = { host: 'mac.lan' }
  expect(await statusOf('POST', { ...named, origin: 'https://mac.lan' })).toBe(200)
  expect(await statusOf('POST', { ...named, origin: 'http://mac.lan' })).toBe(403)
  expect(await statusOf('POST', named)).toBe(403)
  expect(await statusOf('GET', { ...named, origin: 'http://mac.lan' })).toBe(403)
  // A browser does not say what has opened the page that reads.
  expect(await statusOf('GET', named)).toBe(200)
  const token = { method: 'POST', body: '{}', headers: { ...JSON_HEADERS, ...named, origin: 'http://mac.lan' } }
  expect(await ask('/api/enter', token)).toMatchObject({
    status: 403,
    text: '{"problem":"Under this name, open the page by https."}',
  })
  // Another port of the machine that the browser runs on, such as one of ssh.
  expect(await statusOf('POST', { host: 'localhost:8080', origin: 'http://localhost:8080' })).toBe(200)
})

test('a write wants JSON, a header and the right to steer; a form is refused', async () => {
  const { ask, access } = await serve()
  const [steers, looks] = [await access.add('mine', 'steer'), await access.add('theirs', 'look')]
  const post = (key: string, headers: Record<string, string>, body = '{"a":1}') =>
    ask('/api/say', { method: 'POST', body, headers: { authorization: `Bearer ${key}`, ...headers } })
  expect(await post(steers.key, JSON_HEADERS)).toMatchObject({ status: 200, text: '{"said":{"a":1}}' })
  expect((await post(looks.key, JSON_HEADERS)).status).toBe(403)
  expect((await post(steers.key, { 'content-type': 'application/json' })).status).toBe(415)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    expect((await post(steers.key, { ...JSON_HEADERS, 'content-type': type })).status, type).toBe(415)
  expect((await ask('/api/enter', { method: 'POST', body: 'token=x' })).status).toBe(415)
  expect((await ask('/api/enter', { method: 'POST', body: '{}', headers: JSON_HEADERS })).status).toBe(200)
  for (const method of ['PUT', 'DELETE', 'OPTIONS'])
    expect((await ask('/api/say', { method, headers: { authorization: `Bearer ${steers.key}` } })).status).toBe(405)
})

test('a body that is too long is not read to its end, and a bug is told once, without its stack', async () => {
  const { ask, access, failures } = await serve()
  const { key } = await access.add('mine', 'steer')
  const headers = { authorization: `Bearer ${key}`, ...JSON_HEADERS }
  const long = { ...headers, 'content-length': String(100 * 1024 * 1024) }
  const early = await ask('/api/say', { method: 'POST', body: 'x', headers: long }).catch(() => null)
  expect(early === null || early.status === 413).toBe(true)
  const parts = Array.from({ length: 9 }, () => 'x'.repeat(1024 * 1024))
  const piece = await ask('/api/say', { method: 'POST', body: parts, headers }).catch(() => null)
  expect(piece === null || piece.status === 413).toBe(true)
  const failed = await ask('/api/fails', { headers })
  expect(failed).toMatchObject({ status: 500, text: '{"problem":"That failed: a bug"}' })
  expect(failures).toHaveLength(1)
})

test('whoever has no key yet sends a token or a code, and nothing long', async () => {
  const { ask } = await serve()
  const enter = (body: string | string[]) => ask('/api/enter', { method: 'POST', body, headers: JSON_HEADERS })
  const name = JSON.stringify({ token: 'A'.repeat(43), name: '\u{1f4f1}'.repeat(40) })
  expect([(await enter(name)).status, (await enter([name])).status]).toEqual([200, 200])
  const long = JSON.stringify({ token: 'A'.repeat(5_000), name: 'phone' })
  // With its length, and in parts.
  expect(await enter(long)).toMatchObject({ status: 413, text: '{"problem":"This has at most 4 KiB."}' })
  expect((await enter([long.slice(0, 100), long.slice(100)])).status).toBe(413)
})

test('a port that is taken is passed over, or named where it was asked for', async () => {
  const other = createServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const { port } = other.address() as { port: number }
  const { server } = await serve({ port, isExact: false })
  expect(server.port).toBeGreaterThan(port)
  await expect(serve({ port, isExact: true })).rejects.toThrow(`Port ${port} of 127.0.0.1 is in use.`)
  await expect(serve({ host: '0.0.0.0' })).rejects.toThrow('On 0.0.0.0, other people can read the traffic')
})
