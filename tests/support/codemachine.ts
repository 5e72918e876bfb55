import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Recorded, RecordedOf } from '../../src/core/events/events.ts'
import type { TestPlace } from './place.ts'

/** The built command line. */
export const BIN = fileURLToPath(new URL('../../dist/bin.js', import.meta.url))
const BOUND_MS = 280_000

export interface Ended {
  exitCode: number | null
  signal: string | null
  stdout: string
  stderr: string
  /** What `--json` printed. */
  events: Recorded[]
}

/** A command line that runs. Disposing of it ends it if it still runs. */
export interface Running extends AsyncDisposable {
  /** Resolves with the first `--json` event that matches, one that came before this call too; rejects if it has ended. */
  event<T extends Recorded['type']>(type: T, matches?: (event: RecordedOf<T>) => boolean): Promise<RecordedOf<T>>
  /** Resolves a moment later; rejects if it has ended. For waiting on something that is not an event. */
  alive(): Promise<void>
  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void
  ended: Promise<Ended>
}

/** A running `codemachine`, started as a person starts it. */
export interface RunningCodemachine extends Running {
  pid: number
  process: ChildProcess
}

/** What is said of a command line beside its arguments. */
export interface CommandOptions {
  /** What it reads from stdin. */
  input?: string | Buffer
  /** On top of the place's. */
  env?: Record<string, string>
  /** Where it is typed; the place's work directory if left out. */
  cwd?: string
}

export interface StartOptions extends CommandOptions {
  /** Whether its stdin stays open. */
  holdsInput?: true
  /** Another build than this one. */
  bin?: string
  /** A command with its arguments that starts it; it is started itself if left out. */
  through?: readonly string[]
  /** How long it may take on a busy machine; nearly as long as a test if left out. */
  boundMs?: number
}

const EVENT_MS = 90_000

/** Starts the built command line. */
export function startCodemachine(
  place: TestPlace,
  args: readonly string[],
  options: StartOptions = {},
): RunningCodemachine {
  const { through = [] } = options
  const [program = process.execPath, ...more] = [...through, process.execPath, options.bin ?? BIN, ...args]
  const child = spawn(program, more, {
    cwd: options.cwd ?? place.directory,
    env: { ...place.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.on('error', () => {})
  if (!options.holdsInput) child.stdin.end(options.input ?? '')
  let stdout = ''
  let stderr = ''
  let rest = ''
  const events: Recorded[] = []
  const waiters = new Set<() => void>()
  // Not before its pipes are closed, too: what it has said at last may come after its end.
  let isOver = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('{')) events.push(JSON.parse(line))
    for (const check of waiters) check()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const { boundMs = BOUND_MS } = options
  const ended = new Promise<Ended>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`codemachine ${args.join(' ')} did not end within ${boundMs} ms.\n${stdout}\n${stderr}`))
    }, boundMs)
    child.once('close', (exitCode, signal) => {
      clearTimeout(timer)
      isOver = true
      for (const check of waiters) check()
      resolve({ exitCode, signal, stdout, stderr, events })
    })
  })
  ended.catch(() => {})
  return {
    pid: child.pid ?? 0,
    process: child,
    ended,
    event<T extends Recorded['type']>(type: T, matches: (event: RecordedOf<T>) => boolean = () => true) {
      return new Promise<RecordedOf<T>>((resolve, reject) => {
        const finish = (problem: string | null) => {
          clearTimeout(bound)
          waiters.delete(check)
          if (problem !== null) reject(new Error(`${problem}\n${stdout.slice(-8000)}\n${stderr}`))
        }
        const check = () => {
          const found = events.find(
            (event): event is RecordedOf<T> => event.type === type && matches(event as RecordedOf<T>),
          )
          if (found) {
            finish(null)
            resolve(found)
          } else if (isOver) {
            finish(`codemachine ended without ${type}.`)
          }
        }
        const bound = setTimeout(() => finish(`There was no ${type} within ${EVENT_MS} ms.`), EVENT_MS)
        waiters.add(check)
        check()
      })
    },
    async alive() {
      await delay(20)
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`codemachine has ended.\n${stdout}\n${stderr}`)
    },
    signal: name => void child.kill(name),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended.catch(() => {})
    },
  }
}

/** Runs the command line to its end. */
export async function codemachine(
  place: TestPlace,
  args: readonly string[],
  options: StartOptions = {},
): Promise<Ended> {
  return await startCodemachine(place, args, options).ended
}
