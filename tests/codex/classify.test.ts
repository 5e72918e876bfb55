import { expect, test } from 'vitest'
import { classifyStartError, classifyTurnError } from '../../src/codex/classify.ts'

test.each([
  ['context_length_exceeded', 'contextWindowExceeded', 'Codex ran out of room', 'context-full'],
  ['a usage limit with a reset', 'usageLimitExceeded', 'You’ve hit your usage limit. Try again at 8:54 PM.', 'window'],
  ['no credit', 'usageLimitExceeded', 'Quota exceeded. Check your plan and billing details.', 'quota'],
  ['a plan without codex', 'usageLimitExceeded', 'To use Codex with your ChatGPT plan, upgrade to Plus.', 'quota'],
  ['an expired login', 'unauthorized', 'Your access token could not be refreshed.', 'auth'],
  ['401', { httpConnectionFailed: { httpStatusCode: 401 } }, 'unexpected status 401 Unauthorized', 'auth'],
  ['402', { httpConnectionFailed: { httpStatusCode: 402 } }, 'unexpected status 402', 'quota'],
  ['503', { httpConnectionFailed: { httpStatusCode: 503 } }, 'unexpected status 503', 'network'],
  ['no connection', { httpConnectionFailed: { httpStatusCode: null } }, 'Connection failed', 'network'],
  [
    '429 tried too often',
    { responseTooManyFailedAttempts: { httpStatusCode: 429 } },
    'exceeded retry limit',
    'throttle',
  ],
  ['slow_down', 'rateLimitExceeded', 'rate limit exceeded: slow down', 'throttle'],
  ['overload', 'serverOverloaded', 'Selected model is at capacity.', 'throttle'],
  ['500', 'internalServerError', 'We’re currently experiencing high demand', 'throttle'],
  ['an unknown model', 'modelNotFound', 'The model `x` does not exist', 'config'],
  ['a policy refusal', 'cyberPolicy', 'refused', 'refused'],
  ['a cut stream', 'other', 'stream disconnected before completion: idle timeout waiting for SSE', 'network'],
  ['a permanent 400', 'other', '{"error":{"message":"Unsupported parameter"}}', 'refused'],
  ['something of a later codex', 'brandNew', 'who knows', 'network'],
  ['something of no known shape', [], 'who knows', 'network'],
  ['nothing at all', null, 'who knows', 'network'],
])('%s ends the round as what it is', (_name, codexErrorInfo, message, kind) => {
  expect(classifyTurnError({ message, codexErrorInfo })).toEqual({ class: kind, message })
})

test('a configuration that codex cannot read is the person’s to mend; an error of its own is not', () => {
  expect(classifyStartError('failed to load configuration: bad TOML').class).toBe('config')
  expect(classifyStartError('required MCP servers failed to initialize: x').class).toBe('config')
  expect(classifyStartError('database is locked').class).toBe('crashed')
})
