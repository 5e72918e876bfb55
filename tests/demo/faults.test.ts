import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RoundClass } from '../../src/core/events/outcome.ts'
import { message, type Reply, reply } from '../../src/demo/model/reply.ts'
import {
  endsEarly,
  failsWith,
  notPaidFor,
  type ScriptedModel,
  startScriptedModel,
  status,
  tooManyRequests,
  usageLimitReached,
} from '../../src/demo/model/scripted-model.ts'
import { classifyTurnError } from '../../src/engines/codex/classify.ts'
import { type Codex, startCodex } from './codex-client.ts'

/** A fault, and what codex makes of it with one retry in each of its two layers. */
interface Fault {
  reply: Reply
  posts: number
  info: unknown
  message: RegExp
  /** What a round ends as. */
  class: RoundClass
}

const streamed = reply(message('abc'))
const disconnected = /^stream disconnected before completion: /

const faults: Record<string, Fault> = {
  'status 400': {
    reply: { kind: 'status', status: 400, body: { error: { message: 'bad' } } },
    posts: 1,
    info: 'other',
    message: /"bad"/,
    class: 'refused',
  },
  'status 401': {
    reply: { kind: 'status', status: 401, body: 'who are you' },
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 401 } },
    message: /unexpected status 401 Unauthorized: who are you/,
    class: 'auth',
  },
  'status 429 without a time': {
    reply: tooManyRequests(),
    posts: 1,
    info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
    message: /exceeded retry limit/,
    class: 'throttle',
  },
  'status 429 with a time': {
    reply: tooManyRequests(1),
    posts: 2,
    info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
    message: /exceeded retry limit/,
    class: 'throttle',
  },
  'usage limit': {
    reply: usageLimitReached(1_900_000_000, {
      primary: { usedPercent: 100, windowMinutes: 300, resetsAt: 1_900_000_000 },
    }),
    posts: 1,
    info: 'usageLimitExceeded',
    message: /usage limit/,
    class: 'window',
  },
  'status 500': {
    reply: { kind: 'status', status: 500, body: 'oops' },
    posts: 4,
    info: 'internalServerError',
    message: /high demand/,
    class: 'throttle',
  },
  'closed before headers': {
    reply: { kind: 'close-before-headers' },
    posts: 4,
    info: 'other',
    message: /error sending request/,
    class: 'network',
  },
  'cut before the first event': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 0, how: 'reset' } },
    posts: 2,
    info: 'other',
    message: disconnected,
    class: 'network',
  },
  'cut in the middle': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 3, how: 'reset' } },
    posts: 2,
    info: 'other',
    message: /Transport error/,
    class: 'network',
  },
  'ended in the middle': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 3, how: 'end' } },
    posts: 2,
    info: 'other',
    message: /stream closed before response.completed/,
    class: 'network',
  },
  'garbage for events': {
    reply: { kind: 'raw-stream', text: 'data: {oops\n\n' },
    posts: 2,
    info: 'other',
    message: /stream closed before response.completed/,
    class: 'network',
  },
  'context full': {
    reply: failsWith('context_length_exceeded', 'too long'),
    posts: 1,
    info: 'contextWindowExceeded',
    message: /ran out of room/,
    class: 'context-full',
  },
  'status 400 with a full context': {
    reply: status(400, { error: { code: 'context_length_exceeded', message: 'too long' } }),
    posts: 1,
    info: 'contextWindowExceeded',
    message: /ran out of room/,
    class: 'context-full',
  },
  'a page for a stream': {
    reply: { kind: 'raw-stream', text: '<html><body>Welcome to the hotel!</body></html>' },
    posts: 2,
    info: 'other',
    message: /stream closed before response.completed/,
    class: 'network',
  },
  'a last event that cannot be read': {
    reply: {
      kind: 'raw-stream',
      text: 'event: response.completed\ndata: {"type":"response.completed","response":{"usage":7}}\n\n',
    },
    posts: 2,
    info: 'other',
    message: disconnected,
    class: 'network',
  },
  'a failure that nobody knows': {
    reply: failsWith('zebra', 'hmm'),
    posts: 2,
    info: 'other',
    message: /^stream disconnected before completion: hmm/,
    class: 'network',
  },
  'status 403 about a right': {
    reply: status(403, { error: { message: 'You have insufficient permissions for this operation.' } }),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 403 } },
    message: /insufficient permissions/,
    class: 'auth',
  },
  'a failure of the provider': {
    reply: failsWith('server_error', 'hmm'),
    posts: 2,
    info: 'other',
    message: /^stream disconnected before completion: hmm/,
    class: 'network',
  },
  'usage limit without a time': {
    reply: usageLimitReached(),
    posts: 1,
    info: 'usageLimitExceeded',
    message: /usage limit/,
    class: 'window',
  },
  'no credit': {
    reply: notPaidFor('insufficient_quota'),
    posts: 1,
    info: 'usageLimitExceeded',
    message: /Quota exceeded/,
    class: 'quota',
  },
  'a plan without codex': {
    reply: notPaidFor('usage_not_included'),
    posts: 1,
    info: 'usageLimitExceeded',
    message: /To use Codex with your ChatGPT plan/,
    class: 'quota',
  },
  'an unknown model': {
    reply: status(404, { error: { code: 'model_not_found', message: 'The model `x` does not exist' } }),
    posts: 1,
    info: 'modelNotFound',
    message: /does not exist/,
    class: 'config',
  },
  'status 402': {
    reply: status(402),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 402 } },
    message: /unexpected status 402/,
    class: 'quota',
  },
  'status 403': {
    reply: status(403),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 403 } },
    message: /unexpected status 403/,
    class: 'network',
  },
  'status 403 with a page': {
    reply: status(403, '<html><body><h1>403 Forbidden</h1>Please log in to your account.</body></html>'),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 403 } },
    message: /unexpected status 403 Forbidden: <html>/,
    class: 'network',
  },
  'status 403 with a page of Cloudflare': {
    reply: status(403, '<html><body>Sorry, you have been blocked. Cloudflare. Your account.</body></html>'),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 403 } },
    message: /Access blocked by Cloudflare.*restricted region/,
    class: 'network',
  },
  'status 403 about who asks': {
    reply: status(403, { error: { message: 'Country, region, or territory not supported' } }),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 403 } },
    message: /403 Forbidden: .*Country, region/,
    class: 'auth',
  },
  'status 408': {
    reply: status(408),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 408 } },
    message: /unexpected status 408/,
    class: 'network',
  },
  'status 409': {
    reply: status(409),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 409 } },
    message: /unexpected status 409/,
    class: 'network',
  },
  'status 413': {
    reply: status(413),
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 413 } },
    message: /unexpected status 413/,
    class: 'context-full',
  },
  'status 502': {
    reply: status(502),
    posts: 4,
    info: { httpConnectionFailed: { httpStatusCode: 502 } },
    message: /unexpected status 502/,
    class: 'network',
  },
  'status 503': {
    reply: status(503),
    posts: 4,
    info: { httpConnectionFailed: { httpStatusCode: 503 } },
    message: /unexpected status 503/,
    class: 'network',
  },
  'status 504': {
    reply: status(504),
    posts: 4,
    info: { httpConnectionFailed: { httpStatusCode: 504 } },
    message: /unexpected status 504/,
    class: 'network',
  },
  'status 529': {
    reply: status(529),
    posts: 4,
    info: { httpConnectionFailed: { httpStatusCode: 529 } },
    message: /unexpected status 529/,
    class: 'throttle',
  },
  'a server that is overloaded': {
    reply: status(503, { error: { code: 'server_is_overloaded', message: 'busy' } }),
    posts: 2,
    info: 'serverOverloaded',
    message: /at capacity/,
    class: 'throttle',
  },
  'an answer that says overloaded': {
    reply: failsWith('server_is_overloaded'),
    posts: 1,
    info: 'serverOverloaded',
    message: /at capacity/,
    class: 'throttle',
  },
  'slow down': {
    reply: failsWith('slow_down', 'slow down'),
    posts: 2,
    info: 'rateLimitExceeded',
    message: /slow down/,
    class: 'throttle',
  },
  'a rate limit with a time': {
    reply: failsWith('rate_limit_exceeded', 'Rate limit reached. Please try again in 1.5s.'),
    posts: 2,
    info: 'rateLimitExceeded',
    message: /try again in 1.5s/,
    class: 'throttle',
  },
  'no credit in mid-stream': {
    reply: failsWith('insufficient_quota'),
    posts: 1,
    info: 'usageLimitExceeded',
    message: /Quota exceeded/,
    class: 'quota',
  },
  'a policy': {
    reply: failsWith('cyber_policy', 'no'),
    posts: 1,
    info: 'cyberPolicy',
    message: /./,
    class: 'refused',
  },
  'a prompt that is not taken': {
    reply: failsWith('invalid_prompt', 'no'),
    posts: 1,
    info: 'other',
    message: /./,
    class: 'refused',
  },
  'a filter of the provider': {
    reply: endsEarly('content_filter'),
    posts: 2,
    info: 'other',
    message: /content_filter/,
    class: 'refused',
  },
  'output limit': {
    reply: endsEarly('max_output_tokens'),
    posts: 1,
    info: 'other',
    message: /Incomplete response returned, reason: max_output_tokens/,
    class: 'context-full',
  },
}

