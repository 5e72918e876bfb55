import type { CommandExecParams } from '../../protocol/codex.ts'
import { clipEnd } from '../base/clip.ts'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { AppServer } from './app-server.ts'
import { describeExit } from './round-outcome.ts'
import { openRpc, RequestFailure, type Rpc } from './rpc.ts'
import { commandVariables, type ShieldedEnvironment } from './shielded-environment.ts'
import { initializeParams, readShellPolicy } from './start-thread.ts'

export interface CommandOptions {
  /** Program and arguments. */
  command: readonly string[]
  /** Where it runs: also where the app-server was started, for that is what a sandbox leaves writable. */
  directory: string
  sandboxPolicy: NonNullable<CommandExecParams['sandboxPolicy']>
  /** Variables that it has whatever the person's policy says. */
  env: Readonly<Record<string, string>>
  /** Variables that it has otherwise than the app-server. */
  forCommands: ShieldedEnvironment['forCommands']
  clientVersion: string
  clock: Clock
  /** Deadline of a request that is not the command itself, ms. */
  requestMs: number
  /** How long the command may take, ms. */
  timeoutMs: number
  /** Ends it. */
  signal: AbortSignal
  onOutput(bytes: Buffer): void
  log(message: string): void
}

/** How a command ended. `not-started`: codex could not run it, or died while it ran. */
export type RanCommand = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & { durationMs: number }

/**
 * Runs one command in codex's own sandbox, on an app-server that has just been started, and closes that: closing it ends
 * what the command has started, but for what has left its session and is found by the mark. However it ends is a value.
 */
export async function runCommand(server: AppServer, options: CommandOptions): Promise<RanCommand> {
  const { clock, signal, timeoutMs } = options
  const rpc = openRpc(server.stdout, server.stdin, clock, {
    onNotification: (method, params) => {
      if (method === OUTPUT) options.onOutput(bytesIn(params))
    },
    onRequest: () => ({}),
    onLine() {},
    onRubbish: line => options.log(`codex wrote a line that is not a message: ${line.slice(0, 200)}`),
  })
  void server.exit.then(() => rpc.dispose())
  const close = () => void server.close()
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()

  let startedAt: number | null = null
  const spent = () => ({ durationMs: startedAt === null ? 0 : Math.round(clock.monotonic() - startedAt) })
  try {
    const params = await prepare(rpc, options)
    startedAt = clock.monotonic()
    // A time-out of codex's own could not be told from a command that ends with its exit code, 124.
    const exitCode = exitCodeIn(await rpc.request('command/exec', params, Math.min(timeoutMs, LONGEST_WAIT_MS)))
    if (signal.aborted) return { kind: 'broken-off', ...spent() }
    return { kind: 'exited', exitCode, ...spent() }
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    if (signal.aborted) return { kind: 'broken-off', ...spent() }
    if (error.cause === 'deadline' && startedAt !== null) return { kind: 'timed-out', ...spent() }
    return { kind: 'not-started', problem: await problemOf(error, server), ...spent() }
  } finally {
    signal.removeEventListener('abort', close)
    await server.close()
  }
}

const OUTPUT = 'command/exec/outputDelta'
/** The longest that a timer can be set to. */
const LONGEST_WAIT_MS = 2 ** 31 - 1
/** The most of codex's own words that is repeated, in characters. */
const WORDS = 500

async function prepare(rpc: Rpc, options: CommandOptions): Promise<CommandExecParams> {
  const { command, directory, sandboxPolicy, env, forCommands, requestMs } = options
  await rpc.request('initialize', initializeParams(options.clientVersion), requestMs)
  rpc.notify('initialized')
  const policy = Object.keys(forCommands).length === 0 ? null : await readShellPolicy(rpc, directory, requestMs)
  return {
    command: [...command],
    cwd: directory,
    sandboxPolicy,
    env: { ...commandVariables(forCommands, policy), ...env },
    processId: 'command',
    streamStdoutStderr: true,
    // What is over codex's bound is thrown away, and it is the end that tells how it went.
    disableOutputCap: true,
    disableTimeout: true,
  }
}

async function problemOf(error: RequestFailure, server: AppServer): Promise<string> {
  switch (error.cause) {
    case 'answered':
      return clipEnd(`codex did not run it in its sandbox: ${messageOf(error)}`, WORDS)
    case 'deadline':
      return error.message
    case 'closed':
      return clipEnd(describeExit(await server.close()), WORDS)
  }
}

function bytesIn(params: unknown): Buffer {
  const text: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, 'deltaBase64') : null
  return Buffer.from(typeof text === 'string' ? text : '', 'base64')
}

/** Where codex says none, it did not end well. */
function exitCodeIn(answer: unknown): number {
  const code: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'exitCode') : null
  return typeof code === 'number' ? code : -1
}
