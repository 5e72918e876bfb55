import fc from 'fast-check'
import { expect, test } from 'vitest'
import { classifyStartError, classifyTurnError, ofProvider } from '../../../src/engines/codex/classify.ts'

test.each([
  ['context_length_exceeded', 'contextWindowExceeded', 'Codex ran out of room', 'context-full'],
  ['a usage limit with a reset', 'usageLimitExceeded', 'You’ve hit your usage limit. Try again at 8:54 PM.', 'window'],
  ['a usage limit without a time', 'usageLimitExceeded', "You've hit your usage limit.", 'window'],
  [
    'a usage limit that credits would lift too',
    'usageLimitExceeded',
    "You've hit your usage limit. Upgrade to Pro (https://x), visit https://x to purchase more credits or try again at 8:54 PM.",
    'window',
  ],
  ['a usage limit for days', 'usageLimitExceeded', 'Try again in 3 days 4 hours 9 minutes.', 'window'],
  ['a usage limit to a date', 'usageLimitExceeded', 'or try again on Nov 25th, 2026 8:54 PM.', 'window'],
  ['credits that are out until a time', 'usageLimitExceeded', 'You’re out of credits, try again at 8:54 PM.', 'window'],
  ['a usage limit in other words', 'usageLimitExceeded', 'That was all for now.', 'window'],
  [
    'a workspace without credits',
    'usageLimitExceeded',
    'Your workspace is out of credits. Add credits to continue.',
    'quota',
  ],
  ['a spend cap', 'usageLimitExceeded', 'You hit your spend cap set in your workspace.', 'quota'],
  ['a budget that is used up', 'sessionBudgetExceeded', 'session budget exceeded', 'quota'],
  ['no credit', 'usageLimitExceeded', 'Quota exceeded. Check your plan and billing details.', 'quota'],
  ['a plan without codex', 'usageLimitExceeded', 'To use Codex with your ChatGPT plan, upgrade to Plus.', 'quota'],
  ['an expired login', 'unauthorized', 'Your access token could not be refreshed.', 'auth'],
  ['401', { httpConnectionFailed: { httpStatusCode: 401 } }, 'unexpected status 401 Unauthorized', 'auth'],
  ['402', { httpConnectionFailed: { httpStatusCode: 402 } }, 'unexpected status 402', 'quota'],
  ['a 403 in the text alone', null, 'unexpected status 403 Forbidden: x, url: y', 'network'],
  ['404', { httpConnectionFailed: { httpStatusCode: 404 } }, 'unexpected status 404 Not Found', 'config'],
  ['408', { httpConnectionFailed: { httpStatusCode: 408 } }, 'unexpected status 408', 'network'],
  ['409', { httpConnectionFailed: { httpStatusCode: 409 } }, 'unexpected status 409', 'network'],
  ['413', { httpConnectionFailed: { httpStatusCode: 413 } }, 'unexpected status 413', 'context-full'],
  ['502', { httpConnectionFailed: { httpStatusCode: 502 } }, 'unexpected status 502', 'network'],
  ['504', { httpConnectionFailed: { httpStatusCode: 504 } }, 'unexpected status 504', 'network'],
  ['529', { httpConnectionFailed: { httpStatusCode: 529 } }, 'unexpected status 529', 'throttle'],
  ['503 of a server that is overloaded', { httpConnectionFailed: { httpStatusCode: 503 } }, 'overloaded', 'throttle'],
  ['a status in the text alone', null, 'unexpected status 401 Unauthorized: x, url: y', 'auth'],
  ['a key refused in mid-stream', { responseStreamDisconnected: { httpStatusCode: 401 } }, 'x', 'auth'],
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
  ['a login that nobody renews', 'other', 'auth refresh request timed out after 10s', 'auth'],
  [
    'a login that could not be renewed for the network',
    'other',
    'error sending request for url (https://auth.openai.com/oauth/token)',
    'network',
  ],
  [
    'a model that the account has not',
    'other',
    `{"detail":"The 'gpt-9' model is not supported when using Codex with a ChatGPT account."}`,
    'config',
  ],
  ['too long an answer', 'other', 'Incomplete response returned, reason: max_output_tokens', 'context-full'],
  [
    'an answer that a filter cut',
    'other',
    'stream disconnected before completion: Incomplete response returned, reason: content_filter',
    'refused',
  ],
  ['a 400 that quotes the other case', 'other', '{"x":"stream disconnected before completion: y"}', 'refused'],
  ['a permanent 400', 'other', '{"error":{"message":"Unsupported parameter"}}', 'refused'],
  ['something of a later codex', 'brandNew', 'who knows', 'network'],
  ['something of no known shape', [], 'who knows', 'network'],
  ['nothing at all', null, 'who knows', 'network'],
])('%s ends the round as what it is', (_name, codexErrorInfo, message, kind) => {
  expect(classifyTurnError({ message, codexErrorInfo })).toMatchObject({ class: kind, message })
})

