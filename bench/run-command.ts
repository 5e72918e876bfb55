import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The built command line. */
export const BIN = fileURLToPath(new URL('../dist/bin.js', import.meta.url))

/** How a command ended. */
export interface CommandResult {
  exitCode: number | null
  stdout: string
  stderr: string
  /** From before it was started until its pipes were closed, ms. */
  wallMs: number
}

export interface CommandOptions {
  cwd?: string
  env?: Record<string, string>
  /** Called with the pid as soon as it runs. */
  onStart?: (pid: number) => void
  /** Called with each part of stdout as soon as it is there. */
  onStdout?: (text: string) => void
  /** Ends it. */
  signal?: AbortSignal
}

/** No command of a benchmark takes this long, ms. */
const BOUND_MS = 600_000

/** Runs a command to its end with stdin closed, however it ends. */
export async function runAnyhow(
  program: string,
  args: readonly string[],
  { cwd, env, onStart, onStdout, signal }: CommandOptions = {},
): Promise<CommandResult> {
  const startedAt = performance.now()
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: BOUND_MS,
    killSignal: 'SIGKILL',
  })
  if (child.pid !== undefined) onStart?.(child.pid)
  const end = () => child.kill('SIGKILL')
  signal?.addEventListener('abort', end)
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text
      if (name === 'stdout') onStdout?.(text)
    })
  }
  await once(child, 'close')
  signal?.removeEventListener('abort', end)
  return { ...texts, exitCode: child.exitCode, wallMs: performance.now() - startedAt }
}

/** The same. Throws if it does not end with `expected`. */
export async function runCommand(
  program: string,
  args: readonly string[],
  expected: number,
  options: CommandOptions = {},
): Promise<CommandResult> {
  const result = await runAnyhow(program, args, options)
  if (result.exitCode !== expected) {
    throw new Error(
      `${program} ${args.join(' ')} ended with ${result.exitCode}.\n${result.stdout.slice(-500)}\n${result.stderr.slice(-500)}`,
    )
  }
  return result
}

/**
 * Runs the built command line in a place (tests/support/place.ts) with the interpreter that runs this. A session of
 * which all rounds are alike does not end for that.
 */
export async function runCodemachine(
  args: readonly string[],
  expected: number,
  options: CommandOptions,
): Promise<CommandResult> {
  const env = { ...options.env, CODEMACHINE_STALL_ROUNDS: '100000' }
  return await runCommand(process.execPath, [BIN, ...args], expected, { ...options, env })
}
