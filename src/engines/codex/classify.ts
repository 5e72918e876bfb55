import { systemErrorCode, unreachable } from '../../base/errors.ts'
import type { RoundClass, RoundOutcome } from '../../core/events/outcome.ts'
import type { Provider } from '../../core/shapes/provider.ts'
import { type AppServerExit, describeExit } from './app-server.ts'
import { memberOf, type RequestFailure } from './wire.ts'

/** The parts of codex's `TurnError` that determine its class. */
export interface CodexError {
  message: string
  codexErrorInfo?: unknown
  additionalDetails?: string | null
}

/** Returns the outcome of a failed turn. An unknown error counts as a temporary network failure. */
export function classifyTurnError({ message, codexErrorInfo }: CodexError): RoundOutcome {
  const { name, status } = readInfo(codexErrorInfo)
  const said = { name, status: status ?? statusIn(message), message: message.replace(ADDRESS, '') }
  const end = TURN_ERRORS.find(row => applies(row, said))?.class ?? 'network'
  // A 403 may be temporary or about the account: its repetition decides.
  return end === 'network' && said.status === 403
    ? { class: end, message, status: said.status }
    : { class: end, message }
}

/** Returns the outcome of an error response to `initialize`, `thread/start` or `turn/start`. */
export function classifyStartError(message: string): RoundOutcome {
  return { class: START_ERRORS.find(({ says }) => says.test(message))?.class ?? 'crashed', message }
}

/** The outcome of a turn that was interrupted. */
export const INTERRUPTED: RoundOutcome = { class: 'interrupted', message: null }

/** Returns the outcome of a turn for the status and error of codex's `turn/completed`. */
export function turnOutcome(status: string, error: CodexError | null): RoundOutcome {
  if (status === 'completed') return { class: 'worked', message: null }
  if (status === 'interrupted') return INTERRUPTED
  return error ? classifyTurnError(error) : { class: 'network', message: `The turn ended: ${status}.` }
}

/**
 * Returns the outcome of a turn on a person's provider; names the provider if it does not fit codex. A server without the
 * model names that itself.
 */
export function ofProvider(outcome: RoundOutcome, { name, baseUrl }: Provider): RoundOutcome {
  const said = (outcome.message ?? '').replace(ADDRESS, '')
  const status = statusIn(said)
  if (outcome.class !== 'config' || status === null || /\bmodel\b/i.test(said)) return outcome
  const message = `The provider ${name} has no Responses API: ${baseUrl}/responses answered HTTP ${status}.`
  return { ...outcome, message }
}

/** Returns the outcome of a round whose request failed while the process lives. */
export function requestOutcome({ cause, message }: RequestFailure): RoundOutcome {
  switch (cause) {
    case 'answered':
      return classifyStartError(message)
    case 'deadline':
      return { class: 'silent', message }
    case 'closed':
      return { class: 'crashed', message }
    default:
      return unreachable(cause)
  }
}

/** System errors of a start that do not pass by themselves, unlike too many processes or open files. */
const LASTING: ReadonlySet<string | null> = new Set([
  'ENOENT',
  'EACCES',
  'EPERM',
  'ENOEXEC',
  'ENOTDIR',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'E2BIG',
])

/**
 * Returns the outcome of a round whose process ended by itself. During its start, codex exits with 1 and a sentence on
 * stderr if its home or configuration is unusable.
 */
export function exitOutcome(exit: AppServerExit, starting: boolean): RoundOutcome {
  return { class: isLasting(exit, starting) ? 'config' : 'crashed', message: describeExit(exit) }
}

function isLasting(exit: AppServerExit, starting: boolean): boolean {
  if (exit.reason === 'not-started') return LASTING.has(systemErrorCode(exit.error))
  return starting && exit.reason === 'exited' && exit.code === 1
}

/** Matches the request's address: its words do not describe the error. */
const ADDRESS = /, url: \S*/

/** A row applies if all its conditions do. */
interface Row {
  /** Names of `codexErrorInfo`. */
  info?: readonly string[]
  /** HTTP statuses. */
  status?: readonly number[]
  says?: RegExp
  class: RoundClass
}

