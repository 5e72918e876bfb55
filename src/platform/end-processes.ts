import { execFile } from 'node:child_process'
import { kill } from 'node:process'
import type { Clock } from '../base/clock.ts'
import { systemErrorCode } from '../base/errors.ts'
import { findMarked, type MarkedProcess } from './find-marked.ts'
import { isStillRunning, lineOf, type ProcessIdentity } from './processes.ts'

/** How marked processes are ended. */
export interface EndOptions {
  clock: Clock
  platform: NodeJS.Platform
  /** The pid of this process: neither it nor a process that it descends from is ever ended. */
  self: number
  /** How long they may take to end by themselves after SIGTERM, ms. */
  graceMs: number
}

/** What became of marked processes. */
export interface Ended {
  ended: MarkedProcess[]
  /** Those that live on: they belong to someone else, or hang in the kernel. */
  left: MarkedProcess[]
}

/**
 * Ends every process that has the variable with a matching value: SIGTERM, a bounded wait, SIGKILL; and looks again
 * for what they started meanwhile, until nothing is left or five times have not been enough.
 */
export async function endMarked(
  variable: string,
  matches: (value: string) => boolean,
  options: EndOptions,
): Promise<Ended> {
  const { platform } = options
  const own = await lineOf(options.self, platform)
  const find = async () => (await findMarked(variable, matches, platform)).filter(({ pid }) => !own.has(pid))
  const seen = new Map<string, MarkedProcess>()

  let left = await find()
  for (let pass = 0; left.length > 0 && pass <= MOST_KILLS; pass++) {
    for (const each of left) {
      seen.set(`${each.pid} ${each.startTime}`, each)
      await endProcess(each, pass === 0 ? 'SIGTERM' : 'SIGKILL', platform)
    }
    await waitUntilGone(left, pass === 0 ? options.graceMs : KILL_MS, options)
    left = await find()
  }
  for (const each of left) seen.delete(`${each.pid} ${each.startTime}`)
  return { ended: [...seen.values()], left }
}

/** Sends the signal if this very process still lives (its pid may be another's by now); false if it was not sent. */
export async function endProcess(
  process: ProcessIdentity,
  signal: NodeJS.Signals,
  platform: NodeJS.Platform,
): Promise<boolean> {
  return (await isStillRunning(process, platform)) && send(process.pid, signal)
}

/**
 * Ends the process group that this pid leads (a process that was spawned `detached`); on Windows the process and all
 * that descend from it, whatever the signal. Resolves when it was sent; false if there was nothing to send it to.
 */
export async function endTree(pid: number, signal: NodeJS.Signals, platform: NodeJS.Platform): Promise<boolean> {
  // 0, -1 and 1 would mean our own group, every process of this user, and every process too.
  if (!Number.isInteger(pid) || pid <= 1) throw new RangeError(`No process group has the pid ${pid}.`)
  if (platform !== 'win32') return send(-pid, signal)
  return new Promise(resolve => {
    execFile('taskkill', ['/PID', String(pid), '/T', '/F'], { timeout: 5000 }, error => resolve(error === null))
  })
}

const MOST_KILLS = 5
/** How long the kernel may take to take a killed process away, ms. */
const KILL_MS = 1000
const POLL_MS = 10

async function waitUntilGone(processes: readonly ProcessIdentity[], ms: number, options: EndOptions): Promise<void> {
  const deadline = options.clock.monotonic() + ms
  for (const each of processes)
    while (options.clock.monotonic() < deadline && (await isStillRunning(each, options.platform)))
      await options.clock.wait(POLL_MS)
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return kill(pid, signal)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ESRCH' || code === 'EPERM') return false
    throw error
  }
}
