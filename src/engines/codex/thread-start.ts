import type { JsonValue, ThreadStartParams, TurnStartParams, UserInput } from '../../../protocol/codex.ts'
import { messageOf } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import { clipEnd } from '../../base/text.ts'
import type { ModelInUse, ThreadSpec } from '../../core/engine.ts'
import type { Provider } from '../../core/shapes/provider.ts'
import { endTree } from '../../platform/end-processes.ts'
import {
  type AppServer,
  type AppServerExit,
  type AppServerOptions,
  type CodexOptions,
  describeExit,
  startAppServer,
} from './app-server.ts'
import {
  APPROVAL_POLICY,
  type CommandConfig,
  commandConfigIn,
  commandSettings,
  NO_CONFIG,
  type SandboxTerms,
  type ShieldedEnvironment,
} from './sandbox.ts'
import { dynamicTools } from './tools.ts'
import { memberOf, openRpc, RequestFailure, type Rpc, type RpcHandlers } from './wire.ts'

/** A started thread. `loggedIn`: false only if codex says that it needs a login and has none. */
interface StartedThread {
  threadId: string
  loggedIn: boolean
  inUse: ModelInUse
}

interface StartThreadOptions extends Pick<CodexOptions, 'requestMs'> {
  params: ThreadStartParams
  /** Variables of commands that differ from the app-server's. */
  forCommands: ShieldedEnvironment['forCommands']
  /** True to check the login; otherwise `loggedIn` is true. */
  checkLogin: boolean
}

/** A connection to an app-server during the handshake. Keeps earlier messages for its taker. */
export interface Connection {
  readonly server: AppServer
  /** Connection, disposed after the end of the app-server. */
  readonly rpc: Rpc
  /** The handshake; rejects with a `RequestFailure`, which may be ignored. */
  readonly hands: Promise<void>
  /** Passes all past and future messages to these handlers. Called once. */
  take(handlers: RpcHandlers): void
}

/** Connects to an app-server that has just been started. Never throws. */
export function connect(
  server: AppServer,
  options: Pick<CodexOptions, 'clock' | 'codemachineVersion' | 'requestMs'>,
): Connection {
  let told: RpcHandlers | null = null
  const taken = Promise.withResolvers<RpcHandlers>()
  const kept: ((handlers: RpcHandlers) => void)[] = []
  const tell = (what: (handlers: RpcHandlers) => void) => {
    if (told === null) kept.push(what)
    else what(told)
  }
  const rpc = openRpc(server.stdout, server.stdin, options.clock, {
    onNotification: (method, params) => tell(handlers => handlers.onNotification(method, params)),
    onRequest: (method, params) =>
      told === null
        ? taken.promise.then(handlers => handlers.onRequest(method, params))
        : told.onRequest(method, params),
    onLine: (line, message) => tell(handlers => handlers.onLine(line, message)),
    onRubbish: line => tell(handlers => handlers.onRubbish(line)),
  })
  void server.exit.then(() => rpc.dispose())
  const hands = shakeHands(rpc, options)
  hands.catch(() => {})
  return {
    server,
    rpc,
    hands,
    take: handlers => {
      told = handlers
      for (const what of kept.splice(0)) what(handlers)
      taken.resolve(handlers)
    },
  }
}

/** Waits for the handshake and sends `thread/start`. Throws a `RequestFailure`. */
export async function startThread({ rpc, hands }: Connection, options: StartThreadOptions): Promise<StartedThread> {
  const { checkLogin, requestMs } = options
  await hands
  const [thread, loggedIn] = await Promise.all([
    requestThread(rpc, options),
    checkLogin ? isLoggedIn(rpc, requestMs) : true,
  ])
  return { threadId: threadIdOf(thread), loggedIn, inUse: modelInUse(thread) }
}

