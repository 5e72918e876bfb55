import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { version } from '../../../src/base/package.ts'
import { NOWHERE } from '../../../src/platform/files.ts'
import { sendTest } from '../../../src/tell/notify/notifier.ts'
import { openForTest } from './opened.ts'
import { ended, needsPerson } from './samples.ts'

interface Received {
  path: string
  method: string
  headers: IncomingHttpHeaders
  body: string
}

/** What a server does with its nth request: answers with a status, hangs, or closes the connection. */
type Behaviour = (n: number) => number | 'hang' | 'close'

interface Hook extends AsyncDisposable {
  origin: string
  received: Received[]
  /** Resolves when so many requests have come. */
  requests(count: number): Promise<void>
}

async function startHook(behaviour: Behaviour, location = ''): Promise<Hook> {
  const received: Received[] = []
  let heard = () => {}
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url = '', method = '', headers } = request
      received.push({ path: url, method, headers, body: Buffer.concat(chunks).toString('utf8') })
      heard()
      const what = behaviour(received.length)
      if (what === 'close') request.socket.destroy()
      else if (what !== 'hang') response.writeHead(what, location === '' ? {} : { location }).end('x'.repeat(100_000))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    received,
    requests: async count => {
      while (received.length < count)
        await new Promise<void>(resolve => {
          heard = resolve
        })
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

test('a webhook is sent the event as JSON', async () => {
  await using hook = await startHook(() => 204)
  await using opened = await openForTest(() => ({ webhook: `${hook.origin}/hook?key=1` }))
  opened.tell(ended)
  await opened.notifier.close()
  expect(opened.problems).toEqual([])
  expect(hook.received).toMatchObject([
    {
      path: '/hook?key=1',
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': `codemachine/${version}` },
    },
  ])
  expect(JSON.parse(hook.received[0]?.body ?? '')).toMatchObject({ v: 1, event: 'ended', exitCode: 0 })
})

test('user and password of the address are sent as such', async () => {
  await using hook = await startHook(() => 200)
  const webhook = hook.origin.replace('//', '//ann:p%40ss@')
  await using opened = await openForTest(() => ({ webhook }))
  opened.tell(ended)
  await opened.notifier.close()
  expect(hook.received[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ann:p@ss').toString('base64')}`)
  expect(opened.problems).toEqual([])
})

test.each<[string, Behaviour]>([
  ['is out of order', n => (n < 3 ? 500 : 200)],
  ['has had too much', n => (n < 3 ? 429 : 200)],
  ['closes the connection', n => (n < 3 ? 'close' : 200)],
])('one that %s for a moment is tried again, later each time', async (_what, behaviour) => {
  await using hook = await startHook(behaviour)
  await using opened = await openForTest(() => ({ webhook: `${hook.origin}/` }))
  opened.tell(ended)
  await opened.clock.over(1000)
  expect(hook.received.length).toBe(1)
  await opened.clock.over(5000)
  expect(hook.received.length).toBe(2)
  await hook.requests(3)
  await opened.notifier.close()
  expect(hook.received.length).toBe(3)
  expect(opened.problems).toEqual([])
})

test('one that stays out of order is given up after three attempts', async () => {
  await using hook = await startHook(() => 503)
  await using opened = await openForTest(() => ({ webhook: `${hook.origin}/secret?key=secret` }))
  opened.tell(ended)
  await opened.clock.over(1000)
  await opened.clock.over(5000)
  expect(await opened.saidProblems(1)).toEqual([
    `The webhook ${hook.origin}/… did not accept a notification (HTTP 503).`,
  ])
  expect(hook.received.length).toBe(3)
})

test('what it refuses is not sent again', async () => {
  await using hook = await startHook(() => 404)
  await using opened = await openForTest(() => ({ webhook: hook.origin }))
  opened.tell(ended)
  opened.tell(needsPerson)
  await opened.notifier.close()
  expect(opened.problems).toEqual([`The webhook ${hook.origin}/ did not accept a notification (HTTP 404).`])
  expect(hook.received.length).toBe(2)
})

test('a redirect is not followed', async () => {
  await using other = await startHook(() => 200)
  await using hook = await startHook(() => 302, `${other.origin}/taken`)
  await using opened = await openForTest(() => ({ webhook: hook.origin }))
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual([
    `The webhook ${hook.origin}/ redirects elsewhere (HTTP 302); write the new address into notify.webhook.`,
  ])
  expect([hook.received.length, other.received.length]).toEqual([1, 0])
})

test('one that does not answer is given ten seconds an attempt', async () => {
  await using hook = await startHook(() => 'hang')
  await using opened = await openForTest(() => ({ webhook: hook.origin }))
  opened.tell(ended)
  for (const [nth, pause] of [1000, 5000, null].entries()) {
    await hook.requests(nth + 1)
    await opened.clock.over(10_000)
    if (pause !== null) await opened.clock.over(pause)
  }
  expect(await opened.saidProblems(1)).toEqual([
    `The webhook ${hook.origin}/ could not be reached: no answer within 10 s.`,
  ])
  expect(hook.received.length).toBe(3)
})

test('one that does not answer holds the end of a run up for five seconds, and no longer', async () => {
  await using hook = await startHook(() => 'hang')
  await using opened = await openForTest(() => ({ webhook: hook.origin }))
  opened.tell(ended)
  await hook.requests(1)
  const closed = opened.notifier.close()
  await opened.clock.over(5000)
  await closed
  expect(opened.clock.pending).toEqual([])
  expect(opened.problems).toEqual([
    'The webhook for notifications did not finish in time, so the last notification may be missing.',
  ])
})

test('the sentence keeps the secrets of the address', async () => {
  const hook = await startHook(() => 200)
  await hook[Symbol.asyncDispose]()
  const webhook = `${hook.origin.replace('//', '//ann:secret@')}/secret?key=secret`
  await using opened = await openForTest(() => ({ webhook }))
  opened.tell(ended)
  await opened.clock.over(1000)
  await opened.clock.over(5000)
  expect(await opened.saidProblems(1)).toEqual([`The webhook ${hook.origin}/… could not be reached: ECONNREFUSED.`])
})

test('what can never pass is not tried again: a port that fetch blocks', async () => {
  await using opened = await openForTest(() => ({ webhook: 'http://127.0.0.1:9/' }))
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual(['The webhook http://127.0.0.1:9/ could not be reached: bad port.'])
})

test('what can never pass is not tried again: a server that does not speak TLS', async () => {
  await using hook = await startHook(() => 200)
  const address = hook.origin.replace('http:', 'https:')
  await using opened = await openForTest(() => ({ webhook: address }))
  opened.tell(ended)
  expect(await opened.saidProblems(1)).toEqual([
    expect.stringContaining(`The webhook ${address}/ could not be reached: ERR_SSL_`),
  ])
})

test('where nothing listens that is said', async () => {
  const hook = await startHook(() => 200)
  await hook[Symbol.asyncDispose]()
  await using opened = await openForTest(() => ({ webhook: hook.origin }))
  opened.tell(ended)
  await opened.clock.over(1000)
  await opened.clock.over(5000)
  expect(await opened.saidProblems(1)).toEqual([`The webhook ${hook.origin}/ could not be reached: ECONNREFUSED.`])
})

test.each(['not an address', 'file:///etc/passwd', ''])(
  'what is no web address is said to be none: %j',
  async webhook => {
    await using opened = await openForTest(() => ({ webhook }))
    opened.tell(ended)
    expect(await opened.saidProblems(1)).toEqual([
      'The webhook is not an http or https address; correct notify.webhook in the settings.',
    ])
  },
)

test('a test is sent on every way, and each tells how it went', async () => {
  await using hook = await startHook(() => 200)
  await using opened = await openForTest(() => ({}))
  const { home, clock } = opened
  const written: string[] = []
  const options = {
    clock,
    env: { PATH: process.env.PATH },
    platform: process.platform,
    home,
    where: NOWHERE,
    bell: { write: (text: string) => written.push(text) },
    host: 'tower',
    directory: '/home/ann/parser',
    signal: new AbortController().signal,
  }
  const settings = { command: ['no-such-notify'], webhook: hook.origin, bell: true, events: [] }
  expect(await sendTest(settings, options)).toEqual([
    {
      channel: 'command',
      problem: 'The notification command no-such-notify does not exist; correct notify.command in the settings.',
    },
    { channel: 'webhook', problem: null },
    { channel: 'terminal', problem: null },
  ])
  expect(JSON.parse(hook.received[0]?.body ?? '')).toMatchObject({ event: 'test', host: 'tower' })
  expect(written.join('')).toContain('codemachine in parser: a test')
  expect(await sendTest(settings, { ...options, bell: null })).toContainEqual({
    channel: 'terminal',
    problem: 'The bell cannot ring: stdout is not a terminal.',
  })
})

test('the HTTP client is not loaded before something is sent, and does not keep the process alive after', async () => {
  await using hook = await startHook(() => 200)
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-notify-'))
  const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href)
  const script = join(folder, 'script.mjs')
  await writeFile(
    script,
    `import { openNotifier } from ${source('tell/notify/notifier.ts')}
     import { systemClock as clock } from ${source('base/clock.ts')}
     const { env, platform } = process
     const loaded = () => process.moduleLoadList.some(name => name.includes('undici'))
     const event = ${JSON.stringify(ended)}
     const state = { id: 's', host: 'h', directory: '/', goal: 'g', prices: [], questions: 0, claim: {}, gates: [], reviews: {} }
     for (const webhook of [null, ${JSON.stringify(hook.origin)}]) {
       const settings = { command: null, webhook, bell: false, events: ['ended'] }
       const notifier = openNotifier(settings, {
         clock, env, platform, home: '/', where: ${JSON.stringify(NOWHERE)}, bell: null, onProblem: console.log,
       })
       console.log(loaded())
       notifier.event(event, state)
       await notifier.close()
       console.log(loaded())
     }
     const closed = performance.now()
     process.on('exit', () => console.log(performance.now() - closed < 3000))`,
  )
  const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 30_000 })
  await rm(folder, { recursive: true })
  expect(stdout.trim().split('\n')).toEqual(['false', 'false', 'false', 'true', 'true'])
})
