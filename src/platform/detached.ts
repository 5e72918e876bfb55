import { spawn } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'

interface DetachedOptions {
  /** The program and its arguments. */
  command: readonly string[]
  directory: string
  env: NodeJS.ProcessEnv
  /** What its stdin has; null: nothing. */
  input: string | null
  /** The new file, for this user only, that its stdout and stderr are appended to; absolute. */
  log: string
  clock: Clock
}

/** How it has begun. `slow`: it has said nothing yet, and goes on. */
type DetachedStart<Message> =
  | { kind: 'told'; message: Message }
  | { kind: 'ended'; exitCode: number | null }
  | { kind: 'failed'; problem: string }
  | { kind: 'slow' }

/**
 * Starts a program in a session of its own, without a terminal (on Windows: without a window), that outlives this process, and waits until it
 * tells something on its IPC channel, ends, `boundMs` is over or `signal` is aborted. `exited` resolves with its exit code, should
 * this process live as long; null if a signal has ended it.
 */
export async function startDetached<Message>(
  { command: [program = '', ...args], directory, env, input, log, clock }: DetachedOptions,
  boundMs: number,
  signal: AbortSignal,
): Promise<{ pid: number | null; start: DetachedStart<Message>; exited: Promise<number | null> }> {
  await using output = await open(log, 'ax', 0o600)
  await using given = input === null ? null : await textAsFile(`${log}.in`, input)
  const child = spawn(program, args, {
    cwd: directory,
    env,
    detached: true,
    windowsHide: true,
    stdio: [given === null ? 'ignore' : given.fd, output.fd, output.fd, 'ipc'],
  })
  const over = new AbortController()
  const { promise, resolve } = Promise.withResolvers<DetachedStart<Message>>()
  child.once('error', error => resolve({ kind: 'failed', problem: messageOf(error) }))
  child.once('message', message => resolve({ kind: 'told', message: message as Message }))
  const exited = new Promise<number | null>(settle => child.once('exit', settle))
  void exited.then(exitCode => resolve({ kind: 'ended', exitCode }))
  void clock.wait(boundMs, AbortSignal.any([signal, over.signal])).then(() => resolve({ kind: 'slow' }))
  const start = await promise
  over.abort()
  if (child.connected) child.disconnect()
  child.unref()
  return { pid: child.pid ?? null, start, exited }
}

/** A text as the file of a stdin: it is gone once it is closed, and is never read in part. */
async function textAsFile(path: string, text: string): Promise<{ fd: number } & AsyncDisposable> {
  await using written = await open(path, 'wx', 0o600)
  await written.writeFile(text)
  const read = await open(path, 'r')
  return {
    fd: read.fd,
    [Symbol.asyncDispose]: async () => {
      await read.close()
      await rm(path, { force: true })
    },
  }
}
