import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../src/base/clock.ts'
import {
  type JsonObject,
  type ModelRequest,
  type Reply,
  type ReplyHeaders,
  type ReplyItem,
  reply,
  type Script,
  type ScriptStep,
} from '../../src/demo/model/reply.ts'
import { startScriptedModel as startModel } from '../../src/demo/model/scripted-model.ts'

type TomlValue = string | number | boolean

/** The scripted model of the demo, and what a test asks of it beside. */
export interface ScriptedModel extends AsyncDisposable {
  readonly url: string
  /** The requests of codex in their order, at most the last `keptRequests`. */
  readonly requests: readonly ModelRequest[]
  /** The headers of each `GET …/models`, in their order. */
  readonly modelsAsked: readonly IncomingMessage['headers'][]
  /** Text of a `config.toml` that points codex here; `provider` adds settings of its provider, such as retries. */
  codexConfig(model: string, provider?: Readonly<Record<string, TomlValue>>): string
  /** Stops listening and drops all connections: who connects is refused, until `comeBack`. */
  goAway(): Promise<void>
  /** Listens again, on the same port. */
  comeBack(): Promise<void>
}

interface ScriptedModelOptions {
  script: Script
  /**
   * What the account that codex is logged in with has used, asked for each time: a stand-in for the ChatGPT backend,
   * for a CODEX_HOME whose `auth.json` is `chatGptLogin`. Left out, or null: it does not say.
   */
  account?: () => UsageWindows | null
  /** What `GET …/models` lists; left out: 404. */
  models?: readonly string[]
  /** Refuse tools that are no functions with a status 400, as servers of local models do. */
  functionsOnly?: true
  /** Of the pauses between deltas. */
  clock?: Clock
  /** How many requests are kept; one takes about 100 kB. */
  keptRequests?: number
}

/** Path of the stand-in for the ChatGPT backend. */
const BACKEND = '/backend-api'

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const { script, account, functionsOnly, keptRequests = 200, ...more } = options
  const requests: ModelRequest[] = []
  const modelsAsked: IncomingMessage['headers'][] = []
  const model = await startModel({
    ...more,
    script: request => {
      requests.push(request)
      if (requests.length > keptRequests) requests.shift()
      return functionsOnly && offersMoreThanFunctions(request) ? ONLY_FUNCTIONS : script(request)
    },
  })
  const { server, url } = model
  const [own] = server.listeners('request')
  server.removeAllListeners('request').on('request', (incoming: IncomingMessage, response: ServerResponse) => {
    const used = incoming.url === `${BACKEND}/wham/usage` ? (account?.() ?? null) : null
    if (more.models && incoming.url?.endsWith('/models')) modelsAsked.push(incoming.headers)
    if (used === null) own?.(incoming, response)
    else
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(usageAnswer(used, Date.now())))
  })
  const { origin, port } = new URL(url)
  const top = account ? tomlLines({ chatgpt_base_url: `${origin}${BACKEND}` }) : ''
  return {
    url,
    requests,
    modelsAsked,
    codexConfig(name, provider = {}) {
      const isOther = (line: string) => !Object.keys(provider).some(key => line.startsWith(`${key} = `))
      return `${top}${model.codexConfig(name).split('\n').filter(isOther).join('\n')}${tomlLines(provider)}`
    },
    async goAway() {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
    async comeBack() {
      server.listen(Number(port), '127.0.0.1')
      await once(server, 'listening')
    },
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  }
}

/** A JSON string is a TOML basic string. */
function tomlLines(values: Readonly<Record<string, TomlValue>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
    .join('')
}

function offersMoreThanFunctions({ body }: ModelRequest): boolean {
  const { tools } = body
  return Array.isArray(tools) && tools.some(tool => Object(tool).type !== 'function')
}

/** What llama.cpp says. */
const ONLY_FUNCTIONS: Reply = {
  kind: 'status',
  status: 400,
  body: { error: { code: 400, message: "'type' of tool must be 'function'", type: 'invalid_request_error' } },
}

/** What the ChatGPT backend answers to `GET …/wham/usage`. `now`: Unix time, ms. */
function usageAnswer({ primary, secondary }: UsageWindows, now: number): JsonObject {
  const window = (of: UsageWindows['primary']) =>
    of === undefined
      ? null
      : {
          used_percent: of.usedPercent,
          limit_window_seconds: of.windowMinutes * 60,
          reset_after_seconds: Math.max(0, of.resetsAt - Math.floor(now / 1000)),
          reset_at: of.resetsAt,
        }
  const isReached = [primary, secondary].some(each => each !== undefined && each.usedPercent >= 100)
  return {
    plan_type: 'plus',
    rate_limit: {
      allowed: !isReached,
      limit_reached: isReached,
      primary_window: window(primary),
      secondary_window: window(secondary),
    },
    credits: null,
    additional_rate_limits: null,
  }
}

/**
 * Text of an `auth.json` with which codex counts as logged in with ChatGPT. Its tokens are signed by nobody, and are
 * good for a scripted model only.
 *
 * @param now Unix time, ms
 */
export function chatGptLogin(now: number): string {
  const issued = Math.floor(now / 1000)
  const token = [
    { alg: 'none', typ: 'JWT' },
    {
      email: 'person@example.org',
      iat: issued,
      exp: issued + 30 * 24 * 60 * 60,
      'https://api.openai.com/auth': {
        chatgpt_plan_type: 'plus',
        chatgpt_user_id: 'user',
        chatgpt_account_id: 'account',
      },
    },
    'nobody',
  ]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return JSON.stringify({
    auth_mode: 'chatgpt',
    OPENAI_API_KEY: null,
    tokens: { id_token: token, access_token: token, refresh_token: 'none', account_id: 'account' },
    last_refresh: new Date(now).toISOString(),
  })
}

/** What an account has used of its limits. */
export interface UsageWindows {
  primary?: ScriptedWindow
  secondary?: ScriptedWindow
}

interface ScriptedWindow {
  usedPercent: number
  windowMinutes: number
  /** Unix time, s. */
  resetsAt: number
}

/** The response headers in which codex reads the account's usage limits. */
export function usageHeaders(windows: UsageWindows): ReplyHeaders {
  return Object.fromEntries(
    Object.entries(windows).flatMap(([name, window]) => [
      [`x-codex-${name}-used-percent`, String(window.usedPercent)],
      [`x-codex-${name}-window-minutes`, String(window.windowMinutes)],
      [`x-codex-${name}-reset-at`, String(window.resetsAt)],
    ]),
  )
}

/** A web search that the provider has made. */
export function webSearch(query: string): ReplyItem {
  return { kind: 'web-search', query }
}

/** An output item of any shape. */
export function rawItem(item: Readonly<Record<string, unknown>>): ReplyItem {
  return { kind: 'raw', item }
}

/** Sends nothing more until `until` resolves. */
export function hold(until: Promise<unknown>): ReplyItem {
  return { kind: 'hold', until }
}

/** A step that goes through these on codex's retries; the last one stays. */
export function attempts(...steps: readonly [ScriptStep, ...ScriptStep[]]): Script {
  return request => {
    const step = steps[Math.min(request.attempt, steps.length - 1)] ?? steps[0]
    return typeof step === 'function' ? step(request) : step
  }
}

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
