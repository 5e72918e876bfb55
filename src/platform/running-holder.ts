import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { endTree } from './end-processes.ts'
import type { Holder } from './holder.ts'

/** Whether it holds; if not, how it ended, and what it said on its stderr. */
type HolderAnswer = { holds: true } | { holds: false; how: string; said: string }

/**
 *     started ── a line on stdout ──→ holds ── end() ──→ ended
 *        └────── has ended, or never began ──────────────↗
 */
export interface RunningHolder {
  /** Pends while it says nothing; never rejects. */
  answer: Promise<HolderAnswer>
  /** Ends it and what it started; resolves when it has gone, within 2 s. May be called again. */
  end(how: { clock: Clock; platform: NodeJS.Platform }): Promise<void>
}

/** Starts it. It never keeps this process alive. */
export function startHolder(path: string, { args }: Holder, env: NodeJS.ProcessEnv): RunningHolder {
  let child: ChildProcessWithoutNullStreams
  try {
    // In a session of its own: Ctrl+C does not reach it, and nothing that it starts can ask for a password.
    child = spawn(path, args, { cwd: '/', env, detached: true, windowsHide: true })
  } catch (error) {
    return { answer: Promise.resolve(notStarted(error)), end: async () => {} }
  }
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref()
  // Nobody else holds the other end of this pipe: however we end, it reads to the end of it then.
  child.stdin.on('error', () => {}).write('held\n')
  return { answer: answerOf(child), end: how => end(child, how) }
}

const SAID_CHARS = 4096
const END_MS = 1000

function answerOf(child: ChildProcessWithoutNullStreams): Promise<HolderAnswer> {
  return new Promise(resolve => {
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => {
      said = `${said}${chunk.toString('utf8')}`.slice(-SAID_CHARS)
    })
    child.stdout.once('data', () => resolve({ holds: true }))
    child.once('error', error => resolve(notStarted(error)))
    child.once('close', (code, signal) => resolve({ holds: false, how: howItEnded(code, signal), said }))
  })
}

function notStarted(error: unknown): HolderAnswer {
  return { holds: false, how: `could not be started (${systemErrorCode(error) ?? messageOf(error)})`, said: '' }
}

function howItEnded(code: number | null, signal: string | null): string {
  if (signal !== null) return `was ended by ${signal}`
  return code === 0 ? 'ended at once' : `refused (exit code ${code})`
}

async function end(
  child: ChildProcessWithoutNullStreams,
  { clock, platform }: { clock: Clock; platform: NodeJS.Platform },
): Promise<void> {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new AbortController()
    child.once('exit', () => gone.abort())
    await endTree(child.pid, signal, platform)
    await clock.wait(END_MS, gone.signal)
  }
}
