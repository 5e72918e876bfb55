import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Clock, systemClock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { usageAnswer } from './chat-gpt.ts'
import { codexConfigText } from './codex-config.ts'
import { Conversations } from './conversations.ts'
import { type ModelRequest, readModelRequest } from './model-request.ts'
import type { Reply, UsageWindows } from './reply.ts'
import { isTraced } from './reply-events.ts'
import type { Script } from './script.ts'
import { sendReply } from './send-reply.ts'

/** A server on loopback that speaks the Responses API and answers codex from a script. End it by disposing of it. */
export interface ScriptedModel extends AsyncDisposable {
  /** The `base_url` for codex, ending in `/v1`. */
  readonly url: string
  /** The requests of codex in their order, at most the last `keptRequests`. */
  readonly requests: readonly ModelRequest[]
  /** Text of a `config.toml` that points codex here; `provider` adds settings of its provider, such as retries. */
  codexConfig(model: string, provider?: Readonly<Record<string, string | number | boolean>>): string
  /** Stops listening and drops all connections: who connects is refused, until `comeBack`. */
  goAway(): Promise<void>
  /** Listens again, on the same port. */
  comeBack(): Promise<void>
}

export interface ScriptedModelOptions {
  script: Script
  /**
   * What the account that codex is logged in with has used, asked for each time: a stand-in for the ChatGPT backend, for
   * a CODEX_HOME whose `auth.json` is `chatGptLogin`. Left out, or null: it does not say.
   */
  account?: () => UsageWindows | null
  /** Of the pauses between deltas. */
  clock?: Clock
  /** How many requests are kept; one takes about 100 kB. */
  keptRequests?: number
}

/** Path of the stand-in for the ChatGPT backend. */
const BACKEND = '/backend-api'

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const { script, account, clock = systemClock, keptRequests = 200 } = options
  const conversations = new Conversations()
  const requests: ModelRequest[] = []
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
    if (incoming.method !== 'POST' || !incoming.url?.endsWith('/responses')) {
      response.writeHead(404).end()
      return
    }
    const request = conversations.place(readModelRequest(singleHeaders(incoming), body))
    requests.push(request)
    if (requests.length > keptRequests) requests.shift()
    const reply = await script(request)
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
    codexConfig: (model, provider = {}) => codexConfigText(url, model, provider, top),
    goAway: close,
    comeBack: () => listen(address.port),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await close()
    },
  }
}

function leavesTraces(reply: Reply): boolean {
  return reply.kind === 'items' && reply.items.some(isTraced)
}

function singleHeaders(incoming: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
