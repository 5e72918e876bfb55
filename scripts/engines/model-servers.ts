import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { functionCall, message, reply, shell, turnsScript } from '../../src/demo/model/reply.ts'
import { startScriptedModel } from '../../src/demo/model/scripted-model.ts'

/** What a scripted model does next: it runs a command, says something, calls a tool of codemachine, or refuses. */
export type Act = { run: string } | { say: string } | { call: string; with: object } | { status: number; body: object }

/** Where it listens: of `127.0.0.1` each box has its own, and this leads to the machine. */
const HOST = '127.0.0.2'

/** A scripted model of another maker, on loopback. */
export interface ModelServer extends AsyncDisposable {
  url: string
  /** How many requests came for a turn. */
  readonly asked: number
}

/** How a maker's model is spoken to. */
export interface Dialect {
  /** Whether a request is one of the turn, and not a side question of the agent. */
  isTurn(path: string, body: Record<string, unknown>): boolean
  /** Answers it with this act. */
  answer(act: Act, response: ServerResponse, path: string, body: Record<string, unknown>): void
  /** Answers any other request. */
  aside(response: ServerResponse, path: string, body: Record<string, unknown>): void
}

/** Starts a model that does one act after another, and says "Done." once they are over. */
export async function startModelServer(dialect: Dialect, acts: readonly Act[]): Promise<ModelServer> {
  let asked = 0
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ''
    const body = JSON.parse((await text(request)) || '{}') as Record<string, unknown>
    if (!dialect.isTurn(path, body)) return dialect.aside(response, path, body)
    const last = acts.at(-1)
    // A fault stays: agents try again.
    const act = acts[asked++] ?? (last !== undefined && 'status' in last ? last : { say: 'Done.' })
    if ('status' in act) return json(response, act.status, act.body)
    dialect.answer(act, response, path, body)
  }
  await new Promise<void>(resolve => server.listen(0, HOST, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${HOST}:${port}`,
    get asked() {
      return asked
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function stream(response: ServerResponse, events: readonly { event?: string; data: object }[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const { event, data } of events)
    response.write(`${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`)
  response.end()
}

/** The name by which an agent was offered something, such as `mcp__codemachine__weigh` for `weigh`. */
function offered(names: readonly string[], wanted: string): string {
  return names.find(name => name === wanted) ?? names.find(name => name.endsWith(wanted)) ?? wanted
}

/** The Messages API of Anthropic, as Claude Code speaks it. */
export const ANTHROPIC: Dialect = {
  isTurn: (path, { tools }) => /\/v1\/messages(?:\?|$)/.test(path) && Array.isArray(tools) && tools.length > 0,
  answer(act, response, _, { model, tools }) {
    const names = (tools as { name: string }[]).map(({ name }) => name)
    const block =
      'say' in act
        ? { type: 'text', text: '' }
        : {
            type: 'tool_use',
            id: `toolu_${Math.random().toString(36).slice(2)}`,
            name: offered(names, 'run' in act ? 'Bash' : 'call' in act ? act.call : ''),
            input: {},
          }
    const input = 'run' in act ? { command: act.run, description: 'A command' } : 'with' in act ? act.with : {}
    const delta =
      'say' in act
        ? { type: 'text_delta', text: act.say }
        : { type: 'input_json_delta', partial_json: JSON.stringify(input) }
    const usage = { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage }
    const events = [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'say' in act ? 'end_turn' : 'tool_use' }, usage },
      { type: 'message_stop' },
    ]
    stream(
      response,
      events.map(data => ({ event: data.type, data })),
    )
  },
  aside(response, path, { model }) {
    if (path.includes('count_tokens')) return json(response, 200, { input_tokens: 100 })
    const usage = { input_tokens: 1, output_tokens: 1 }
    const content = [{ type: 'text', text: '{"title":"A title"}' }]
    if (!/\/v1\/messages/.test(path))
      return json(response, 404, { type: 'error', error: { type: 'not_found_error', message: path } })
    const message = { id: 'msg_2', type: 'message', role: 'assistant', model, stop_reason: null, content: [], usage }
    stream(
      response,
      [
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: content[0]?.text } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
        { type: 'message_stop' },
      ].map(data => ({ event: data.type, data })),
    )
  },
}

/** The API of Google's models, as Gemini CLI speaks it. */
export const GEMINI: Dialect = {
  isTurn: (path, { tools }) => /GenerateContent/i.test(path) && Array.isArray(tools) && tools.length > 0,
  answer(act, response, path, { tools }) {
    const names = (tools as { functionDeclarations?: { name: string }[] }[]).flatMap(({ functionDeclarations = [] }) =>
      functionDeclarations.map(({ name }) => name),
    )
    const part =
      'say' in act
        ? { text: act.say }
        : {
            functionCall: {
              name: offered(names, 'run' in act ? 'run_shell_command' : 'call' in act ? act.call : ''),
              args: 'run' in act ? { command: act.run, description: 'A command' } : 'with' in act ? act.with : {},
            },
          }
    const answer = {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    }
    if (path.includes('stream')) stream(response, [{ data: answer }])
    else json(response, 200, answer)
  },
  aside(response, path) {
    if (path.includes('countTokens')) return json(response, 200, { totalTokens: 100 })
    const part = {
      text: '{"reasoning":"none","next_speaker":"user","complexity_reasoning":"none","complexity_score":1}',
    }
    const answer = {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    }
    if (path.includes('stream')) stream(response, [{ data: answer }])
    else json(response, 200, answer)
  },
}

/** A scripted model as codex speaks to one. It listens at `127.0.0.1`, which an engine reaches that names it. */
export async function startResponsesServer(acts: readonly Act[]): Promise<ModelServer & { codexConfig: string }> {
  let asked = 0
  const model = await startScriptedModel({
    script: turnsScript(() => {
      const last = acts.at(-1)
      const act = acts[asked++] ?? (last !== undefined && 'status' in last ? last : { say: 'Done.' })
      if ('status' in act) return { kind: 'status', ...act }
      if ('say' in act) return reply(message(act.say))
      return reply('run' in act ? shell(act.run) : functionCall(act.call, act.with, 'mcp__codemachine'))
    }),
  })
  return {
    url: model.url,
    codexConfig: model.codexConfig('scripted'),
    get asked() {
      return asked
    },
    [Symbol.asyncDispose]: () => model[Symbol.asyncDispose](),
  }
}
