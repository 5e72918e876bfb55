import { spawn } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'

interface DetachedOptions {
  /** The program and its arguments. */
  command: readonly string[]
  directory: string
  env: NodeJS.ProcessEnv
  /** Content of its stdin; null: none. */
  input: string | null
  /** Absolute path of a new file for its stdout and stderr, for this user only. */
  log: string
  clock: Clock
}

/** Result of the start. `slow`: no message yet, still running. */
type DetachedStart<Message> =
  | { kind: 'told'; message: Message }
  | { kind: 'ended'; exitCode: number | null }
  | { kind: 'failed'; problem: string }
  | { kind: 'slow' }

/**
 * Starts a program in its own session, without a terminal (Windows: without a window), that outlives this process. Waits for
 * its first IPC message, its end, `boundMs`, or `signal`. `exited` resolves with its exit code if this process lives as
 * long; null: a signal ended it.
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

/** Writes a text to a file for stdin, complete before it is read; disposal removes it. */
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
