import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { version } from '../base/version.ts'
import type { Door, DoorProblem } from './door.ts'
import { plainLine } from './plain-line.ts'

/** Sends notifications to an http(s) address, as the body of a POST. */
export function webhookDoor(address: string, clock: Clock): Door {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const sentence = 'The webhook is no http or https address; correct notify.webhook in the settings.'
    return { name: 'webhook', deliver: async () => ({ kind: 'webhook-address', sentence }) }
  }
  const shown = shownAddress(url)
  const request = requestOf(url)
  return {
    name: 'webhook',
    deliver: async (notification, signal) => {
      const body = JSON.stringify(notification)
      let known: DoorProblem | null = null
      for (let attempt = 0; ; attempt++) {
        const answer = await post({ ...request, body }, clock, signal)
        const problem = problemOf(answer, shown)
        if (signal.aborted) return known ?? problem
        const pause = PAUSES_MS[attempt]
        if (problem === null || !answer.mayPass || pause === undefined) return problem
        known = { ...problem, wasKnown: true }
        await clock.wait(pause, signal)
      }
    },
  }
}

const ATTEMPT_MS = 10_000
/** Before the second and the third attempt. */
const PAUSES_MS = [1000, 5000]
const REASON_CHARS = 200

interface WebhookRequest {
  url: string
  headers: Record<string, string>
  body: string
}

/** How an attempt ended: with an HTTP status, or without an answer; `mayPass`: another one may do better. */
type Answer = { status: number; mayPass: boolean } | { failure: string; mayPass: boolean }

/** The address without what may be secret: user, password, query, and the path, which is the key to many a webhook. */
function shownAddress(url: URL): string {
  return `${url.origin}${url.pathname === '/' && url.search === '' ? '/' : '/…'}`
}

/** `fetch` takes no credentials in an address. */
function requestOf(url: URL): Omit<WebhookRequest, 'body'> {
  const bare = new URL(url)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'user-agent': `codemachine/${version}`,
  }
  if (url.username !== '' || url.password !== '') {
    const credentials = `${decoded(url.username)}:${decoded(url.password)}`
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    bare.username = ''
    bare.password = ''
  }
  return { url: bare.href, headers }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Node reads its HTTP client (20 MB, 0.2 s) only when `fetch` is first called. */
async function post({ url, headers, body }: WebhookRequest, clock: Clock, signal: AbortSignal): Promise<Answer> {
  const over = new AbortController()
  const late = new AbortController()
  const bound = clock.wait(ATTEMPT_MS, over.signal).then(() => late.abort())
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      // A redirect would take the notification to somebody whom the person has not named.
      redirect: 'manual',
      signal: AbortSignal.any([late.signal, signal]),
    })
    await response.body?.cancel().catch(() => {})
    return { status: response.status, mayPass: response.status === 429 || response.status >= 500 }
  } catch (error) {
    if (late.signal.aborted) return { failure: `no answer within ${ATTEMPT_MS / 1000} s`, mayPass: true }
    return { failure: reasonOf(error), mayPass: mayPass(error) }
  } finally {
    over.abort()
    await bound
  }
}

function problemOf(answer: Answer, shown: string): DoorProblem | null {
  if ('failure' in answer)
    return { kind: 'webhook-unreachable', sentence: `The webhook ${shown} could not be reached: ${answer.failure}.` }
  const { status } = answer
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400)
    return {
      kind: 'webhook-redirect',
      sentence: `The webhook ${shown} redirects elsewhere (HTTP ${status}), which is not followed; name the other address in notify.webhook.`,
    }
  return { kind: 'webhook-refused', sentence: `The webhook ${shown} did not take a notification (HTTP ${status}).` }
}

/** What a network does may pass; what `fetch` refuses to do, and what a certificate or the other side's TLS is, stays. */
function mayPass(error: unknown): boolean {
  return /^(E(?!RR_)[A-Z0-9_]+|UND_ERR_(SOCKET|[A-Z]+_TIMEOUT))$/.test(systemErrorCode(causeOf(error)) ?? '')
}

/** `fetch failed` has what happened as its cause. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

/** No text of it that could hold the address is shown. */
function reasonOf(error: unknown): string {
  const cause = causeOf(error)
  return plainLine(systemErrorCode(cause) ?? messageOf(cause), REASON_CHARS)
}
