import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import {
  type AgentContext,
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/**
 * A coding agent that speaks the Agent Client Protocol, as a program: `node acp-agent.ts URL [FAULT]`. It asks the scripted
 * model at URL, runs the commands that this wants, and calls the tools that it was given over MCP. FAULT: how it misbehaves.
 */
const [url = '', fault = ''] = process.argv.slice(2)

type Json = Record<string, unknown>

interface Session {
  id: string
  cwd: string
  tools: Client | null
  input: Json[]
  over: AbortController
}

const sessions = new Map<string, Session>()

if (fault === 'dies at once') process.exit(3)
if (fault === 'says nothing') setInterval(() => {}, 60_000)
else serve()

function serve(): void {
  agent({ name: 'scripted' })
    .onRequest(methods.agent.initialize, () => {
      if (fault === 'dies in initialize') process.exit(4)
      return {
        protocolVersion: fault === 'is newer' ? 99 : PROTOCOL_VERSION,
        agentCapabilities: { mcpCapabilities: { http: fault !== 'takes no tools' } },
        agentInfo: { name: 'scripted', version: '1.0.0' },
      }
    })
    .onRequest(methods.agent.session.new, async ({ params }) => {
      if (fault === 'dies in session/new') process.exit(5)
      if (fault === 'begins no session') return {} as never
      if (fault === 'has no login') throw RequestError.authRequired()
      const [server] = params.mcpServers
      const id = randomUUID()
      sessions.set(id, {
        id,
        cwd: params.cwd,
        tools: server !== undefined && 'url' in server ? await connectTools(server) : null,
        input: [],
        over: new AbortController(),
      })
      return { sessionId: id }
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => {
      if (fault !== 'ignores cancel') sessions.get(params.sessionId)?.over.abort()
    })
    .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
      const session = sessions.get(params.sessionId)
      if (session === undefined) throw RequestError.resourceNotFound(params.sessionId)
      const text = params.prompt.map(block => (block.type === 'text' ? block.text : '')).join('\n')
      session.input.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
      session.over = new AbortController()
      if (fault === 'asks for ever') for (;;) await askPermission(session, client, 'again')
      if (fault === 'reads outside')
        await client.request(methods.client.fs.readTextFile, { sessionId: session.id, path: '/etc/passwd' })
      if (fault === 'sends wrong ids')
        await client.notify(methods.client.session.update, {
          sessionId: 'another',
          update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'not mine' } },
        })
      return await converse(session, client)
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      ),
    )
}

async function connectTools({
  url: at,
  headers,
}: {
  url: string
  headers: { name: string; value: string }[]
}): Promise<Client> {
  const connected = new Client({ name: 'scripted', version: '1.0.0' })
  const requestInit = { headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) }
  await connected.connect(new StreamableHTTPClientTransport(new URL(at), { requestInit }))
  return connected
}

async function converse(session: Session, client: AgentContext) {
  const used = { inputTokens: 0, outputTokens: 0, cachedReadTokens: 0, totalTokens: 0 }
  const offered = session.tools === null ? [] : (await session.tools.listTools()).tools
  const tools = offered.map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    parameters: inputSchema,
  }))
  for (;;) {
    const calls: Json[] = []
    for await (const event of ask(session, tools)) await hear(event, session, client, { calls, used })
    for (const call of calls) {
      const output = await doCall(session, client, call)
      session.input.push({ type: 'function_call_output', call_id: call.call_id, output })
    }
    if (session.over.signal.aborted) return { stopReason: 'cancelled' as const }
    if (calls.length === 0)
      return { stopReason: 'end_turn' as const, ...(fault === 'gives no usage' ? {} : { usage: used }) }
  }
}

