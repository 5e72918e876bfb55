import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reply, reply, usageHeaders } from '../../src/demo/reply.ts'
import { message } from '../../src/demo/reply-items.ts'
import { type ScriptedModel, startScriptedModel } from '../../src/demo/scripted-model.ts'
import { type Codex, startCodex } from './codex-client.ts'

/** A fault, and what codex makes of it with one retry in each of its two layers. */
interface Fault {
  reply: Reply
  posts: number
  info: unknown
  message: RegExp
}

const streamed = reply(message('abc'))
const disconnected = /^stream disconnected before completion: /

const faults: Record<string, Fault> = {
  'status 400': {
    reply: { kind: 'status', status: 400, body: { error: { message: 'bad' } } },
    posts: 1,
    info: 'other',
    message: /"bad"/,
  },
  'status 401': {
    reply: { kind: 'status', status: 401, body: 'who are you' },
    posts: 2,
    info: { httpConnectionFailed: { httpStatusCode: 401 } },
    message: /unexpected status 401 Unauthorized: who are you/,
  },
  'status 429 without a time': {
    reply: { kind: 'status', status: 429, body: {} },
    posts: 1,
    info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
    message: /exceeded retry limit/,
  },
  'status 429 with a time': {
    reply: { kind: 'status', status: 429, body: {}, headers: { 'retry-after': '1' } },
    posts: 2,
    info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
    message: /exceeded retry limit/,
  },
  'usage limit': {
    reply: {
      kind: 'status',
      status: 429,
      body: { error: { type: 'usage_limit_reached', message: 'limit', resets_at: 1_900_000_000 } },
      headers: usageHeaders({ primary: { usedPercent: 100, windowMinutes: 300, resetsAt: 1_900_000_000 } }),
    },
    posts: 1,
    info: 'usageLimitExceeded',
    message: /usage limit/,
  },
  'status 500': {
    reply: { kind: 'status', status: 500, body: 'oops' },
    posts: 4,
    info: 'internalServerError',
    message: /high demand/,
  },
  'closed before headers': {
    reply: { kind: 'close-before-headers' },
    posts: 4,
    info: 'other',
    message: /error sending request/,
  },
  'cut before the first event': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 0, how: 'reset' } },
    posts: 2,
    info: 'other',
    message: disconnected,
  },
  'cut in the middle': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 3, how: 'reset' } },
    posts: 2,
    info: 'other',
    message: /Transport error/,
  },
  'ended in the middle': {
    reply: { ...streamed, end: { kind: 'cut', afterEvents: 3, how: 'end' } },
    posts: 2,
    info: 'other',
    message: /stream closed before response.completed/,
  },
  'garbage for events': {
    reply: { kind: 'raw-stream', text: 'data: {oops\n\n' },
    posts: 2,
    info: 'other',
    message: /stream closed before response.completed/,
  },
  'context full': {
    reply: { ...streamed, end: { kind: 'failed', code: 'context_length_exceeded', message: 'too long' } },
    posts: 1,
    info: 'contextWindowExceeded',
    message: /ran out of room/,
  },
  'a failure of the provider': {
    reply: { ...streamed, end: { kind: 'failed', code: 'server_error', message: 'hmm' } },
    posts: 2,
    info: 'other',
    message: /^stream disconnected before completion: hmm/,
  },
  'output limit': {
    reply: { ...streamed, end: { kind: 'incomplete', reason: 'max_output_tokens' } },
    posts: 1,
    info: 'other',
    message: /Incomplete response returned, reason: max_output_tokens/,
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
  const asked = model.requests.filter(request => request.userTexts.at(-1) === name)
  expect(asked.map(({ step, attempt }) => [step, attempt])).toEqual(
    Array.from({ length: fault.posts }, (_, attempt) => [0, attempt]),
  )
})
