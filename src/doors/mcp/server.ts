import type { Readable, Writable } from 'node:stream'
import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { Interrupted, messageOf, UserError, withCode } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import { insideRound } from '../../project/agent-door/inside-round.ts'
import { Verifications } from '../../project/proof/verifications.ts'
import type { StartingWorld } from '../../project/start/detached.ts'
import { redactorOfEnvironment, type World } from '../../project/world.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { ClientLines } from './client-lines.ts'
import { type FleetShown, NamedPlaces } from './places.ts'
import { listResources, listTemplates, readResource } from './resources.ts'
import { type Call, type Desk, describeTool, type Tool } from './tool.ts'
import { lookTools } from './tools/look.ts'
import { proofTools, writeTools } from './tools/proof.ts'
import { readTools } from './tools/read.ts'
import { startTools } from './tools/start.ts'
import { tellTools } from './tools/tell.ts'

interface McpOptions {
  world: World & StartingWorld
  /** The directories that may be used; absolute or relative to that in which it was started. */
  dirs: readonly string[]
  /** Whether the files of the person may be changed: `rewind` and `land`. */
  allowsWrite: boolean
  /** Whether the copies of the fleet's sessions count as named. */
  fleet: FleetShown
  stdin: Readable
  stdout: Writable
  /** Told a sentence of what goes wrong and nobody has asked about. */
  onProblem(problem: string): void
}

const INSTRUCTIONS =
  'codemachine works on a goal for hours, round after round, and proves the result. Begin with start_session, which answers at once. Follow the session with wait_for. Then read report, or run verify. The server works only in the directories that it was given.'

/** How long what was asked is answered once stdin has ended, ms; what takes longer is broken off. */
const ANSWERS_MS = 5_000
/** How long the answer to what was broken off may take, ms. */
const LAST_ANSWERS_MS = 1_000

/**
 * Serves other agents over MCP, in every version of it, on these streams: until the world's signal aborts or stdin ends. What
 * was asked is answered, and what a call had begun has ended then; sessions go on.
 */
export async function serveMcp(options: McpOptions): Promise<void> {
  const { world, dirs, allowsWrite, fleet, stdin, stdout, onProblem } = options
  const over = new AbortController()
  const signal = AbortSignal.any([world.signal, over.signal])
  const places = await NamedPlaces.open(world, dirs, { fleet })
  const running = new Set<Promise<unknown>>()
  await using verifications = new Verifications(world)
  const tools = [
    ...startTools,
    ...lookTools,
    ...tellTools,
    ...readTools,
    ...proofTools,
    ...(allowsWrite ? writeTools : []),
  ]
  const desk: Desk = { world, places, verifications }
  const closed = Promise.withResolvers<void>()
  const inputOver = Promise.withResolvers<void>()
  const transport = new ClientLines(stdin, stdout)
  const served = serveStdio(
    () => {
      const server = serverOf(desk, { tools, signal, running })
      server.onerror = error => onProblem(messageOf(error))
      server.onclose = () => closed.resolve()
      return server
    },
    { transport, onerror: error => onProblem(messageOf(error)) },
  )
  for (const end of ['end', 'close'] as const) stdin.once(end, () => inputOver.resolve())
  void inputOver.promise.then(() => transport.answered(world.clock, ANSWERS_MS, signal)).then(closed.resolve)
  world.signal.addEventListener('abort', () => closed.resolve(), { once: true })
  if (world.signal.aborted) closed.resolve()
  await closed.promise
  over.abort()
  await Promise.allSettled(running)
  await transport.answered(world.clock, LAST_ANSWERS_MS, new AbortController().signal)
  await served.close()
  // What still listens to it would keep the process.
  stdin.destroy()
}

interface Serving {
  tools: readonly Tool[]
  /** Ends what is asked. */
  signal: AbortSignal
  /** What goes on. */
  running: Set<Promise<unknown>>
}

