import { type ChildProcess, spawn } from 'node:child_process'
import { kill } from 'node:process'
import type { Readable } from 'node:stream'
import { messageOf, systemErrorCode } from '../base/errors.ts'

/** How a program ended, and what it said. */
export interface ProcessResult {
  /** Null if it was killed or never ran. */
  exitCode: number | null
  stdout: string
  stderr: string
  /**
   * Null if it came to its own end. Otherwise why it was ended (`timeout`, `output-limit`, or the name of a signal),
   * or why it never ran (`ENOENT`, `EACCES`, …).
   */
  failure: string | null
}

export interface ProcessOptions {
  directory?: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
  /** Of what it says. */
  encoding: 'utf8' | 'latin1'
  /** Bytes for its stdin, which is closed without them. */
  input?: Buffer
  /** The most that it may say on each of its streams, bytes. */
  outputLimit: number
  /** After how long it is killed; never, if left out. */
  timeoutMs?: number
}

/**
 * Runs a program to its end and collects what it says; however it ends is a value. It runs in a process group of its
 * own, so that Ctrl+C in the terminal does not reach it. What it leaves running is not waited for.
 */
export function runProcess(program: string, args: readonly string[], options: ProcessOptions): Promise<ProcessResult> {
  const { directory, env, encoding, input, outputLimit, timeoutMs } = options
  return new Promise(resolve => {
    let child: ChildProcess
    try {
      child = spawn(program, args, {
        cwd: directory,
        env,
        detached: true,
        windowsHide: true,
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      })
    } catch (error) {
      resolve({ exitCode: null, stdout: '', stderr: '', failure: systemErrorCode(error) ?? messageOf(error) })
      return
    }
    let failure: string | null = null
    const end = (cause: string) => {
      failure ??= cause
      killGroup(child)
      // What it started may be out of reach, and hold the pipes.
      closePipes(child)
    }
    const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs, 'timeout')
    const stdout = collect(child.stdout, outputLimit, end)
    const stderr = collect(child.stderr, outputLimit, end)
    child.stdin?.on('error', () => {}).end(input)
    child.once('error', error => {
      failure ??= systemErrorCode(error) ?? error.message
    })
    let grace: NodeJS.Timeout | undefined
    child.once('exit', () => {
      // Where this process was busy meanwhile, what it said last is read between the timer and the immediate.
      grace = setTimeout(() => setImmediate(closePipes, child), PIPE_GRACE_MS)
    })
    child.once('close', (exitCode, signal) => {
      clearTimeout(timer)
      clearTimeout(grace)
      const isOwnEnd = failure === null && signal === null
      resolve({
        exitCode: isOwnEnd ? exitCode : null,
        stdout: Buffer.concat(stdout).toString(encoding),
        stderr: Buffer.concat(stderr).toString(encoding),
        failure: failure ?? signal,
      })
    })
  })
}

/** How long what a program has left running may hold its pipes, ms. */
const PIPE_GRACE_MS = 250

function closePipes({ stdin, stdout, stderr }: ChildProcess): void {
  for (const pipe of [stdin, stdout, stderr]) pipe?.destroy()
}

/** It leads a group of its own, except on Windows. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

function collect(stream: Readable | null, limit: number, end: (cause: string) => void): Buffer[] {
  const chunks: Buffer[] = []
  let size = 0
  stream?.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) end('output-limit')
    else chunks.push(chunk)
  })
  return chunks
}
