import { execFile } from 'node:child_process'
import { readFile as readFileWithCallback } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type ProcessIdentity, startTimeOf } from './processes.ts'

/** A process that was found by its environment. */
export interface MarkedProcess extends ProcessIdentity {
  /** The value of the variable. */
  value: string
  /** Its command line, at most 200 characters, for showing. */
  command: string
}

/**
 * Every living process whose environment, as it was started with, has the variable with a value that matches.
 *
 * Linux: every process that this user may look into. macOS: what `ps -E` shows, which leaves out programs that come
 * with the system; never run on a real one yet. Windows: none, for no process can read another's environment there.
 * A process that has written over its own environment (`setproctitle`) or was started with `env -i` is not found.
 */
export async function findMarked(
  variable: string,
  matches: (value: string) => boolean,
  platform: NodeJS.Platform,
): Promise<MarkedProcess[]> {
  switch (platform) {
    case 'linux':
      return findInProc(variable, matches)
    case 'win32':
      return []
    default:
      return findWithPs(variable, matches, platform)
  }
}

/** The scan is on the way of every round; with the `readFile` of `node:fs/promises` it takes a third longer. */
const readFile = promisify(readFileWithCallback)

/** Reads at a time: more than libuv's four threads, so that none of them waits for the event loop. */
const CONCURRENT_READS = 16

async function findInProc(variable: string, matches: (value: string) => boolean): Promise<MarkedProcess[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const found: MarkedProcess[] = []
  const readNext = async () => {
    for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
      const value = await readVariable(pid, variable)
      if (value === null || !matches(value)) continue
      const startTime = await startTimeOf(pid, 'linux')
      // The pid may have gone to another process in between; then what was read first is not this one's.
      if (startTime === null || (await readVariable(pid, variable)) !== value) continue
      found.push({ pid, startTime, value, command: await readCommand(pid) })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_READS }, readNext))
  return found.sort((a, b) => a.pid - b.pid)
}

/** Null too for a process that has ended or belongs to someone else; a zombie's environment reads as empty. */
async function readVariable(pid: number, variable: string): Promise<string | null> {
  const environment = await readFile(`/proc/${pid}/environ`).catch(() => null)
  if (environment === null) return null
  const head = `${variable}=`
  for (let at = environment.indexOf(head); at >= 0; at = environment.indexOf(head, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue
    const end = environment.indexOf(0, at)
    return environment.toString('utf8', at + head.length, end < 0 ? environment.length : end)
  }
  return null
}

async function readCommand(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return line.replaceAll('\0', ' ').trim().slice(0, 200)
}

async function findWithPs(
  variable: string,
  matches: (value: string) => boolean,
  platform: NodeJS.Platform,
): Promise<MarkedProcess[]> {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-E', '-ww', '-axo', 'pid=,command='], {
    timeout: 5000,
    maxBuffer: 256 * 1024 * 1024,
  })
  const found: MarkedProcess[] = []
  for (const line of stdout.split('\n')) {
    const [, pid, command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? []
    const value = command.split(` ${variable}=`)[1]?.split(' ')[0]
    if (pid === undefined || value === undefined || !matches(value)) continue
    const startTime = await startTimeOf(Number(pid), platform)
    if (startTime !== null) found.push({ pid: Number(pid), startTime, value, command: command.slice(0, 200) })
  }
  return found
}
