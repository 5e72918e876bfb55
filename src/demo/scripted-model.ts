import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Clock, systemClock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { codexConfigText } from './codex-config.ts'
import { Conversations } from './conversations.ts'
import { type ModelRequest, readModelRequest } from './model-request.ts'
import type { Reply } from './reply.ts'
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
}

export interface ScriptedModelOptions {
  script: Script
  /** Of the pauses between deltas. */
  clock?: Clock
  /** How many requests are kept; one takes about 100 kB. */
  keptRequests?: number
}

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const { script, clock = systemClock, keptRequests = 200 } = options
  const conversations = new Conversations()
  const requests: ModelRequest[] = []
  const closing = new AbortController()

  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const hungUp = new AbortController()
    response.once('close', () => response.writableEnded || hungUp.abort())
    const body = await text(incoming)
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The scripted model has no port.')
  const url = `http://127.0.0.1:${address.port}/v1`

  return {
    url,
    requests,
    codexConfig: (model, provider = {}) => codexConfigText(url, model, provider),
    async [Symbol.asyncDispose]() {
      closing.abort()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
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