/** The first matching row decides. The faults were produced with the real codex (docs/inside/codex.md, "Faults"). */
const TURN_ERRORS: readonly Row[] = [
  // One name means a temporary window or an account without credit. A text about a window may also offer credits and plans;
  // only a retry time identifies it for certain.
  { info: ['usageLimitExceeded'], says: /\btry again (?:at|in|on|later)\b/i, class: 'window' },
  {
    info: ['usageLimitExceeded'],
    says: /out of credits|credit limit|spend (?:cap|limit)|quota exceeded|billing|to use codex with your chatgpt plan/i,
    class: 'quota',
  },
  { info: ['usageLimitExceeded'], class: 'window' },
  { info: ['sessionBudgetExceeded'], class: 'quota' },

  { info: ['contextWindowExceeded'], class: 'context-full' },
  { info: ['unauthorized'], class: 'auth' },
  { info: ['modelNotFound', 'sandboxError'], class: 'config' },
  {
    info: [
      'badRequest',
      'cyberPolicy',
      'misalignmentPolicyViolation',
      'inferenceHookDenied',
      'tooManyDenials',
      'invalidPrompt',
    ],
    class: 'refused',
  },
  {
    info: [
      'rateLimitExceeded',
      'serverOverloaded',
      'internalServerError',
      'flexUnavailable',
      'policyCapacityUnavailable',
    ],
    class: 'throttle',
  },

  // Temporary stream errors and permanent refusals share a name.
  { info: ['other'], says: /reason: content_filter/i, class: 'refused' },
  // A new round with smaller steps also fixes a too long answer.
  { info: ['other'], says: /reason: max_output_tokens/i, class: 'context-full' },
  { info: ['other'], says: /error sending request|connection (?:refused|reset|closed)|dns error/i, class: 'network' },
  { info: ['other'], says: /\bmodel\b.{0,200}\bis not (?:supported|available)/i, class: 'config' },
  { info: ['other'], says: /^stream disconnected before completion:/i, class: 'network' },
  { info: ['other'], says: /^Missing environment variable/i, class: 'config' },
  { info: ['other'], says: /auth refresh request timed out/i, class: 'auth' },
  { info: ['other'], class: 'refused' },

  { status: [400, 422], class: 'refused' },
  { status: [401], class: 'auth' },
  // A proxy or site guard may send a single 403; the provider's own is about the account.
  { status: [403], says: /<(?:!doctype|html)\b/i, class: 'network' },
  {
    status: [403],
    says: /\b(?:not |un)authori[sz]ed|insufficient permission|missing scope|have access/i,
    class: 'auth',
  },
  { status: [403], says: /workspace|account|organi[sz]ation|api[ _-]?key|\b(?:log|sign) ?in\b/i, class: 'auth' },
  { status: [403], says: /unsupported[ _](?:country|region)|(?:country|region).* not supported/i, class: 'auth' },
  { status: [403], class: 'network' },
  { status: [402], class: 'quota' },
  { status: [404, 405, 407, 410], class: 'config' },
  // The request is too large: a new thread sends less.
  { status: [413], class: 'context-full' },
  { status: [429, 500, 529], class: 'throttle' },
  { status: [503], says: /overloaded|at capacity/i, class: 'throttle' },
  { info: ['responseTooManyFailedAttempts'], class: 'throttle' },
]

const START_ERRORS = [
  { says: /failed to load configuration/i, class: 'config' },
  // A server that was too slow may start next time; one that never starts crashes repeatedly.
  { says: /mcp servers? failed/i, class: 'crashed' },
  { says: /config|model[ _]provider/i, class: 'config' },
  {
    says: /error sending request|dns error|connection (?:refused|reset|failed)|network is unreachable/i,
    class: 'network',
  },
] as const satisfies readonly { says: RegExp; class: RoundClass }[]

function applies(
  row: Row,
  { name, status, message }: { name: string; status: number | null; message: string },
): boolean {
  if (row.info && !row.info.includes(name)) return false
  if (row.status && (status === null || !row.status.includes(status))) return false
  return row.says?.test(message) ?? true
}

/** Parses `"name"` or `{ "name": { "httpStatusCode": n } }`. */
function readInfo(info: unknown): { name: string; status: number | null } {
  if (typeof info === 'string') return { name: info, status: null }
  if (typeof info !== 'object' || info === null) return { name: 'unknown', status: null }
  const [entry] = Object.entries(info)
  if (!entry) return { name: 'unknown', status: null }
  const [name, detail] = entry
  const status = memberOf(detail, 'httpStatusCode')
  return { name, status: typeof status === 'number' ? status : null }
}

/** Returns the status at the start of a message, for a `codexErrorInfo` without one. */
function statusIn(message: string): number | null {
  const [, status] = /^unexpected status (\d{3})\b/.exec(message) ?? []
  return status === undefined ? null : Number(status)
}

/**
 * Adds `retryAt` to the outcome if codex's message has a time. Only for the classes `window` and `throttle`. `now`: Unix
 * time, ms.
 */
export function withRetryAt(outcome: RoundOutcome, now: number): RoundOutcome {
  if (outcome.class !== 'window' && outcome.class !== 'throttle') return outcome
  const retryAt = retryAtInText(outcome.message ?? '', now)
  return retryAt === null ? outcome : { ...outcome, retryAt }
}

/**
 * Parses the time in a message of codex: "try again in 1.5s", "in 3 days 4 hours 9 minutes", "at 8:54 PM" (the next in local
 * time), "on Nov 25th, 2026 8:54 PM". Returns Unix time, ms; null without a time, or if it is past or further away than any
 * usage window.
 */