async function hear(
  event: Json,
  session: Session,
  client: AgentContext,
  { calls, used }: { calls: Json[]; used: { inputTokens: number; outputTokens: number; totalTokens: number } },
): Promise<void> {
  const { item, response } = event as { item?: Json; response?: Json }
  switch (event.type) {
    case 'response.output_text.delta':
      await client.notify(methods.client.session.update, {
        sessionId: session.id,
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: String(event.delta) } },
      })
      return
    case 'response.failed': {
      const error = response?.error as Json | undefined
      throw new RequestError(-32603, `${error?.code}: ${error?.message}`)
    }
    case 'response.output_item.done':
      session.input.push(item ?? {})
      if (item?.type === 'function_call') calls.push(item)
      return
    case 'response.completed': {
      const usage = (response?.usage ?? {}) as Json
      used.inputTokens += Number(usage.input_tokens)
      used.outputTokens += Number(usage.output_tokens)
      used.totalTokens = used.inputTokens + used.outputTokens
      return
    }
  }
}

async function* ask(session: Session, tools: unknown[]): AsyncGenerator<Json> {
  const body = { model: 'scripted', stream: true, input: session.input, tools }
  const response = await fetch(`${url}/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'thread-id': session.id, 'session-id': session.id },
    body: JSON.stringify(body),
    signal: session.over.signal,
  })
  if (!response.ok) throw refused(response.status, await response.text())
  let isWhole = false
  let rest = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of response.body ?? []) {
      rest += decoder.decode(chunk, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = block.split('\n').find(line => line.startsWith('data: '))
        if (data === undefined) continue
        const event = JSON.parse(data.slice('data: '.length)) as Json
        isWhole ||= event.type === 'response.completed' || event.type === 'response.failed'
        yield event
      }
    }
  } catch (error) {
    if (session.over.signal.aborted) throw error
  }
  if (!isWhole) throw new RequestError(-32603, 'Connection error: the stream ended early')
}

/** As agents word what a provider answers. */
function refused(status: number, text: string): RequestError {
  if (status === 401) return RequestError.authRequired(undefined, text)
  const { error = {} } = JSON.parse(text || '{}') as { error?: Json }
  if (typeof error === 'object' && error?.type === 'usage_limit_reached')
    return new RequestError(-32603, 'You have hit your usage limit.')
  return new RequestError(-32603, `API error ${status}: ${(error as Json).message ?? text}`)
}

async function doCall(session: Session, client: AgentContext, call: Json): Promise<string> {
  const args = JSON.parse(String(call.arguments)) as Json
  const toolCallId = String(call.call_id)
  const tell = (update: Json) =>
    client.notify(methods.client.session.update, { sessionId: session.id, update: { toolCallId, ...update } } as never)
  if (call.name !== 'exec_command') {
    await tell({ sessionUpdate: 'tool_call', title: String(call.name), kind: 'other', status: 'in_progress' })
    const answer = await session.tools?.callTool({ name: String(call.name), arguments: args })
    const [content] = (answer?.content ?? []) as { text?: string }[]
    await tell({ sessionUpdate: 'tool_call_update', status: answer?.isError ? 'failed' : 'completed' })
    return content?.text ?? 'unsupported call'
  }
  const command = String(args.cmd)
  await tell({ sessionUpdate: 'tool_call', title: command, kind: 'execute', status: 'pending', rawInput: { command } })
  if (!(await askPermission(session, client, toolCallId))) return 'The person refused.'
  const child = spawn('/bin/sh', ['-c', command], { cwd: session.cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  session.over.signal.addEventListener('abort', () => child.kill('SIGKILL'), { once: true })
  const [exitCode] = await once(child, 'close')
  const status = exitCode === 0 ? 'completed' : 'failed'
  const content = [{ type: 'content', content: { type: 'text', text: output } }]
  await tell({ sessionUpdate: 'tool_call_update', status, content, rawOutput: { exitCode } })
  return `Process exited with code ${exitCode}\nOutput:\n${output}`
}

async function askPermission(session: Session, client: AgentContext, toolCallId: string): Promise<boolean> {
  const { outcome } = await client.request(methods.client.session.requestPermission, {
    sessionId: session.id,
    toolCall: { toolCallId },
    options: [
      { optionId: 'always', name: 'Always', kind: 'allow_always' },
      { optionId: 'once', name: 'Once', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
  })
  return outcome.outcome === 'selected' && outcome.optionId === 'once'
}
