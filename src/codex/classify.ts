import type { RoundClass, RoundOutcome } from '../session/outcome.ts'

/** The parts of codex's `TurnError` that tell what kind of failure it is. */
export interface CodexError {
  message: string
  codexErrorInfo?: unknown
  additionalDetails?: string | null
}

/** `codexErrorInfo` values that say it by themselves (docs/codex.md, "Faults"). */
const BY_NAME: Readonly<Record<string, RoundClass>> = {
  contextWindowExceeded: 'context-full',
  sessionBudgetExceeded: 'quota',
  rateLimitExceeded: 'throttle',
  serverOverloaded: 'throttle',
  flexUnavailable: 'throttle',
  policyCapacityUnavailable: 'throttle',
  internalServerError: 'throttle',
  responseTooManyFailedAttempts: 'throttle',
  modelNotFound: 'config',
  badRequest: 'refused',
  cyberPolicy: 'refused',
  misalignmentPolicyViolation: 'refused',
  inferenceHookDenied: 'refused',
  tooManyDenials: 'refused',
  unauthorized: 'auth',
  sandboxError: 'config',
  responseStreamConnectionFailed: 'network',
  responseStreamDisconnected: 'network',
}

/** HTTP statuses that no waiting mends. */
const BY_STATUS: Readonly<Record<number, RoundClass>> = { 401: 'auth', 402: 'quota', 403: 'auth', 404: 'config' }

/** The class of a failed turn. What is not known counts as a passing failure of the network. */
export function classifyTurnError(error: CodexError): RoundOutcome {
  return { class: classOf(error), message: error.message }
}

function classOf(error: CodexError): RoundClass {
  const { name, status } = readInfo(error.codexErrorInfo)
  if (name === 'usageLimitExceeded') return /try again at|usage limit/i.test(error.message) ? 'window' : 'quota'
  if (name === 'httpConnectionFailed') return (status !== null && BY_STATUS[status]) || 'network'
  if (name === 'other') return error.message.startsWith('stream disconnected') ? 'network' : 'refused'
  return BY_NAME[name] ?? 'network'
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

/** The class of an error that `thread/start` or `initialize` was answered with. */
export function classifyStartError(message: string): RoundOutcome {
  const isConfig = /failed to load configuration|config|model_provider|mcp servers? failed/i.test(message)
  return { class: isConfig ? 'config' : 'crashed', message }
}
