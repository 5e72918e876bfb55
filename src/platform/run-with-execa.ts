import type { Result } from 'execa'
import type { ProcessOptions, ProcessResult } from './run-process.ts'

/** What every program that execa runs is given: the environment that is handed over and no more; its end is a value. */
export const EXECA_OPTIONS = {
  extendEnv: false,
  reject: false,
  stripFinalNewline: false,
  // Signals are handled in the entry point, and nowhere else.
  cleanup: false,
} as const

/**
 * A process group of its own, so that Ctrl+C in the terminal does not reach it; all of it is killed at once. On Windows
 * the process and what descends from it.
 */
export const OWN_GROUP = { killDescendants: true, killSignal: 'SIGKILL', forceKillAfterDelay: false } as const

/**
 * Runs a program that is no part of a round: to its end, collecting its output. The same contract as `runProcess`, which
 * is for what runs between two rounds; this one loads execa when the first program runs.
 */
export async function runWithExeca(
  program: string,
  args: readonly string[],
  { directory, env, encoding, input, outputLimit, timeoutMs }: ProcessOptions,
): Promise<ProcessResult> {
  const { execa } = await import('execa')
  const child = execa(program, args, {
    ...EXECA_OPTIONS,
    ...OWN_GROUP,
    ...(directory === undefined ? {} : { cwd: directory }),
    env,
    // As bytes, for the limit is one of bytes.
    encoding: 'buffer',
    maxBuffer: outputLimit,
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    timeout: timeoutMs ?? 0,
  })
  let grace: NodeJS.Timeout | undefined
  child.nodeChildProcess.once('exit', () => {
    // Execa waits for the pipes, which what the program has left running may hold. Where this process was busy meanwhile,
    // the last output is read between the timer and the immediate.
    grace = setTimeout(() => {
      setImmediate(() => {
        for (const pipe of [child.stdout, child.stderr]) pipe.destroy()
      })
    }, PIPE_GRACE_MS)
  })
  const result = await child
  clearTimeout(grace)
  const failure = failureOf(result)
  return {
    exitCode: failure === null ? (result.exitCode ?? null) : null,
    stdout: Buffer.from(result.stdout).toString(encoding),
    stderr: Buffer.from(result.stderr).toString(encoding),
    failure,
  }
}

/** How long what a program has left running may hold its pipes, ms. */
const PIPE_GRACE_MS = 250

function failureOf(result: Pick<Result, 'timedOut' | 'isMaxBuffer' | 'code' | 'signal'>): string | null {
  if (result.timedOut) return 'timeout'
  if (result.isMaxBuffer) return 'output-limit'
  return result.code ?? result.signal ?? null
}
