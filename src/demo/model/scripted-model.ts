import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Clock, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { Conversations, type Reply, readModelRequest, type Script } from './reply.ts'
import { isSentBack, sendReply } from './send-reply.ts'

/** A server on loopback that speaks the Responses API and answers codex from a script. End it by disposing of it. */
interface ScriptedModel extends AsyncDisposable {
  readonly server: Server
  /** The `base_url` for codex, ending in `/v1`. */
  readonly url: string
  /** Text of a `config.toml` that points codex here. */
  codexConfig(model: string): string
}

interface ScriptedModelOptions {
  script: Script
  /** What `GET …/models` lists; left out: 404. */
  models?: readonly string[]
  /** Of the pauses between deltas. */
  clock?: Clock
}

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const { script, models, clock = systemClock } = options
  const conversations = new Conversations()
  const closing = new AbortController()

  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const hungUp = new AbortController()
    response.once('close', () => response.writableEnded || hungUp.abort())
    const body = await text(incoming)
    if (models && incoming.method === 'GET' && incoming.url?.endsWith('/models')) {
      const data = models.map(id => ({ id, object: 'model' }))
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }))
      return
    }
    if (incoming.method !== 'POST' || !incoming.url?.endsWith('/responses')) {
      response.writeHead(404).end()
      return
    }
    const request = conversations.place(readModelRequest(singleHeaders(incoming), body))
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
    server,
    url,
    codexConfig: model => codexConfigText(url, model),
    async [Symbol.asyncDispose]() {
      closing.abort()
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
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
 * `config.toml` for a throw-away CODEX_HOME: `model` of the scripted provider at `url`, and nothing that touches the
 * network. It starts with top-level keys and ends in the provider's table, so that text may be put before or after it.
 */
function codexConfigText(url: string, model: string): string {
  // A JSON string is a TOML basic string.
  return `model = ${JSON.stringify(model)}
model_provider = "scripted"
check_for_update_on_startup = false

[features]
plugins = false
apps = false
remote_plugin = false

[analytics]
enabled = false

[feedback]
enabled = false

[model_providers.scripted]
name = "Scripted model"
base_url = ${JSON.stringify(url)}
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
`
}
