import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { version } from '../base/version.ts'
import { endTree } from '../platform/end-processes.ts'
import { startAppServer } from './app-server.ts'
import { describeExit } from './round-outcome.ts'
import { openRpc, RequestFailure } from './rpc.ts'
import { initializeParams } from './start-thread.ts'

export interface AskOptions {
  /** The codex program. */
  path: string
  /** What it is started with before `app-server`. */
  args: readonly string[]
  env: NodeJS.ProcessEnv
  /** Where it is started: nowhere that an agent can write. */
  directory: string
  clock: Clock
  platform: NodeJS.Platform
}

/** Sends one request; throws a `RequestFailure`. */
export type Ask = (method: string, params: object) => Promise<unknown>

/**
 * Starts an app-server that lives for these questions alone, and asks it, in at most 10 s. What `converse` makes of the
 * answers, or why there are none. Its process has ended when this resolves, by `signal` at once.
 */
export async function askAppServer<T>(
  options: AskOptions,
  signal: AbortSignal,
  converse: (ask: Ask) => Promise<T>,
): Promise<{ answer: T } | { why: string }> {
  const { clock, platform } = options
  const server = startAppServer({
    ...options,
    endMs: END_MS,
    signalTree: async (pid, name) => {
      await endTree(pid, name, platform)
    },
  })
  const rpc = openRpc(server.stdout, server.stdin, clock, {
    onNotification: () => {},
    onRequest: () => null,
    onLine: () => {},
    onRubbish: () => {},
  })
  void server.exit.then(() => rpc.dispose())
  const leave = () => rpc.dispose()
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  const deadline = clock.monotonic() + ANSWER_MS
  const ask: Ask = (method, params) =>
    rpc.request(method, params, Math.max(0, Math.round(deadline - clock.monotonic())))
  try {
    await ask('initialize', initializeParams(version))
    rpc.notify('initialized')
    return { answer: await converse(ask) }
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    if (signal.aborted || error.cause === 'deadline') return { why: messageOf(error) }
    if (error.cause === 'answered') {
      if (!UNWRITTEN.test(error.message)) return { why: messageOf(error) }
      // It has ended, and that is not known yet.
      return { why: describeExit(await server.close()) }
    }
    return { why: describeExit(await server.exit) }
  } finally {
    signal.removeEventListener('abort', leave)
    rpc.dispose()
    await server.close()
  }
}

const ANSWER_MS = 10_000
const END_MS = 300
/** What Node says of a pipe that nobody reads any more. */
const UNWRITTEN = /\b(EPIPE|ECONNRESET|EOF|ERR_STREAM_\w+)\b|after end|stream was destroyed/