function serverOf(desk: Desk, { tools, signal, running }: Serving): Server {
  const server = new Server(
    { name: 'codemachine', version },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS },
  )
  const described = tools.map(describeTool)
  const during = async <T>(action: Promise<T>): Promise<T> => {
    running.add(action)
    try {
      return await action
    } finally {
      running.delete(action)
    }
  }
  // An agent inside a round pays for what is listed with its context, and may call none of it.
  server.setRequestHandler('tools/list', async () => ({
    tools: (await insideRound(desk.world)) === null ? described : [],
  }))
  server.setRequestHandler('tools/call', (request, context) => {
    const { name, arguments: given } = request.params
    return during(callTool({ desk, tools, signal }, name, given, context))
  })
  const fromOutside = async <T extends object>(read: () => Promise<T>): Promise<T> => {
    try {
      const inside = await insideRound(desk.world)
      if (inside !== null) throw new UserError('CM0813', inside.sentence)
      return await during(read())
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, inOneText(error, redactorOfEnvironment(desk.world)))
    }
  }
  server.setRequestHandler('resources/list', () => fromOutside(() => listResources(desk)))
  server.setRequestHandler('resources/templates/list', async () => listTemplates())
  server.setRequestHandler('resources/read', request => fromOutside(() => readResource(desk, request.params.uri)))
  return server
}

/** A tool's answer, or why there is none: one sentence, and what to do about it. */
async function callTool(
  { desk, tools, signal }: Pick<Serving, 'tools' | 'signal'> & { desk: Desk },
  name: string,
  given: unknown,
  context: ServerContext,
) {
  const redactors: Redactor[] = [redactorOfEnvironment(desk.world)]
  const places = desk.places.watched(records => void redactors.push(desk.places.redactorOf(records)))
  const shown = <T>(value: T): T => redactors.reduce((each, redactor) => redactor.event(each), value)
  const call: Call = {
    ...desk,
    places,
    signal: AbortSignal.any([signal, context.mcpReq.signal]),
    redact: text => redactors.reduce((each, redactor) => redactor.text(each), text),
    progress: progressOf(context, text => shown(text)),
  }
  try {
    const inside = await insideRound(desk.world)
    if (inside !== null) throw new UserError('CM0813', inside.sentence)
    const tool = tools.find(each => each.name === name)
    if (tool === undefined) throw unknownTool(name)
    const structuredContent = shown(await tool.call(given, call)) as Record<string, unknown>
    return { content: [textContent(structuredContent)], structuredContent }
  } catch (error) {
    if (error instanceof Interrupted)
      return failure({ problem: 'The server is shutting down, so this call was cancelled.', hint: null })
    if (!(error instanceof UserError)) throw error
    return failure(shown({ problem: error.message, code: error.code, hint: error.hint }))
  }
}

function unknownTool(name: string): UserError {
  const isWrite = writeTools.some(each => each.name === name)
  const shown = oneLine(name, 100)
  return isWrite
    ? new UserError('CM0810', `${shown} changes files, and this server was started without --allow-write.`, {
        hint: 'A person starts it with codemachine mcp --allow-write.',
      })
    : new UserError('CM0810', `There is no tool ${shown}.`)
}

function failure(why: { problem: string; code?: string; hint: string | null }) {
  return { content: [textContent(why)], isError: true }
}

function textContent(value: object) {
  return { type: 'text' as const, text: JSON.stringify(value) }
}

function inOneText(error: UserError, redactor: Redactor): string {
  return redactor.text(`${withCode(error)} ${error.hint ?? ''}`.trimEnd())
}

/** Tells who has asked to be told that a call goes on. */
function progressOf({ mcpReq }: ServerContext, redact: (text: string) => string): Call['progress'] {
  const progressToken = mcpReq._meta?.progressToken
  let progress = 0
  return text => {
    if (progressToken === undefined) return
    progress += 1
    const params = { progressToken, progress, message: oneLine(redact(text), 300) }
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}