export function retryAtInText(text: string, now: number): number | null {
  const said = /\btry again\s+(in|at|on)\s+(?:about\s+)?([^\n]{1,100})/i.exec(text)
  const [, how = '', words = ''] = said ?? []
  return sensible(how.toLowerCase() === 'in' ? timeAfter(words, now) : momentOf(words, now), now)
}

const JUST_PASSED_MS = 60 * 60_000
const HALF_A_DAY_MS = 12 * JUST_PASSED_MS
/** No usage window is longer than a month; treat a later reset as a parse error. */
const FURTHEST_MS = 32 * 24 * 60 * 60_000

function sensible(at: number | null, now: number): number | null {
  return at !== null && at > now && at - now <= FURTHEST_MS ? at : null
}

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:ms|millis(?:econds?)?|milliseconds?)$/i, 1],
  [/^(?:s|secs?|seconds?)$/i, 1000],
  [/^(?:m|mins?|minutes?)$/i, 60_000],
  [/^(?:h|hrs?|hours?)$/i, 3_600_000],
  [/^(?:d|days?)$/i, 86_400_000],
  [/^(?:w|wks?|weeks?)$/i, 604_800_000],
]
const PART = /\s*(?:,\s*)?(?:and\s+)?(\d+(?:\.\d+)?|an?(?=\s))\s*([a-z]+)/iy

function timeAfter(words: string, now: number): number | null {
  const text = words.replace(/^less than\s+/i, '')
  let ms = 0
  PART.lastIndex = 0
  for (let part = PART.exec(text); part; part = PART.exec(text)) {
    const [, count = '', word = ''] = part
    const unit = UNITS.find(([names]) => names.test(word))
    if (!unit) break
    ms += (/^a/i.test(count) ? 1 : Number(count)) * unit[1]
  }
  return ms > 0 ? now + Math.ceil(ms) : null
}

/** Local time of day. */
interface WallTime {
  hour: number
  minute: number
  second: number
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const DATE = /^(?:[a-z]+day,?\s+)?([a-z]{3})[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?,?\s+(?:at\s+)?(.*)$/i
const ISO = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|UTC|[+-]\d{2}:?\d{2})?/i

function momentOf(words: string, now: number): number | null {
  const [iso] = ISO.exec(words) ?? []
  if (iso !== undefined) {
    const at = Date.parse(iso.replace(/\s?UTC$/i, 'Z'))
    return Number.isNaN(at) ? null : at
  }
  const today = new Date(now)
  const date = DATE.exec(words)
  if (!date) {
    const time = wallTimeOf(words)
    if (!time) return null
    const day = (later: number) => occurrences(today.getFullYear(), today.getMonth(), today.getDate() + later, time)
    const moments = [...day(-1), ...day(0), ...day(1)]
    // With a clock ahead of the server's, the time may have just passed; it is not tomorrow's.
    const next = nextOf(moments, now)
    const hasJustPassed = moments.some(at => at + 60_000 <= now && now - at < JUST_PASSED_MS)
    return hasJustPassed && next !== null && next - now > HALF_A_DAY_MS ? null : next
  }
  const [, name = '', dayOfMonth = '', year, rest = ''] = date
  const [month, time] = [MONTHS.indexOf(name.toLowerCase()), wallTimeOf(rest)]
  if (month === -1 || !time) return null
  const years = year === undefined ? [today.getFullYear(), today.getFullYear() + 1] : [Number(year)]
  const real = years.filter(each => new Date(each, month, Number(dayOfMonth)).getMonth() === month)
  return nextOf(
    real.flatMap(each => occurrences(each, month, Number(dayOfMonth), time)),
    now,
  )
}

function wallTimeOf(words: string): WallTime | null {
  const found = /^(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap])\.?m\b)?/i.exec(words)
  if (!found) return null
  const [, hours = '', minutes = '', seconds = '0', half] = found
  const [hour, minute, second] = [Number(hours), Number(minutes), Number(seconds)]
  if (minute > 59 || second > 59) return null
  if (half === undefined) return hour > 23 ? null : { hour, minute, second }
  if (hour < 1 || hour > 12) return null
  return { hour: (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0), minute, second }
}

/** Returns the moments with this local time: two if the clock is set back then. */
function occurrences(year: number, month: number, day: number, { hour, minute, second }: WallTime): number[] {
  const first = new Date(year, month, day, hour, minute, second).getTime()
  const shows = (at: number) => new Date(at).getHours() === hour && new Date(at).getMinutes() === minute
  return [first, ...[first + 30 * 60_000, first + 60 * 60_000].filter(shows)]
}

/** Returns the next moment. Codex omits seconds, so the current minute may still be meant. */
function nextOf(moments: readonly number[], now: number): number | null {
  const next = moments.find(at => at + 60_000 > now)
  if (next === undefined) return null
  return next > now ? next : next + 60_000
}