let model: ScriptedModel
let codex: Codex

beforeAll(async () => {
  model = await startScriptedModel({
    script: ({ userTexts }) => faults[userTexts.at(-1) ?? '']?.reply ?? reply(message('What fault is that?')),
  })
  codex = await startCodex(model, { provider: { request_max_retries: 1, stream_max_retries: 1 } })
})

afterAll(async () => {
  await codex[Symbol.asyncDispose]()
  await model[Symbol.asyncDispose]()
})

test.concurrent.each(Object.entries(faults))('codex takes it for what it is: %s', async (name, fault) => {
  const turn = await codex.playTurn(await codex.startThread(), name)
  expect(turn.status).toBe('failed')
  expect(turn.error?.codexErrorInfo).toEqual(fault.info)
  expect(turn.error?.message).toMatch(fault.message)
  expect(turn.error && classifyTurnError(turn.error).class).toBe(fault.class)
  const asked = model.requests.filter(request => request.userTexts.at(-1) === name)
  expect(asked.map(({ step, attempt }) => [step, attempt])).toEqual(
    Array.from({ length: fault.posts }, (_, attempt) => [0, attempt]),
  )
})

test('a model that has gone away refuses connections, and answers again once it is back', async () => {
  const away = await startScriptedModel({ script: () => reply(message('Back.')) })
  const waiting = await startCodex(away)
  try {
    await away.goAway()
    const noticed = waiting.next(({ params }) => /waiting for network/.test(params.error?.message ?? ''))
    const turn = waiting.playTurn(await waiting.startThread(), 'Are you there?')
    await noticed
    expect(away.requests).toEqual([])
    await away.comeBack()
    const { status: ended, items } = await turn
    expect([ended, items.at(-1)?.text]).toEqual(['completed', 'Back.'])
  } finally {
    await waiting[Symbol.asyncDispose]()
    await away[Symbol.asyncDispose]()
  }
})