const classOfForbidden = (message: string) =>
  classifyTurnError({ message, codexErrorInfo: { httpConnectionFailed: { httpStatusCode: 403 } } }).class

test.each([
  'unexpected status 403 Forbidden',
  'unexpected status 403 Forbidden: blocked, url: https://gateway.example/v1/account/api-key/responses, cf-ray: 1',
  'unexpected status 403 Forbidden: <!DOCTYPE html><html>Log in to your account.</html>, url: https://x/responses',
  'Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status 403 Forbidden)',
  'unexpected status 403 Forbidden: Access Denied. You do not have permission to access "/" on this server.',
])('a 403 of something on the way may be over the next time: %s', message => {
  expect(classOfForbidden(message)).toBe('network')
})

test.each([
  'You are not authorized to use this.',
  'Forbidden: this workspace does not allow codex',
  'Your account has been deactivated.',
  'You must be a member of an organization to use the API',
  'Invalid API key',
  '{"code":"invalid_api_key"}',
  'You have insufficient permissions for this operation. Missing scopes: api.responses.write',
  'Project `p` does not have access to model `m`',
  'Please sign in again.',
  '{"code":"unsupported_country_region_territory"}',
  'Country, region, or territory not supported',
])('a 403 about who asks is theirs to mend: %s', said => {
  expect(classOfForbidden(`unexpected status 403 Forbidden: ${said}, url: https://x/responses, cf-ray: 1`)).toBe('auth')
})

test('a configuration that codex cannot read is the person’s to mend; an error of its own is not', () => {
  expect(classifyStartError('failed to load configuration: bad TOML').class).toBe('config')
  expect(classifyStartError('failed to load configuration: mcp server x failed').class).toBe('config')
  expect(classifyStartError('Model provider `x` not found in config').class).toBe('config')
  expect(classifyStartError('error sending request for url (https://x)').class).toBe('network')
  expect(classifyStartError('database is locked').class).toBe('crashed')
})

test('a provider has no Responses API where it knows none, and not where it does not have a model', () => {
  const provider = {
    name: 'local',
    baseUrl: 'http://box/models/v1',
    model: null,
    keyEnv: null,
    contextWindow: null,
    whenAway: 'wait',
  } as const
  const told = (body: string) => {
    const message = `unexpected status 404 Not Found: ${body}, url: http://box/model/v1/responses`
    return ofProvider({ class: 'config', message }, provider).message
  }
  expect(told('{"detail":"Not Found"}')).toMatch(/^The provider local has no Responses API: .* answered HTTP 404\.$/)
  expect(told(`{"error":{"message":"model 'qwen' not found"}}`)).toMatch(
    /^unexpected status 404 .*model 'qwen' not found/,
  )
})

test('a required MCP server that did not come up may come up the next time', () => {
  const said = 'error creating thread: required MCP servers failed to initialize: x: bad config: timed out after 10s'
  expect(classifyStartError(said)).toEqual({ class: 'crashed', message: said })
})

test('whatever a later codex says has a class, and its words are kept', () => {
  fc.assert(
    fc.property(fc.string(), fc.anything(), (message, codexErrorInfo) => {
      expect(classifyTurnError({ message, codexErrorInfo })).toEqual({
        class: expect.stringMatching(/^[a-z-]+$/),
        message,
      })
    }),
  )
})
