import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import type { Provider } from '../../src/core/shapes/provider.ts'
import { askPatiently, askProvider, canBeAsked } from '../../src/engines/ask-provider.ts'
import { HandClock } from '../support/hand-clock.ts'
import { promise } from '../support/promise.ts'

const at = (baseUrl: string): Provider => ({
  name: 'local',
  baseUrl,
  model: null,
  keyEnv: null,
  contextWindow: null,
  whenAway: 'wait',
})

const PROXY = { HTTP_PROXY: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9' }

test.each([
  ['http://box.example/v1', 'box.example', true],
  ['http://box.example/v1', 'other.example, BOX.EXAMPLE', true],
  ['http://gpu.box.example/v1', 'box.example', true],
  ['http://gpu.box.example/v1', '.box.example', true],
  ['http://gpu.box.example/v1', '*.box.example', true],
  ['http://outbox.example/v1', 'box.example', false],
  ['http://box.example/v1', 'gpu.box.example', false],
  ['http://box.example:8080/v1', 'box.example:8080', true],
  ['http://box.example/v1', 'box.example:80', true],
  ['https://box.example/v1', 'box.example:80', false],
  ['http://box.example/v1', '*', true],
  ['http://box.example/v1', '', false],
  ['http://box.example/v1', ',.', false],
  ['http://10.0.3.7:8080/v1', '10.0.3.7', true],
  ['http://10.0.3.7:8080/v1', '10.0.3.7:8080', true],
  ['http://10.0.3.7:8080/v1', '10.0.0.0/16', true],
  ['http://10.1.3.7:8080/v1', '10.0.0.0/16', false],
  ['http://10.0.3.7/v1', '10.0.0.0/99, nonsense/16, 0.3.7', false],
  ['http://[fd00::7]:8080/v1', 'fd00::/8', true],
  ['http://[fd00::7]:8080/v1', '[fd00::7]:8080', true],
  ['http://[fd00::7]/v1', 'fd00::8', false],
  ['http://127.0.0.1:8080/v1', '', true],
  ['http://localhost/v1', '', true],
  ['http://[::1]:8080/v1', '', true],
])('beside a proxy, whether a provider at %s is asked with NO_PROXY=%s: %s', (url, exempt, isAsked) => {
  expect(canBeAsked(at(url), { ...PROXY, NO_PROXY: exempt })).toBe(isAsked)
  expect(canBeAsked(at(url), { ...PROXY, no_proxy: exempt })).toBe(isAsked)
  expect(canBeAsked(at(url), {})).toBe(true)
})

test('a provider that no proxy stands before is known to be away, and one behind a proxy is not asked', async () => {
  const asked = async (env: NodeJS.ProcessEnv) =>
    await askProvider(at('http://model.invalid/v1'), null, {
      env,
      clock: systemClock,
      signal: new AbortController().signal,
    })
  expect(await asked(PROXY)).toBe(null)
  expect(await asked({ ...PROXY, NO_PROXY: 'model.invalid' })).toMatchObject({ kind: 'away' })
})

/** What is said of a server that answers so. */
async function asking(
  answer: RequestListener,
  {
    model = 'qwen' as string | null,
    clock = systemClock as Clock,
    env = {},
    signal = new AbortController().signal,
  } = {},
) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const keyEnv = Object.keys(env)[0] ?? null
  try {
    const problem = await askProvider({ ...at(url), keyEnv }, model, { env, clock, signal })
    return problem && { ...problem, message: problem.message.replaceAll(url, 'URL') }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const saying =
  (status: number, body: string | Buffer = '', headers = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(body)
const having = (...ids: string[]) => saying(200, JSON.stringify({ data: ids.map(id => ({ id })) }))

test.each([
  [500, { kind: 'away', message: 'The provider local does not answer at URL (HTTP 500).' }],
  [429, { kind: 'away', message: 'The provider local does not answer at URL (HTTP 429).' }],
  [408, { kind: 'away', message: 'The provider local does not answer at URL (HTTP 408).' }],
  [401, { kind: 'refused', message: 'The provider local wants a key; name its variable with key_env (HTTP 401).' }],
  [403, { kind: 'refused', message: 'The provider local wants a key; name its variable with key_env (HTTP 403).' }],
  [404, null],
])('a provider that answers with HTTP %i', async (status, problem) => {
  expect(await asking(saying(status))).toEqual(problem)
})

test('a key goes to the address of its provider alone, without the space around it', async () => {
  const keys: (string | undefined)[] = []
  const env = { LOCAL_KEY: ' sk-local ' }
  const asked = asking(
    ({ url, headers }, response) => {
      keys.push(headers.authorization)
      if (url === '/v1/models') response.writeHead(307, { location: '/elsewhere' }).end()
      else response.writeHead(200).end('{"data":[]}')
    },
    { env },
  )
  expect(await asked).toMatchObject({ kind: 'refused', message: expect.stringContaining('redirects from URL') })
  expect(keys).toEqual(['Bearer sk-local'])
  expect(await asking(saying(401), { env })).toMatchObject({
    message: 'The provider local rejects the key in LOCAL_KEY (HTTP 401).',
  })
  expect(await asking(saying(200), { env: { LOCAL_KEY: 'sk\nlocal' } })).toEqual({
    kind: 'no-key',
    message: 'The environment variable LOCAL_KEY of the provider local does not hold a valid key.',
  })
})

test.each([
  ['has it', having('qwen'), null],
  ['has it by its usual tag', having('other', 'qwen:latest'), null],
  ['has others', having('a', 'b', 'c', 'd', 'e', 'f'), 'it has a, b, c, d, e and 1 more.'],
  ['has none', having(), 'it has none at all.'],
  ['lists them in another way', saying(200, '{"models":["a"]}'), null],
  ['answers with more than a list', saying(200, Buffer.alloc(5 * 1024 * 1024, ' ')), null],
  ['answers with a list of more than 4 MiB', having('x'.repeat(5 * 1024 * 1024)), null],
] as const)('a model is there where the provider %s', async (_, answer, words) => {
  const problem = await asking(answer)
  if (words === null) expect(problem).toBeNull()
  else expect(problem).toEqual({ kind: 'no-model', message: expect.stringContaining(`the model qwen; ${words}`) })
})

test('a provider that takes a connection and says nothing is away after 3 s; whoever ends the question is told nothing', async () => {
  const clock = new HandClock()
  const asked = asking(() => {}, { clock })
  await clock.over(3000)
  expect(await asked).toEqual({
    kind: 'away',
    message: 'The provider local does not answer at URL (no answer within 3 s).',
  })
  const ending = new AbortController()
  const left = asking(() => ending.abort(), { signal: ending.signal })
  expect(await left).toBeNull()
})

promise(
  'W42',
  'A provider that does not answer, or is too busy to, is asked three times within 30 s before it is called away',
)
describe('asked patiently, a provider', () => {
  /** What becomes of one that answers so, one request after the other. `over`: has it wait no longer, once it was asked so often. */
  async function patiently(clock: HandClock, ...answers: RequestListener[]) {
    const asked = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    let times = 0
    const server = createServer((request, response) => {
      ;(answers[times] ?? answers.at(-1))?.(request, response)
      asked[times++]?.resolve()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const { signal } = new AbortController()
    const problem = askPatiently(at(url), 'qwen', { env: {}, clock, signal }).finally(() => {
      server.closeAllConnections()
      server.close()
    })
    const silent = async (n: number) => {
      await asked[n - 1]?.promise
      await clock.over(3000)
    }
    return { problem, silent, url, times: () => times }
  }

  test('that is silent, or too busy, and then answers is not away', async () => {
    const clock = new HandClock()
    const { problem, silent, times } = await patiently(clock, () => {}, saying(503), having('qwen'))
    await silent(1)
    await clock.over(10_500)
    await clock.over(10_500)
    expect([await problem, times()]).toEqual([null, 3])
  })

  test('that does not answer three times within 30 s is away', async () => {
    const clock = new HandClock()
    const { problem, silent, times } = await patiently(clock, () => {})
    await silent(1)
    await clock.over(10_500)
    await silent(2)
    await clock.over(10_500)
    await silent(3)
    const said = { kind: 'away', message: expect.stringContaining('no answer within 3 s') }
    expect([await problem, times()]).toEqual([said, 3])
  })

  test('that does not have the model, or is not there at all, is told of at once', async () => {
    const clock = new HandClock()
    const { problem, url, times } = await patiently(clock, having('other'))
    expect([await problem, times()]).toEqual([{ kind: 'no-model', message: expect.anything() }, 1])
    const { signal } = new AbortController()
    expect(await askPatiently(at(url), 'qwen', { env: {}, clock, signal })).toMatchObject({
      kind: 'away',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })
})
