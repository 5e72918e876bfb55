import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/core/engine.ts'
import type { RoundClass } from '../../src/core/events/outcome.ts'
import { message, type Reply, reply } from '../../src/demo/model/reply.ts'
import { makePlace } from '../support/place.ts'
import {
  endsEarly,
  failsWith,
  notPaidFor,
  type ScriptedModel,
  startScriptedModel,
  status,
  tooManyRequests,
  usageLimitReached,
} from '../support/scripted-model.ts'
import { engineNamed, setupIn, THREAD } from './contract.ts'

const streamed = reply(message('abc'))
const cut = (afterEvents: number, how: 'reset' | 'end'): Reply => ({
  ...streamed,
  end: { kind: 'cut', afterEvents, how },
})
const disconnected = /^stream disconnected before completion: /
const window = { usedPercent: 100, windowMinutes: 300, resetsAt: 1_900_000_000 }

/** What the model says, how often codex asks with one retry in each of its two layers, and as what the round ends. */
const FAULTS: readonly [name: string, says: Reply, posts: number, ends: RoundClass, message: RegExp][] = [
  ['status 400', status(400, { error: { message: 'bad' } }), 1, 'refused', /"bad"/],
  ['status 401', status(401, 'who are you'), 2, 'auth', /unexpected status 401 Unauthorized: who are you/],
  ['status 429 without a time', tooManyRequests(), 1, 'throttle', /exceeded retry limit/],
  ['status 429 with a time', tooManyRequests(1), 2, 'throttle', /exceeded retry limit/],
  ['usage limit', usageLimitReached(1_900_000_000, { primary: window }), 1, 'window', /usage limit/],
  ['status 500', status(500, 'oops'), 4, 'throttle', /high demand/],
  ['closed before headers', { kind: 'close-before-headers' }, 4, 'network', /error sending request/],
  ['cut before the first event', cut(0, 'reset'), 2, 'network', disconnected],
  ['cut in the middle', cut(3, 'reset'), 2, 'network', /Transport error/],
  ['ended in the middle', cut(3, 'end'), 2, 'network', /stream closed before response.completed/],
  [
    'garbage for events',
    { kind: 'raw-stream', text: 'data: {oops\n\n' },
    2,
    'network',
    /stream closed before response.completed/,
  ],
  ['context full', failsWith('context_length_exceeded', 'too long'), 1, 'context-full', /ran out of room/],
  [
    'status 400 with a full context',
    status(400, { error: { code: 'context_length_exceeded', message: 'too long' } }),
    1,
    'context-full',
    /ran out of room/,
  ],
  [
    'a page for a stream',
    { kind: 'raw-stream', text: '<html><body>Welcome to the hotel!</body></html>' },
    2,
    'network',
    /stream closed before response.completed/,
  ],
  [
    'a last event that cannot be read',
    {
      kind: 'raw-stream',
      text: 'event: response.completed\ndata: {"type":"response.completed","response":{"usage":7}}\n\n',
    },
    2,
    'network',
    disconnected,
  ],
  [
    'a failure that nobody knows',
    failsWith('zebra', 'hmm'),
    2,
    'network',
    /^stream disconnected before completion: hmm/,
  ],
  [
    'status 403 about a right',
    status(403, { error: { message: 'You have insufficient permissions for this operation.' } }),
    2,
    'auth',
    /insufficient permissions/,
  ],
  [
    'a failure of the provider',
    failsWith('server_error', 'hmm'),
    2,
    'network',
    /^stream disconnected before completion: hmm/,
  ],
  ['usage limit without a time', usageLimitReached(), 1, 'window', /usage limit/],
  ['no credit', notPaidFor('insufficient_quota'), 1, 'quota', /Quota exceeded/],
  ['a plan without codex', notPaidFor('usage_not_included'), 1, 'quota', /To use Codex with your ChatGPT plan/],
  [
    'an unknown model',
    status(404, { error: { code: 'model_not_found', message: 'The model `x` does not exist' } }),
    1,
    'config',
    /does not exist/,
  ],
  ['status 402', status(402), 2, 'quota', /unexpected status 402/],
  ['status 403', status(403), 2, 'network', /unexpected status 403/],
  [
    'status 403 with a page',
    status(403, '<html><body><h1>403 Forbidden</h1>Please log in to your account.</body></html>'),
    2,
    'network',
    /unexpected status 403 Forbidden: <html>/,
  ],
  [
    'status 403 with a page of Cloudflare',
    status(403, '<html><body>Sorry, you have been blocked. Cloudflare. Your account.</body></html>'),
    2,
    'network',
    /Access blocked by Cloudflare.*restricted region/,
  ],
  [
    'status 403 about who asks',
    status(403, { error: { message: 'Country, region, or territory not supported' } }),
    2,
    'auth',
    /403 Forbidden: .*Country, region/,
  ],
  ['status 408', status(408), 2, 'network', /unexpected status 408/],
  ['status 409', status(409), 2, 'network', /unexpected status 409/],
  ['status 413', status(413), 2, 'context-full', /unexpected status 413/],
  ['status 502', status(502), 4, 'network', /unexpected status 502/],
  ['status 503', status(503), 4, 'network', /unexpected status 503/],
  ['status 504', status(504), 4, 'network', /unexpected status 504/],
  ['status 529', status(529), 4, 'throttle', /unexpected status 529/],
  [
    'a server that is overloaded',
    status(503, { error: { code: 'server_is_overloaded', message: 'busy' } }),
    2,
    'throttle',
    /at capacity/,
  ],
  ['an answer that says overloaded', failsWith('server_is_overloaded'), 1, 'throttle', /at capacity/],
  ['slow down', failsWith('slow_down', 'slow down'), 2, 'throttle', /slow down/],
  [
    'a rate limit with a time',
    failsWith('rate_limit_exceeded', 'Rate limit reached. Please try again in 1.5s.'),
    2,
    'throttle',
    /try again in 1.5s/,
  ],
  ['no credit in mid-stream', failsWith('insufficient_quota'), 1, 'quota', /Quota exceeded/],
  ['a policy', failsWith('cyber_policy', 'no'), 1, 'refused', /./],
  ['a prompt that is not taken', failsWith('invalid_prompt', 'no'), 1, 'refused', /./],
  ['a filter of the provider', endsEarly('content_filter'), 2, 'refused', /content_filter/],
  [
    'output limit',
    endsEarly('max_output_tokens'),
    1,
    'context-full',
    /Incomplete response returned, reason: max_output_tokens/,
  ],
]

