import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { kill } from 'node:process'
import type { Clock } from '../base/clock.ts'
import { systemErrorCode } from '../base/errors.ts'
import { MARK_VARIABLE, parseMark } from './end-processes.ts'

/** What this may take, ms: whoever asks a second time is not to wait. */
const MOST_MS = 1000

/**
 * Kills the app-servers of this process and what they started, without a moment in which anything else of ours could
 * run: for a process that is about to exit without having ended them. Best effort, bounded, never throws.
 *
 * Linux: all that carry our mark, with the process groups that they lead. macOS: our app-servers and all that descends
 * from them, with their groups; not what has already lost its parent. Windows: nothing; codex ends when its pipes do.
 */
export function killMarkedNow(self: number, platform: NodeJS.Platform, clock: Clock): void {
  const deadline = clock.monotonic() + MOST_MS
  try {
    if (platform === 'linux') {
      // Again, until all is gone: for what was started while we looked.
      for (let found = markedBy(self); found.length > 0 && clock.monotonic() < deadline; found = markedBy(self))
        killAll(found)
    } else if (platform !== 'win32') killAll(descendantsOfAppServers(self))
  } catch {
    // We exit all the same; what is left ends with our pipes, or at the next start.
  }
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) for (const target of [-pid, pid]) send(target)
}

function send(target: number): void {
  try {
    kill(target, 'SIGKILL')
  } catch (error) {
    const code = systemErrorCode(error)
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
  }
}

/** Living processes with a mark of this very process. */
function markedBy(self: number): number[] {
  const startTime = startTimeNow(self)
  const found: number[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid <= 1 || pid === self) continue
    const owner = ownerOf(pid)
    if (owner?.pid === self && (owner.startTime === null || owner.startTime === startTime)) found.push(pid)
  }
  return found
}

function ownerOf(pid: number): { pid: number; startTime: string | null } | null {
  const head = `${MARK_VARIABLE}=`
  const entry = readOrNothing(`/proc/${pid}/environ`)
    .split('\0')
    .find(each => each.startsWith(head))
  return entry === undefined ? null : (parseMark(entry.slice(head.length))?.owner ?? null)
}

/** Field 22 of /proc/<pid>/stat (proc(5)); the program's name, in brackets, may hold spaces and brackets itself. */
function startTimeNow(pid: number): string | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

/** A process that has ended, or is another's, reads as nothing. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Children of this process that were started as app-servers, and all that descends from them. */
function descendantsOfAppServers(self: number): number[] {
  const { stdout } = spawnSync('/bin/ps', ['-ww', '-axo', 'pid=,ppid=,command='], {
    encoding: 'utf8',
    timeout: MOST_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
  const lines = stdout.split('\n').flatMap(line => {
    const [, pid, parent, command = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }]
  })
  const found = lines.filter(each => each.parent === self && each.command.endsWith(' app-server')).map(({ pid }) => pid)
  // The list grows while it is gone through.
  for (const pid of found) for (const each of lines) if (each.parent === pid) found.push(each.pid)
  return found
}
