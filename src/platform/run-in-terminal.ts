import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'

/** How a program that had the terminal ended; `error`: why it could not be started. */
export type TerminalEnd = { exitCode: number } | { signal: string } | { error: string }

export interface TerminalProgram {
  directory: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
  /** For its stdin, which is closed behind it. Null: it reads this process's own. */
  input: string | null
  /** Ends it by the signal that is its reason, and kills it if that does not help. */
  signal: AbortSignal
  clock: Clock
}

/**
 * Runs a program to its end with this process's terminal, and in its group, so that Ctrl+C reaches it. Nothing of what
 * it says is seen by us.
 */
export async function runInTerminal(
  program: string,
  args: readonly string[],
  { directory, env, input, signal, clock }: TerminalProgram,
): Promise<TerminalEnd> {
  const { promise, resolve } = Promise.withResolvers<TerminalEnd>()
  let child: ChildProcess
  try {
    child = spawn(program, args, {
      cwd: directory,
      env,
      stdio: [input === null ? 'inherit' : 'pipe', 'inherit', 'inherit'],
    })
  } catch (error) {
    return { error: messageOf(error) }
  }
  const over = new AbortController()
  const end = () => {
    child.kill(asSignal(signal.reason))
    void clock.wait(GRACE_MS, over.signal).then(() => {
      if (!over.signal.aborted) child.kill('SIGKILL')
    })
  }
  child.once('error', error => resolve({ error: error.message }))
  child.once('exit', (code, by) => resolve(code === null ? { signal: by ?? 'a signal' } : { exitCode: code }))
  child.stdin?.on('error', () => {}).end(input)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', end)
    over.abort()
  }
}

const GRACE_MS = 2_000

function asSignal(reason: unknown): NodeJS.Signals {
  return reason === 'SIGINT' || reason === 'SIGHUP' ? reason : 'SIGTERM'
}
