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

/** How an app-server ended. */
export type AppServerExit =
  | { reason: 'not-started'; error: Error; stderr: string }
  | { reason: 'exited'; code: number; stderr: string }
  | { reason: 'killed'; signal: string; stderr: string }

/**
 * One `codex app-server` process. One owner, who closes it.
 *
 *     running ──close()──▶ stdin closed ──endMs──▶ SIGTERM ──1 s──▶ SIGKILL ──▶ ended
 *        └───────────────────── dies by itself ────────────────────────────────▶ ended
 *
 * `exit` resolves in every case and never rejects.
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
  if (spawned instanceof Error) return neverStarted(spawned)
  const child = spawned
  const tail = new Tail(STDERR_BYTES)
  child.stderr.on('data', (chunk: Buffer) => tail.push(chunk))
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})

  const exit = new Promise<AppServerExit>(resolve => {
    child.once('error', error => {
      if (child.pid === undefined) resolve({ reason: 'not-started', error, stderr: '' })
    })
    child.once('exit', (code, signal) => {
      const end = () => {
        child.stdin.destroy()
        child.stdout.destroy()
        child.stderr.destroy()
        const stderr = tail.text()
        resolve(
          code === null
            ? { reason: 'killed', signal: signal ?? 'unknown', stderr }
            : { reason: 'exited', code, stderr },
        )
      }
      const pipes = new AbortController()
      child.once('close', () => pipes.abort())
      void options.clock.wait(PIPE_GRACE_MS, pipes.signal).then(end)
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
    return await exit
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
function spawnChild({ path, args, directory, env }: AppServerOptions): ChildProcessWithoutNullStreams | Error {
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
    child.once('error', () => {})
    return new Error('spawn EMFILE: too many open files')
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function neverStarted(error: Error): AppServer {
  const exit = Promise.resolve<AppServerExit>({ reason: 'not-started', error, stderr: '' })
  return {
    pid: undefined,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    exit,
    close: () => exit,
    stderr: () => '',
  }
}