const opened = new AsyncDisposableStack()
let model: ScriptedModel
let engine: Engine

beforeAll(async () => {
  const says = new Map(FAULTS.map(([name, reply]) => [name, reply]))
  model = opened.use(
    await startScriptedModel({ script: ({ userTexts }) => says.get(userTexts.at(-1) ?? '') ?? reply() }),
  )
  const place = opened.use(
    await makePlace(model.codexConfig('scripted', { request_max_retries: 1, stream_max_retries: 1 })),
  )
  engine = await engineNamed('codex').open(await setupIn(place))
  opened.defer(() => engine.close())
})

afterAll(() => opened.disposeAsync())

test.concurrent.each(FAULTS)('codex takes it for what it is: %s', async (name, _, posts, ends, words) => {
  const prepared = engine.prepare(THREAD)
  const outcome = await prepared.run({ round: 1, input: name, onEvent() {}, onLive() {}, onRecord() {} })
  prepared.discard()
  expect(outcome.class).toBe(ends)
  expect(outcome.message).toMatch(words)
  const asked = model.requests.filter(request => request.userTexts.at(-1) === name)
  expect(asked.map(({ step, attempt }) => [step, attempt])).toEqual(
    Array.from({ length: posts }, (_, attempt) => [0, attempt]),
  )
})
