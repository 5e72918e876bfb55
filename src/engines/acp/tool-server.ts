import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import type { HostTool, ToolAnswer, ToolCall } from '../../core/engine.ts'

const TOOL_SERVER = 'codemachine'

/** The served tools of a thread. */
export interface ServedTools extends AsyncDisposable {
  /** Name of the server for the agent. */
  name: string
  /** Address: `http://127.0.0.2:40123/mcp`. */
  url: string
  /** Required value of the header `authorization`. */
  authorization: string
}

interface ToolServerOptions {
  tools: readonly HostTool[]
  version: string
  /** Address on which it listens. */
  host: string
  /** Answers a call; `over` is aborted when nobody waits for the answer any more. */
  answer(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
}

const HEADERS_MS = 10_000

/** Serves a thread's tools over MCP on loopback to clients with the key: agents reach nothing else of this process. */
export async function serveTools({ tools, version, host, answer }: ToolServerOptions): Promise<ServedTools> {
  const authorization = `Bearer ${randomBytes(32).toString('base64url')}`
  const handler = createMcpHandler(() => {
    const server = new Server({ name: TOOL_SERVER, version }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', async () => ({
      tools: tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        inputSchema: { ...inputSchema, type: 'object' as const },
      })),
    }))
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const { name, arguments: given = {} } = params
      const known = tools.some(tool => tool.name === name)
      const { text, success } = known
        ? await answer({ tool: name, arguments: given }, context.mcpReq.signal)
        : { text: `There is no tool "${name}".`, success: false }
      return { content: [{ type: 'text' as const, text }], isError: !success }
    })
    return server
  })
  const fetch = async (request: Request): Promise<Response> => {
    if (new URL(request.url).pathname !== '/mcp') return new Response('Not found.\n', { status: 404 })
    if (!isSame(request.headers.get('authorization') ?? '', authorization))
      return new Response('The key is missing or wrong.\n', { status: 401 })
    return await handler.fetch(request)
  }
  const server = createAdaptorServer({
    fetch,
    createServer,
    serverOptions: { headersTimeout: HEADERS_MS },
  }) as HttpServer
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    name: TOOL_SERVER,
    url: `http://${host}:${port}/mcp`,
    authorization,
    async [Symbol.asyncDispose]() {
      await handler.close()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

function isSame(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)]
  return one.length === other.length && timingSafeEqual(one, other)
}
