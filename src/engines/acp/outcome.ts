import { clipEnd } from '../../base/text.ts'
import type { RoundClass, RoundOutcome } from '../../core/events/outcome.ts'
import { INTERRUPTED, withRetryAt } from '../codex/classify.ts'
import { memberOf, stringMember } from '../codex/wire.ts'

/** Protocol code for an agent without a login. */
const AUTH_REQUIRED = -32000
/** Protocol code for a cancelled request. */
const CANCELLED = -32800
const MOST_WORDS = 2_000

/**
 * Returns the outcome of a turn for the `stopReason` of `session/prompt`. An agent that stops at its own limit has worked.
 */
export function outcomeOfStop(stopReason: unknown): RoundOutcome {
  switch (stopReason) {
    case 'end_turn':
    case 'max_turn_requests':
      return { class: 'worked', message: null }
    case 'cancelled':
      return INTERRUPTED
    case 'max_tokens':
      return { class: 'context-full', message: 'The agent stopped: its answer reached the token limit.' }
    case 'refusal':
      return { class: 'refused', message: 'The agent refused to go on.' }
    default:
      return {
        class: 'refused',
        message: `The agent stopped for an unknown reason: ${stopReason}.`,
      }
  }
}

/**
 * Returns the outcome of a request that the agent answered with an error. The protocol has one code for a missing login, and
 * Claude's agent names a kind; otherwise the words decide. An unknown error counts as a temporary network failure.
 * @param now Unix time, ms
 * @param fullUntil when a usage window that is used up resets, Unix time in ms; null: the agent told of none
 */
export function outcomeOfError(error: unknown, now: number, fullUntil: number | null = null): RoundOutcome {
  const code = memberOf(error, 'code')
  if (code === CANCELLED) return INTERRUPTED
  const data = memberOf(error, 'data')
  const details =
    typeof data === 'string' ? data : (stringMember(data, 'details') ?? stringMember(data, 'message') ?? '')
  const said = stringMember(error, 'message') ?? String(error)
  const message = clipEnd([said, details].filter(text => text !== '').join(': '), MOST_WORDS)
  const kind = stringMember(data, 'errorKind') ?? ''
  if (kind === 'rate_limit' && fullUntil !== null) return { class: 'window', message, retryAt: fullUntil }
  const named = code === AUTH_REQUIRED ? 'auth' : (KINDS[kind] ?? ERRORS.find(([says]) => says.test(message))?.[1])
  return withRetryAt({ class: named ?? 'network', message }, now)
}

/** Kinds in `data.errorKind` of Claude's agent (measured with claude-agent-acp 0.101). */
const KINDS: Readonly<Record<string, RoundClass>> = {
  authentication_failed: 'auth',
  oauth_org_not_allowed: 'auth',
  billing_error: 'quota',
  max_output_tokens: 'context-full',
  model_not_found: 'config',
  overloaded: 'throttle',
  server_error: 'throttle',
  invalid_request: 'refused',
}

/** Words of errors and their classes; the first match decides. */
const ERRORS: readonly (readonly [RegExp, RoundClass])[] = [
  [/\b(?:usage|session|weekly|5-hour|five-hour|daily) limit\b/i, 'window'],
  [
    /out of credits|credit balance|insufficient (?:credits|funds|quota)|quota exceeded|billing|spend(?:ing)? (?:cap|limit)/i,
    'quota',
  ],
  [/context (?:window|length)|context_length|prompt is too long|too many tokens|maximum context/i, 'context-full'],
  [
    /\bmodel\b.{0,200}\b(?:not (?:found|supported|available)|does not exist|unknown)|(?:unknown|invalid) model/i,
    'config',
  ],
  [/unauthori[sz]ed|\b401\b|not logged in|log ?in\b|authentication|api[ _-]?key|oauth/i, 'auth'],
  [/overloaded|rate.?limit|too many requests|\b(?:429|529)\b|at capacity/i, 'throttle'],
]
