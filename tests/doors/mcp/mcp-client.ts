import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { BIN } from '../../support/codemachine.ts'
import type { TestPlace } from '../../support/place.ts'

/** The two protocols that a client may speak: `initialize` of 2025, and the one of 2026-07-28, in which nothing is negotiated first. */
export const PROTOCOLS = ['2025', '2026-07-28'] as const
type Protocol = (typeof PROTOCOLS)[number]

/** What tools give, each some of it. */
interface Value {
  id: string
  session: string
  directory: string
  pid: number
  happened: string
  seen: number
  words: string | string[]
  message: string
  text: string
  count: number
  savepoints: { id: string }[]
  prompts: { id: string; terms: string }[]
}

/** What a tool answers: what it gives, or in one sentence why not. */
interface Answered {
  value: Value
  problem: string | null
  code: string | null
  hint: string | null
}

/** A client of `codemachine mcp`, which it has started. Disposing of it ends both. */
export interface McpClient extends AsyncDisposable {
  client: Client
  pid: number
  call(name: string, args?: object): Promise<Answered>
  /** Calls `wait_for` until something has happened. */
  until(args: object): Promise<Value>
}

const WAIT_MS = 120_000
/** Each waits 50 s. */
const MOST_CALLS = 3

interface ClientOptions {
  args?: readonly string[]
  protocol?: Protocol
  env?: Record<string, string>
  cwd?: string
}

/** Starts the server in a place, as an MCP client does, and connects to it. */
export async function openClient(place: TestPlace, options: ClientOptions = {}): Promise<McpClient> {
  const { args = [], protocol = '2025', env = {}, cwd = place.directory } = options
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', ...args],
    env: { ...place.env, ...env },
    cwd,
    stderr: 'inherit',
  })
  const mode = protocol === '2025' ? 'legacy' : { pin: protocol }
  const client = new Client({ name: 'a test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(transport)
  const call = async (name: string, given: object = {}): Promise<Answered> => {
    const result = await client.callTool({ name, arguments: { ...given } }, { timeout: WAIT_MS })
    const [content] = result.content
    const text = JSON.parse(content?.type === 'text' ? content.text : 'null')
    if (result.isError) return { value: {} as Value, problem: text.problem, code: text.code, hint: text.hint }
    return { value: result.structuredContent as unknown as Value, problem: null, code: null, hint: null }
  }
  return {
    client,
    pid: transport.pid ?? 0,
    call,
    async until(given) {
      for (let seen: object = {}, calls = 0; ; calls += 1) {
        const { value, problem } = await call('wait_for', { ...given, ...seen })
        if (problem !== null) throw new Error(problem)
        if (value.happened !== 'nothing') return value
        if (calls > MOST_CALLS) throw new Error(`Nothing has happened: ${JSON.stringify(value)}`)
        seen = { seen: value.seen }
      }
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/** A server that no client has started, and that nothing ends but what a test does to it. */
export interface BareServer {
  process: ChildProcessWithoutNullStreams
  /** Resolves with its exit code and signal. */
  closed: Promise<unknown[]>
}

/** Starts the server, calls a tool, and resolves with the first line that it writes which `isAwaited`. */
export async function callBare(
  { directory, env }: TestPlace,
  call: { name: string; arguments: object; _meta?: object },
  isAwaited: (line: string) => boolean,
): Promise<BareServer> {
  const server = spawn(process.execPath, [BIN, 'mcp'], { cwd: directory, env, stdio: 'pipe' })
  const closed = once(server, 'close', { signal: AbortSignal.timeout(60_000) })
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const ask = (id: number, method: string, params: object) =>
    server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  ask(1, 'initialize', hello)
  ask(2, 'tools/call', call)
  for await (const line of createInterface(server.stdout)) if (isAwaited(line)) break
  return { process: server, closed }
}

/** The lines of codex's config.toml by which it starts the server; codex hands on no variables but those. */
export function serverInConfig({ env, directory }: TestPlace): string {
  const kept = ['HOME', 'XDG_CONFIG_HOME', 'CODEX_HOME', 'CODEMACHINE_HOME', 'CODEMACHINE_TEST_RUN']
  const handed = kept.flatMap(name => (env[name] === undefined ? [] : [`${name} = ${JSON.stringify(env[name])}`]))
  return [
    '[mcp_servers.codemachine]',
    `command = ${JSON.stringify(process.execPath)}`,
    `args = ${JSON.stringify([BIN, 'mcp', '--dir', directory])}`,
    `env = { ${handed.join(', ')} }`,
    // Else codex begins its turn without the tools if they have not come within a second.
    'required = true',
    'startup_timeout_sec = 60',
    '',
  ].join('\n')
}

/** A line of shell that asks the server for a call, as an agent that types it would. `through` stands before it. */
export function shellCall(name: string, args: object, through = ''): string {
  const ask = (id: number, method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'an agent', version: '1' } }
  const lines = [ask(1, 'initialize', hello), ask(2, 'tools/list', {}), ask(3, 'tools/call', { name, arguments: args })]
  // It reads the answers before it lets go of the server.
  const server = `${through} '${process.execPath}' '${BIN}' mcp`
  return `mkfifo asking && (${server} < asking > answers & exec 3> asking; printf '%s\\n' ${lines.map(line => `'${line}'`).join(' ')} >&3; until grep -q '"id":3' answers; do sleep 0.1; done; exec 3>&-; wait); cat answers; rm asking answers`
}
