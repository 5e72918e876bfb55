import type { RoundClass, RoundOutcome } from '../session/outcome.ts'

/** The parts of codex's `TurnError` that tell what kind of failure it is. */
export interface CodexError {
  message: string
  codexErrorInfo?: unknown
  additionalDetails?: string | null
}

/** The class of a failed turn. What is not known counts as a passing failure of the network. */
export function classifyTurnError({ message, codexErrorInfo }: CodexError): RoundOutcome {
  const { name, status } = readInfo(codexErrorInfo)
  const said = { name, status: status ?? statusIn(message), message: message.replace(ADDRESS, '') }
  return { class: TURN_ERRORS.find(row => applies(row, said))?.class ?? 'network', message }
}

/** The class of an error that `initialize`, `thread/start` or `turn/start` was answered with. */
export function classifyStartError(message: string): RoundOutcome {
  return { class: START_ERRORS.find(({ says }) => says.test(message))?.class ?? 'crashed', message }
}

/** The address that was asked says nothing of what went wrong, whatever words are in it. */
const ADDRESS = /, url: \S*/

/** A row holds if all that it names does. */
interface Row {
  /** Names of `codexErrorInfo`. */
  info?: readonly string[]
  /** HTTP statuses. */
  status?: readonly number[]
  says?: RegExp
  class: RoundClass
}

/** The first row that holds decides. The faults were made with the real codex (docs/codex.md, "Faults"). */
const TURN_ERRORS: readonly Row[] = [
  // One name for two things: a window that passes, and an account that somebody has to pay for. A text about a window
  // may offer credits and other plans too; a time to try again is what tells it for certain.
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

  // Transient breaks of the stream and permanent refusals share a name.
  { info: ['other'], says: /reason: content_filter/i, class: 'refused' },
  // A fresh round, told to take smaller steps, is the cure for an answer that became too long too.
  { info: ['other'], says: /reason: max_output_tokens/i, class: 'context-full' },
  { info: ['other'], says: /error sending request|connection (?:refused|reset|closed)|dns error/i, class: 'network' },
  { info: ['other'], says: /\bmodel\b.{0,200}\bis not (?:supported|available)/i, class: 'config' },
  { info: ['other'], says: /^stream disconnected before completion:/i, class: 'network' },
  { info: ['other'], says: /auth refresh request timed out/i, class: 'auth' },
  { info: ['other'], class: 'refused' },

  { status: [400, 422], class: 'refused' },
  { status: [401], class: 'auth' },
  // A proxy or a site's guard may answer one 403 in the night; the provider's own is about who asks.
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
  // What was to be sent is too large: a fresh thread sends less.
  { status: [413], class: 'context-full' },
  { status: [429, 500, 529], class: 'throttle' },
  { status: [503], says: /overloaded|at capacity/i, class: 'throttle' },
  { info: ['responseTooManyFailedAttempts'], class: 'throttle' },
]

const START_ERRORS = [
  { says: /failed to load configuration/i, class: 'config' },
  // One that did not come up in time may the next time; one that never does crashes again and again.
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

/** `"name"` or `{ "name": { "httpStatusCode": n } }`. */
function readInfo(info: unknown): { name: string; status: number | null } {
  if (typeof info === 'string') return { name: info, status: null }
  if (typeof info !== 'object' || info === null) return { name: 'unknown', status: null }
  const [entry] = Object.entries(info)
  if (!entry) return { name: 'unknown', status: null }
  const [name, detail] = entry
  const status: unknown = typeof detail === 'object' && detail !== null ? Reflect.get(detail, 'httpStatusCode') : null
  return { name, status: typeof status === 'number' ? status : null }
}

/** Where `codexErrorInfo` has no status, the message may begin with it. */
function statusIn(message: string): number | null {
  const [, status] = /^unexpected status (\d{3})\b/.exec(message) ?? []
  return status === undefined ? null : Number(status)
}
