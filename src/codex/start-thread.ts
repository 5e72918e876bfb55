import type { ThreadStartParams } from '../../protocol/codex.ts'
import { clipEnd } from '../base/clip.ts'
import type { ModelInUse } from '../session/engine.ts'
import { RequestFailure, type Rpc } from './rpc.ts'
import { commandSettings, policyIn, type ShieldedEnvironment } from './shielded-environment.ts'

/** A thread that was started. `loggedIn` is false only if codex says that a login is needed and there is none. */
export interface StartedThread {
  threadId: string
  loggedIn: boolean
  inUse: ModelInUse
}

export interface StartThreadOptions {
  clientVersion: string
  params: ThreadStartParams
  /** Variables that commands have otherwise than the app-server. */
  forCommands: ShieldedEnvironment['forCommands']
  /** Whether to ask if anybody is logged in; if not, `loggedIn` is true. */
  checkLogin: boolean
  /** Deadline of each request, ms. */
  requestMs: number
}

/** The handshake and `thread/start`, on a connection that has just been opened. Throws a `RequestFailure`. */
export async function startThread(rpc: Rpc, options: StartThreadOptions): Promise<StartedThread> {
  const { clientVersion, checkLogin, requestMs } = options
  await rpc.request('initialize', initializeParams(clientVersion), requestMs)
  rpc.notify('initialized')
  const [thread, loggedIn] = await Promise.all([
    requestThread(rpc, options),
    checkLogin ? isLoggedIn(rpc, requestMs) : true,
  ])
  return { threadId: threadIdOf(thread), loggedIn, inUse: modelInUse(thread) }
}

/** What `initialize` is sent. The granular approval policy is one of the things that codex calls experimental. */
export function initializeParams(clientVersion: string): object {
  return {
    clientInfo: { name: 'codemachine', title: 'codemachine', version: clientVersion },
    capabilities: { experimentalApi: true },
  }
}

async function requestThread(rpc: Rpc, { params, forCommands, requestMs }: StartThreadOptions): Promise<unknown> {
  if (Object.keys(forCommands).length === 0) return await rpc.request('thread/start', params, requestMs)
  const commands = commandSettings(forCommands, await readShellPolicy(rpc, params.cwd, requestMs))
  return await rpc.request('thread/start', { ...params, config: { ...params.config, ...commands } }, requestMs)
}

/** The person's own `shell_environment_policy`; null if codex refuses to say, as it then does to start the thread. Throws a `RequestFailure`. */
export async function readShellPolicy(rpc: Rpc, cwd: ThreadStartParams['cwd'], requestMs: number): Promise<unknown> {
  try {
    return policyIn(await rpc.request('config/read', { cwd }, requestMs))
  } catch (error) {
    if (error instanceof RequestFailure && error.cause === 'answered') return null
    throw error
  }
}

/** Whether a login is there or not needed. Where codex cannot say, the turn will. */
async function isLoggedIn(rpc: Rpc, requestMs: number): Promise<boolean> {
  try {
    const answer = await rpc.request('account/read', {}, requestMs)
    if (typeof answer !== 'object' || answer === null) return true
    return !(Reflect.get(answer, 'requiresOpenaiAuth') === true && Reflect.get(answer, 'account') === null)
  } catch {
    return true
  }
}

function threadIdOf(answer: unknown): string {
  const thread: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'thread') : null
  const id: unknown = typeof thread === 'object' && thread !== null ? Reflect.get(thread, 'id') : null
  if (typeof id !== 'string')
    throw new RequestFailure('thread/start', 'answered', 'codex started a thread without an id.')
  return id
}

/** The most that a name may have; codex takes any text for one. */
const NAME_CHARACTERS = 200

/** Older versions of codex say less of it. */
function modelInUse(answer: unknown): ModelInUse {
  if (typeof answer !== 'object' || answer === null) return {}
  const model: unknown = Reflect.get(answer, 'model')
  const effort: unknown = Reflect.get(answer, 'reasoningEffort')
  return {
    ...(typeof model === 'string' ? { model: clipEnd(model, NAME_CHARACTERS) } : {}),
    ...(typeof effort === 'string' ? { effort: clipEnd(effort, NAME_CHARACTERS) } : {}),
    ...(effort === null ? { effort } : {}),
  }
}
