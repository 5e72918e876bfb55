import { type Reply, type ReplyHeaders, reply, type UsageWindows, usageHeaders } from './reply.ts'

/** "Too many requests", with the seconds after which to try again; codex gives up at once where they are left out. */
export function tooManyRequests(retryAfterSeconds?: number): Reply {
  const headers: ReplyHeaders = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return { kind: 'status', status: 429, body: { error: { message: 'Too many requests' } }, headers }
}

/**
 * The account's usage limit is reached: with the windows in headers, as ChatGPT reports them, and the time in the text.
 *
 * @param resetsAt Unix time, s; left out: codex does not say when
 */
export function usageLimitReached(resetsAt?: number, windows: UsageWindows = {}): Reply {
  const error = { type: 'usage_limit_reached', message: 'limit', plan_type: 'pro' }
  return {
    kind: 'status',
    status: 429,
    body: { error: resetsAt === undefined ? error : { ...error, resets_at: resetsAt } },
    headers: usageHeaders(windows),
  }
}

/** No credit is left (`insufficient_quota`), or the plan does not include codex (`usage_not_included`). */
export function notPaidFor(type: 'insufficient_quota' | 'usage_not_included'): Reply {
  return { kind: 'status', status: 429, body: { error: { type, code: type, message: type } } }
}

/** An answer with this status and nothing to it. */
export function status(code: number, body: unknown = { error: { message: `status ${code}` } }): Reply {
  return { kind: 'status', status: code, body }
}

/** A stream that begins well and then says that it failed, with this code (`slow_down`, `server_error`, …). */
export function failsWith(code: string, message: string = code): Reply {
  return { ...reply(), end: { kind: 'failed', code, message } }
}

/** A stream that ends before its time (`max_output_tokens`, `content_filter`). */
export function endsEarly(reason: string): Reply {
  return { ...reply(), end: { kind: 'incomplete', reason } }
}

/** A stream that breaks off after its first event. */
export const cutStream: Reply = { ...reply(), end: { kind: 'cut', afterEvents: 1, how: 'reset' } }