/** Does the handshake, with codex's experimental API for the granular approval policy. */
export async function shakeHands(
  rpc: Rpc,
  { codemachineVersion, requestMs }: Pick<CodexOptions, 'codemachineVersion' | 'requestMs'>,
): Promise<void> {
  const clientInfo = { name: 'codemachine', title: 'codemachine', version: codemachineVersion }
  await rpc.request('initialize', { clientInfo, capabilities: { experimentalApi: true } }, requestMs)
  rpc.notify('initialized')
}

async function requestThread(rpc: Rpc, { params, forCommands, requestMs }: StartThreadOptions): Promise<unknown> {
  if (Object.keys(forCommands).length === 0) return await rpc.request('thread/start', params, requestMs)
  const ask: AskCodex = (method, asked) => rpc.request(method, asked, requestMs)
  const { policy } = await readCommandConfig(ask, params.cwd)
  const commands = commandSettings(forCommands, policy)
  return await rpc.request('thread/start', { ...params, config: { ...params.config, ...commands } }, requestMs)
}

/** Reads the person's configuration for commands; empty if codex refuses. Throws a `RequestFailure`. */
export async function readCommandConfig(ask: AskCodex, cwd: ThreadStartParams['cwd']): Promise<CommandConfig> {
  try {
    return commandConfigIn(await ask('config/read', { cwd }))
  } catch (error) {
    if (error instanceof RequestFailure && error.cause === 'answered') return NO_CONFIG
    throw error
  }
}

/** True if a login exists or is not needed. If codex cannot say, the turn reports it. */
async function isLoggedIn(rpc: Rpc, requestMs: number): Promise<boolean> {
  try {
    return !needsLogin(await rpc.request('account/read', {}, requestMs))
  } catch {
    return true
  }
}

/** True if an answer to `account/read` means that a needed login is missing. */
export function needsLogin(account: unknown): boolean {
  return memberOf(account, 'requiresOpenaiAuth') === true && memberOf(account, 'account') === null
}

function threadIdOf(answer: unknown): string {
  const id = memberOf(memberOf(answer, 'thread'), 'id')
  if (typeof id !== 'string')
    throw new RequestFailure('thread/start', 'answered', 'codex started a thread without an id.')
  return id
}

/** Longest name, in characters; codex allows any text. */
const NAME_CHARACTERS = 200

/** Returns model and effort in the answer to `thread/start`. */
export function modelInUse(answer: unknown): ModelInUse {
  if (typeof answer !== 'object' || answer === null) return {}
  const model = memberOf(answer, 'model')
  const effort = memberOf(answer, 'reasoningEffort')
  return {
    ...(typeof model === 'string' ? { model: clipEnd(model, NAME_CHARACTERS) } : {}),
    ...(typeof effort === 'string' ? { effort: clipEnd(effort, NAME_CHARACTERS) } : {}),
    ...(effort === null ? { effort } : {}),
  }
}

/**
 * Returns the parameters of `thread/start` for a round in `directory`.
 * @param provider of the model; null: what codex is configured with
 */
export function threadStartParams(
  directory: string,
  thread: ThreadSpec,
  terms: SandboxTerms,
  provider: Provider | null = null,
): ThreadStartParams {
  const { config, ...rights } = terms.thread
  const model = thread.model ?? provider?.model ?? null
  return {
    cwd: directory,
    ...(model === null ? {} : { model }),
    ...(provider === null ? {} : { modelProvider: providerId(provider) }),
    ...rights,
    approvalPolicy: APPROVAL_POLICY,
    ...(thread.ephemeral && { ephemeral: true }),
    developerInstructions: thread.developerInstructions,
    ...(thread.tools === undefined ? {} : { dynamicTools: dynamicTools(thread.tools) }),
    config: {
      ...config,
      ...(thread.effort === null ? {} : { model_reasoning_effort: thread.effort }),
      ...(provider === null ? {} : providerConfig(provider)),
      features: {
        // With a goal, codex starts turns by itself, but a round is one turn.
        goals: false,
        // Other servers accept only functions (docs/inside/codex.md), and codex's own agents are a namespace of tools.
        ...(provider === null && !thread.noShell ? {} : { multi_agent: false }),
        // `apply_patch` remains, and the sandbox refuses it.
        ...(thread.noShell && { shell_tool: false, view_image: false }),
      },
      tools: { update_plan: { enabled: true }, experimental_request_user_input: { enabled: false } },
    },
  }
}

