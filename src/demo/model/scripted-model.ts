import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Clock, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import {
  Conversations,
  type JsonObject,
  type ModelRequest,
  type Reply,
  type ReplyHeaders,
  readModelRequest,
  reply,
  type Script,
  type UsageWindows,
  usageHeaders,
} from './reply.ts'
import { isSentBack, sendReply } from './send-reply.ts'

/** A server on loopback that speaks the Responses API and answers codex from a script. End it by disposing of it. */
export interface ScriptedModel extends AsyncDisposable {
  /** The `base_url` for codex, ending in `/v1`. */
  readonly url: string
  /** The requests of codex in their order, at most the last `keptRequests`. */
  readonly requests: readonly ModelRequest[]
  /** The headers of each `GET …/models`, in their order, as many as of the others. */
  readonly modelsAsked: readonly Readonly<Record<string, string>>[]
  /** Text of a `config.toml` that points codex here; `provider` adds settings of its provider, such as retries. */
  codexConfig(model: string, provider?: Readonly<Record<string, string | number | boolean>>): string
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
  const { script, account, models, functionsOnly, clock = systemClock, keptRequests = 200 } = options
  const conversations = new Conversations()
  const requests: ModelRequest[] = []
  const modelsAsked: Record<string, string>[] = []
  const closing = new AbortController()

  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const hungUp = new AbortController()
    response.once('close', () => response.writableEnded || hungUp.abort())
    const body = await text(incoming)
    const used = incoming.url === `${BACKEND}/wham/usage` ? (account?.() ?? null) : null
    if (used) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(usageAnswer(used, clock.now())))
      return
    }
    if (models && incoming.method === 'GET' && incoming.url?.endsWith('/models')) {
      keep(modelsAsked, singleHeaders(incoming), keptRequests)
      const data = models.map(id => ({ id, object: 'model' }))
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }))
      return
    }
    if (incoming.method !== 'POST' || !incoming.url?.endsWith('/responses')) {
      response.writeHead(404).end()
      return
    }
    const request = conversations.place(readModelRequest(singleHeaders(incoming), body))
    keep(requests, request, keptRequests)
    const reply = functionsOnly && offersMoreThanFunctions(request) ? ONLY_FUNCTIONS : await script(request)
    const given = await sendReply(reply, {
      request,
      response,
      clock,
      signal: AbortSignal.any([hungUp.signal, closing.signal]),
    })
    if (request.kind !== 'turn') return
    if (given) conversations.given(request, leavesTraces(reply))
    else conversations.broken(request)
  }

  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0, noDelay: true }, (incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      if (response.destroyed) return
      const body = { error: { message: `scripted model: ${messageOf(error)}` } }
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  await listen(0)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The scripted model has no port.')
  const origin = `http://127.0.0.1:${address.port}`
  const url = `${origin}/v1`
  const top = account ? { chatgpt_base_url: `${origin}${BACKEND}` } : {}

  return {
    url,
    requests,
    modelsAsked,
    codexConfig: (model, provider = {}) => codexConfigText(url, model, provider, top),
    goAway: close,
    comeBack: () => listen(address.port),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await close()
    },
  }
}

function keep<T>(kept: T[], one: T, most: number): void {
  kept.push(one)
  if (kept.length > most) kept.shift()
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

function leavesTraces(reply: Reply): boolean {
  return reply.kind === 'items' && reply.items.some(isSentBack)
}

function singleHeaders(incoming: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
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

type TomlValue = string | number | boolean

/**
 * `config.toml` for a throw-away CODEX_HOME: `model` of the scripted provider at `url`, and nothing that touches the
 * network; `top` are more top-level keys. It starts with top-level keys and ends in the provider's table, so that text
 * may be put before or after it.
 */
function codexConfigText(
  url: string,
  model: string,
  provider: Readonly<Record<string, TomlValue>>,
  top: Readonly<Record<string, TomlValue>> = {},
): string {
  const settings = {
    name: 'Scripted model',
    base_url: url,
    wire_api: 'responses',
    requires_openai_auth: false,
    supports_websockets: false,
    ...provider,
  }
  return [
    ...tomlLines({ model, model_provider: 'scripted', check_for_update_on_startup: false, ...top }),
    '',
    '[features]',
    ...tomlLines({ plugins: false, apps: false, remote_plugin: false }),
    '',
    '[analytics]',
    ...tomlLines({ enabled: false }),
    '',
    '[feedback]',
    ...tomlLines({ enabled: false }),
    '',
    '[model_providers.scripted]',
    ...tomlLines(settings),
    '',
  ].join('\n')
}

/** A JSON string is a TOML basic string. */
function tomlLines(values: Readonly<Record<string, TomlValue>>): string[] {
  return Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
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
