import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { endTree } from './end-processes.ts'
import type { WritableByAgents } from './files.ts'
import { findProgram, withSearchPathOutside } from './run-process.ts'

export interface KeepAwakeOptions {
  platform: NodeJS.Platform
  env: Readonly<NodeJS.ProcessEnv>
  /** The pid of this process; the machine may sleep again when it ends. */
  pid: number
  clock: Clock
  /** Folders whose programs are not used: an agent may have put them there. */
  where: WritableByAgents
  /** Aborts the wait for the program's answer. */
  signal?: AbortSignal
}

/** Keeps the machine awake until it is disposed of. */
export interface KeptAwake extends AsyncDisposable {
  /** The program's name; null: none. */
  by: string | null
  /** Why no program does, a sentence; null: one does. */
  problem: string | null
}

/**
 * Stops automatic sleep of the machine, with a system program that lives as long as this process. Resolves within 15 s, once
 * the result is known; never rejects.
 */
export async function keepAwake(options: KeepAwakeOptions): Promise<KeptAwake> {
  const program = awakeProgramOn(options.platform, options.pid)
  if (program === null) return nothing(`codemachine cannot keep a machine awake on ${options.platform}.`)
  const { path, passedOver } = await findProgram(program.name, options)
  if (path === null) return nothing(notFound(program, passedOver))
  const running = startAwakeProgram(path, program, withSearchPathOutside(options.env, options.where, options.platform))
  const problem = await problemOf(running, program, options)
  if (problem !== null) {
    await running.end(options)
    return nothing(problem)
  }
  return { by: program.name, problem: null, [Symbol.asyncDispose]: () => running.end(options) }
}

/** Time for Windows to compile one line of C# on a busy machine, ms. */
const ANSWER_MS = 15_000
/** A program without an answer counts as working if it still runs after this time, ms. */
const SETTLE_MS = 2000
const REASON_CHARS = 200

function nothing(problem: string): KeptAwake {
  return { by: null, problem, [Symbol.asyncDispose]: async () => {} }
}

function notFound({ name }: AwakeProgram, passedOver: readonly string[]): string {
  return passedOver.length === 0
    ? `${name} was not found on the PATH.`
    : `${name} was found only where an agent can write, so codemachine does not use it: ${passedOver.join(', ')}.`
}

/** Resolves with why the machine is not kept awake; null: it is. */
async function problemOf(
  running: RunningAwakeProgram,
  program: AwakeProgram,
  options: KeepAwakeOptions,
): Promise<string | null> {
  const { clock, signal } = options
  const answered = new AbortController()
  const bound = clock.wait(
    program.answers ? ANSWER_MS : SETTLE_MS,
    signal === undefined ? answered.signal : AbortSignal.any([answered.signal, signal]),
  )
  const answer = await Promise.race([running.answer, bound.then(() => null)])
  answered.abort()
  if (answer?.holds) return null
  if (answer !== null) return `${program.name} ${answer.how}${because(answer.stderr)}.`
  if (signal?.aborted) return `codemachine ended before ${program.name} had answered.`
  return program.answers ? `${program.name} did not answer within ${ANSWER_MS / 1000} s, and was ended.` : null
}

/** Returns the last line of stderr, as the end of a sentence. */
function because(stderr: string): string {
  const line = stderr
    .toWellFormed()
    .split('\n')
    .map(each => each.replace(/[\p{Cc}\s]+/gu, ' ').trim())
    .findLast(each => each !== '')
  return line === undefined ? '' : `: ${line.slice(0, REASON_CHARS).replace(/[.\uD800-\uDBFF]+$/, '')}`
}

/** A program that keeps the machine awake while it runs. */
interface AwakeProgram {
  /** Name to find on the PATH. */
  name: string
  args: readonly string[]
  /**
   * True: it writes a line to stdout once the machine is kept awake. (It gets a line on stdin, which stays open until this
   * process ends.) Others count as working if they do not end soon.
   */
  answers: boolean
}

/** Returns the program of a platform; null: none known. It ends with the process `pid`. */
function awakeProgramOn(platform: NodeJS.Platform, pid: number): AwakeProgram | null {
  switch (platform) {
    case 'linux':
      // `cat` starts once the lock is taken, echoes the line, and ends with its stdin.
      return { name: 'systemd-inhibit', args: [...INHIBIT, 'cat'], answers: true }
    case 'darwin':
      return { name: 'caffeinate', args: ['-i', '-w', String(pid)], answers: false }
    case 'win32':
      return { name: 'powershell.exe', args: [...POWERSHELL, AWAKE], answers: true }
    default:
      return null
  }
}

const INHIBIT = ['--what=sleep:idle', '--who=codemachine', '--why=A session is running', '--mode=block']

const POWERSHELL = ['-NoProfile', '-NonInteractive', '-Command']

/** 2147483649: ES_CONTINUOUS | ES_SYSTEM_REQUIRED, valid until the thread ends. Decimal: `0x80000001` is negative there. */
const AWAKE = [
  `$ErrorActionPreference = 'Stop'`,
  `$kernel = Add-Type -PassThru -Namespace Codemachine -Name Kernel -MemberDefinition '[DllImport("kernel32.dll")] public static extern uint SetThreadExecutionState(uint flags);'`,
  `if ($kernel::SetThreadExecutionState([uint32]2147483649) -eq 0) { throw 'SetThreadExecutionState failed' }`,
  `[Console]::Out.WriteLine('held')`,
  `[void][Console]::In.ReadToEnd()`,
].join('; ')

/** True if the program keeps the machine awake; else its end and stderr. */
type AwakeAnswer = { holds: true } | { holds: false; how: string; stderr: string }

/**
 *     started ── a line on stdout ──→ holds ── end() ──→ ended
 *        └────── has ended, or never began ──────────────↗
 */
interface RunningAwakeProgram {
  /** Pending until it answers; never rejects. */
  answer: Promise<AwakeAnswer>
  /** Ends it and its processes; resolves when it is gone, within 2 s. May be called again. */
  end(how: { clock: Clock; platform: NodeJS.Platform }): Promise<void>
}

/** Starts the program. It never keeps this process alive. */
function startAwakeProgram(path: string, { args }: AwakeProgram, env: NodeJS.ProcessEnv): RunningAwakeProgram {
  let child: ChildProcessWithoutNullStreams
  try {
    // Its own session: Ctrl+C does not reach it, and its children cannot ask for a password.
    child = spawn(path, args, { cwd: '/', env, detached: true, windowsHide: true })
  } catch (error) {
    return { answer: Promise.resolve(notStarted(error)), end: async () => {} }
  }
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref()
  // Only we have the other end of this pipe, so it closes however we end.
  child.stdin.on('error', () => {}).write('held\n')
  return { answer: answerOf(child), end: how => end(child, how) }
}

const STDERR_CHARS = 4096
const END_MS = 1000

function answerOf(child: ChildProcessWithoutNullStreams): Promise<AwakeAnswer> {
  return new Promise(resolve => {
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = `${stderr}${chunk.toString('utf8')}`.slice(-STDERR_CHARS)
    })
    child.stdout.once('data', () => resolve({ holds: true }))
    child.once('error', error => resolve(notStarted(error)))
    child.once('close', (code, signal) => resolve({ holds: false, how: howItEnded(code, signal), stderr }))
  })
}

function notStarted(error: unknown): AwakeAnswer {
  return { holds: false, how: `could not be started (${systemErrorCode(error) ?? messageOf(error)})`, stderr: '' }
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