/** Returns codex's name for a provider in a thread: a built-in one, such as `ollama`, cannot be redefined. */
function providerId({ name }: Provider): string {
  return `codemachine-${name}`
}

function providerConfig(provider: Provider): { [key: string]: JsonValue } {
  const { name, baseUrl, keyEnv, contextWindow } = provider
  return {
    model_providers: {
      [providerId(provider)]: {
        name,
        base_url: baseUrl,
        wire_api: 'responses',
        requires_openai_auth: false,
        supports_websockets: false,
        ...(keyEnv === null ? {} : { env_key: keyEnv }),
      },
    },
    web_search: 'disabled',
    ...(contextWindow === null ? {} : { model_context_window: contextWindow }),
  }
}

/** Returns the input of a turn. `images`: absolute paths; codex reads the files itself. */
export function userInput(text: string, images: readonly string[] = []): UserInput[] {
  return [{ type: 'text', text, text_elements: [] }, ...images.map(path => ({ type: 'localImage' as const, path }))]
}

/**
 * Returns the parameters of `turn/start` for the turn of a round.
 * @param outputSchema JSON Schema of the last message of the turn; left out: any text
 */
export function turnStartParams(
  threadId: string,
  input: UserInput[],
  terms: SandboxTerms,
  outputSchema?: object,
): TurnStartParams {
  return {
    threadId,
    input,
    approvalPolicy: APPROVAL_POLICY,
    ...terms.turn,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonValue }),
  }
}

/** The codex to ask. `directory`: not writable for agents. */
export interface AskOptions extends Pick<AppServerOptions, 'path' | 'args' | 'env' | 'directory' | 'clock'> {
  platform: NodeJS.Platform
  /** Deadline of all answers on the monotonic clock, ms; undefined: in 10 s. */
  deadline?: number
  /** Longest time of the handshake, ms; undefined: until the deadline. */
  handshakeMs?: number
  onNotification?(method: string, params: unknown): void
}

/** Sends one request; throws a `RequestFailure`. */
export type AskCodex = (method: string, params: object) => Promise<unknown>

/** The result of requests: an answer, or why there is none; `exit`: the end of the process, if that is the reason. */
export type AskedCodex<T> = { answer: T } | { why: string; exit?: AppServerExit }

/**
 * Starts an app-server for these requests only. Resolves by the deadline with the result of `converse` or the reason for
 * none. Its process has ended by then; `signal` ends it at once.
 */
export async function askAppServer<T>(
  options: AskOptions,
  signal: AbortSignal,
  converse: (ask: AskCodex) => Promise<T>,
): Promise<AskedCodex<T>> {
  const { clock, platform, deadline = clock.monotonic() + ANSWER_MS, onNotification = () => {} } = options
  const server = startAppServer({
    ...options,
    endMs: END_MS,
    signalTree: async (pid, name) => {
      await endTree(pid, name, platform)
    },
  })
  const rpc = openRpc(server.stdout, server.stdin, clock, {
    onNotification,
    onRequest: () => null,
    onLine: () => {},
    onRubbish: () => {},
  })
  void server.exit.then(() => rpc.dispose())
  const leave = () => rpc.dispose()
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  const leftMs = () => Math.max(0, Math.round(deadline - clock.monotonic()))
  try {
    await shakeHands(rpc, { codemachineVersion: version, requestMs: options.handshakeMs ?? leftMs() })
    return { answer: await converse((method, params) => rpc.request(method, params, leftMs())) }
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    if (signal.aborted || error.cause !== 'closed') return { why: messageOf(error) }
    // Its end may not be known yet.
    const exit = await server.close()
    return { why: describeExit(exit), exit }
  } finally {
    signal.removeEventListener('abort', leave)
    rpc.dispose()
    await server.close()
  }
}

const ANSWER_MS = 10_000
const END_MS = 500
