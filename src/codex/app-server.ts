import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import type { Clock } from '../base/clock.ts'
import { Tail } from './tail.ts'

/** The last bytes of stderr that are kept. */
const STDERR_BYTES = 32 * 1024
/** How long pipes may stay open after the process has ended: what it left running can hold them. */
const PIPE_GRACE_MS = 250
/** From SIGTERM to SIGKILL. */
const KILL_GRACE_MS = 1_000
/** From SIGKILL to giving the process up: the kernel may hold one for as long as a disk does not answer. */
export const GIVE_UP_MS = 5_000

/** How an app-server ended. */
export type AppServerExit =
  | { reason: 'not-started'; error: Error; stderr: string }
  | { reason: 'exited'; code: number; stderr: string }
  | { reason: 'killed'; signal: string; stderr: string }
  /** It was killed and lives on, or hangs in the kernel; it is left behind. */
  | { reason: 'not-ended'; stderr: string }

/**
 * One `codex app-server` process. One owner, who closes it.
 *
 *     running ──close()──▶ stdin closed ──endMs──▶ SIGTERM ──1 s──▶ SIGKILL ──5 s──▶ left behind
 *        │                      │                     │                │
 *        └──────────────────────┴──────── dies ───────┴────────────────┴──▶ ended
 *
 * `exit` resolves in every case, when it has ended or is left behind, and never rejects.
 */
export interface AppServer {
  readonly pid: number | undefined
  readonly stdin: Writable
  readonly stdout: Readable
  readonly exit: Promise<AppServerExit>
  /** Ends the process and its group; resolves like `exit`. May be called again. */
  close(): Promise<AppServerExit>
  /** What the process has said on stderr, the last 32 KiB. */
  stderr(): string
}

export interface AppServerOptions {
  /** The native binary. */
  path: string
  /** Arguments before `app-server`. */
  args: readonly string[]
  env: NodeJS.ProcessEnv
  directory: string
  clock: Clock
  /** From closing stdin to SIGTERM, ms. */
  endMs: number
  /** Sends a signal to the process and what is in its group (platform/processes). */
  signalTree: (pid: number, signal: 'SIGTERM' | 'SIGKILL') => void | Promise<void>
}

/** Starts an app-server in a process group of its own, so that Ctrl+C in the terminal does not reach it. Never throws. */
export function startAppServer(options: AppServerOptions): AppServer {
  const spawned = spawnChild(options)
  if (spawned instanceof Promise) return neverStarted(spawned)
  const child = spawned
  const tail = new Tail(STDERR_BYTES)
  child.stderr.on('data', (chunk: Buffer) => tail.push(chunk))
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})

  const { promise: exit, resolve: resolveExit } = Promise.withResolvers<AppServerExit>()
  child.once('error', error => {
    if (child.pid === undefined) resolveExit({ reason: 'not-started', error, stderr: '' })
  })
  child.once('exit', (code, signal) => {
    const pipes = new AbortController()
    child.once('close', () => pipes.abort())
    void options.clock.wait(PIPE_GRACE_MS, pipes.signal).then(() => {
      closePipes()
      const stderr = tail.text()
      resolveExit(
        code === null ? { reason: 'killed', signal: signal ?? 'unknown', stderr } : { reason: 'exited', code, stderr },
      )
    })
  })

  let closing: Promise<AppServerExit> | null = null
  return {
    pid: child.pid,
    stdin: child.stdin,
    stdout: child.stdout,
    exit,
    close: () => {
      closing ??= end()
      return closing
    },
    stderr: () => tail.text(),
  }

  async function end(): Promise<AppServerExit> {
    child.stdin.end()
    child.stdout.resume()
    const { pid } = child
    if (pid === undefined) return await exit
    for (const [graceMs, signal] of [
      [options.endMs, 'SIGTERM'],
      [KILL_GRACE_MS, 'SIGKILL'],
    ] as const) {
      if (await endsWithin(graceMs)) break
      await options.signalTree(pid, signal)
    }
    if (!(await endsWithin(GIVE_UP_MS))) leaveBehind()
    return await exit
  }

  /** What waits for the end waits no longer, this process itself among it. */
  function leaveBehind(): void {
    closePipes()
    child.unref()
    resolveExit({ reason: 'not-ended', stderr: tail.text() })
  }

  function closePipes(): void {
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }

  async function endsWithin(ms: number): Promise<boolean> {
    const ended = new AbortController()
    const done = exit.then(() => {
      ended.abort()
      return true
    })
    return await Promise.race([done, options.clock.wait(ms, ended.signal).then(() => ended.signal.aborted)])
  }
}

/**
 * The child, or why there is none. The system's refusal comes in three ways: thrown (ENOTDIR), as the event of a child
 * without pipes (EMFILE), or as that of one that has them (ENOENT); the last is left to the caller.
 */
function spawnChild({ path, args, directory, env }: AppServerOptions): ChildProcessWithoutNullStreams | Promise<Error> {
  try {
    const child = spawn(path, [...args, 'app-server'], {
      cwd: directory,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      windowsHide: true,
    })
    const { stderr }: { stderr: Readable | undefined } = child
    if (stderr !== undefined) return child
    return new Promise(resolve => child.once('error', resolve))
  } catch (error) {
    return Promise.resolve(error instanceof Error ? error : new Error(String(error)))
  }
}

function neverStarted(refusal: Promise<Error>): AppServer {
  const exit = refusal.then<AppServerExit>(error => ({ reason: 'not-started', error, stderr: '' }))
  return {
    pid: undefined,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    exit,
    close: () => exit,
    stderr: () => '',
  }
}
