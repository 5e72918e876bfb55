import { execFile } from 'node:child_process'
import { close, open, read } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { availableParallelism, loadavg } from 'node:os'
import { kill } from 'node:process'
import { promisify } from 'node:util'
import { systemErrorCode } from '../base/errors.ts'

/** Returns the mean number of tasks per core in the last minute. Always 0 on Windows, which does not report it. */
export function loadOfMachine(): number {
  return (loadavg()[0] ?? 0) / availableParallelism()
}

/** Identifies one process: pids are reused. `startTime` null: not known. */
export interface ProcessIdentity {
  pid: number
  startTime: string | null
}

/**
 * Resolves with a living process's start time, a constant text without spaces. Null: no such process (or a zombie), and
 * always on Windows. Linux: clock ticks since boot; macOS: UTC to the second.
 */
export async function startTimeOf(pid: number, platform: NodeJS.Platform): Promise<string | null> {
  switch (platform) {
    case 'linux':
      return (await readStat(pid))?.startTime ?? null
    case 'win32':
      return null
    default: {
      // Never run on a real macOS yet. `lstart` uses the reader's language and time zone by default.
      return (await lookWithPs(pid))?.startTime ?? null
    }
  }
}

/** Resolves with true if a process with this pid lives; zombies do not count (Windows has none). */
export async function isAlive(pid: number, platform: NodeJS.Platform): Promise<boolean> {
  if (platform === 'linux') return (await readStat(pid)) !== null
  try {
    kill(pid, 0)
  } catch (error) {
    if (systemErrorCode(error) !== 'EPERM') return false
  }
  // Without `ps`, a process that accepts a signal counts as living.
  return platform === 'win32' || (await lookWithPs(pid))?.isZombie !== true
}

/** Resolves with true if exactly this process lives: same pid, and same start time if both are known. */
export async function isStillRunning(process: ProcessIdentity, platform: NodeJS.Platform): Promise<boolean> {
  if (process.startTime === null || platform === 'win32') return isAlive(process.pid, platform)
  return (await startTimeOf(process.pid, platform)) === process.startTime
}

/**
 * Resolves with the pids of a process and its ancestors, without pid 1; on Windows only its own.
 * @param proc mount point of proc(5), on Linux
 */
export async function ancestorsOf(pid: number, platform: NodeJS.Platform, proc = PROC): Promise<Set<number>> {
  const line = new Set([pid])
  const above = (of: number) => parentOf(of, platform, proc)
  for (let next = await above(pid); next > 1 && !line.has(next); next = await above(next)) line.add(next)
  return line
}

/** Resolves with an id of this boot, so that pids from before are not trusted; null on Windows. */
export async function bootId(platform: NodeJS.Platform): Promise<string | null> {
  switch (platform) {
    case 'linux':
      return (await readOfProc('/proc/sys/kernel/random/boot_id'))?.toString('utf8').trim() || null
    case 'win32':
      return null
    default:
      // Not `kern.boottime`, which changes with the clock.
      return textOf('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'])
  }
}

/** Parses a line of `ps -o stat=,lstart=`. Start time: ISO 8601; null for a zombie, which no longer lives. */
export function readPs(line: string): { isZombie: boolean; startTime: string | null } | null {
  const [, state = '', at] = /^\s*(\S+)\s+(.+?)\s*$/.exec(line) ?? []
  if (at === undefined) return null
  const isZombie = state.startsWith('Z')
  const started = Date.parse(`${at} UTC`)
  return { isZombie, startTime: isZombie || Number.isNaN(started) ? null : new Date(started).toISOString() }
}

async function lookWithPs(pid: number): Promise<ReturnType<typeof readPs>> {
  const line = await ps(pid, 'stat=,lstart=')
  return line === null ? null : readPs(line)
}

async function parentOf(pid: number, platform: NodeJS.Platform, proc: string): Promise<number> {
  switch (platform) {
    case 'linux':
      return (await readStat(pid, proc))?.parent ?? 0
    case 'win32':
      return 0
    default:
      return Number(await ps(pid, 'ppid='))
  }
}

/**
 * Returns the named pipe that proves a process's life on Windows, from a unique text; it ends with the process. Pids are
 * reused there, and start times are unknown. Null elsewhere. Never run on a real Windows yet.
 */
export function lifeSign(text: string, platform: NodeJS.Platform): string | null {
  return platform === 'win32' ? `\\\\.\\pipe\\codemachine-${text}` : null
}

/** Listens at a pipe or socket until disposal or the process's end; null: it cannot be opened. Keeps no process alive. */
export async function answerAt(address: string): Promise<AsyncDisposable | null> {
  const server = createServer(socket => socket.destroy())
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.on('error', () => resolve(false)).listen(address, () => resolve(true))
  server.unref()
  if (!(await promise)) return null
  return { [Symbol.asyncDispose]: () => new Promise(closed => void server.close(() => closed())) }
}

/** Resolves with true if a process listens there, even one too busy to answer. */
export async function isAnswered(address: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(address, () => resolve(true))
  socket.setTimeout(ANSWER_MS, () => resolve(true))
  socket.on('error', error => resolve(!NOBODY.has(systemErrorCode(error) ?? '')))
  const answers = await promise
  socket.destroy()
  return answers
}

const ANSWER_MS = 2000
const NOBODY: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED'])

/** Mount point of proc(5). */
const PROC = '/proc'

/** Linux's facts about a process: its parent and its start time, in clock ticks since boot. */
export interface ProcessStat {
  parent: number
  /** The process group. */
  group: number
  session: number
  startTime: string
}

/**
 * Reads fields 3 to 6 and 22 of /proc/<pid>/stat (proc(5)). Null: no such process, or it has ended.
 * @param proc mount point of proc(5)
 */
export async function readStat(pid: number, proc = PROC): Promise<ProcessStat | null> {
  const stat = (await readOfProc(`${proc}/${pid}/stat`))?.toString('latin1') ?? ''
  // The second field is the program's name in brackets, which may contain spaces and brackets.
  const [state, parent, group, session, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const startTime = rest[15]
  if (startTime === undefined || state === 'Z' || state === 'X') return null
  return { parent: Number(parent), group: Number(group), session: Number(session), startTime }
}

const openFile = promisify(open)
const readInto = promisify(read)
const closeFile = promisify(close)

/** Enough for most of these files. */
const ROOM_BYTES = 4096

/**
 * Reads a file of proc(5); null: missing or unreadable. Its size is unknown before. So `readFile` of `node:fs` allocates 64
 * KiB or more each time, which leaves megabytes after a scan of all processes.
 */
export async function readOfProc(path: string): Promise<Buffer | null> {
  try {
    const fd = await openFile(path, 'r')
    try {
      return await readToEnd(fd)
    } finally {
      await closeFile(fd)
    }
  } catch {
    return null
  }
}

/** Each read fills its buffer, so a shorter part is the last. */
async function readToEnd(fd: number): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let room = ROOM_BYTES; ; room *= 4) {
    const part = Buffer.allocUnsafeSlow(room)
    const { bytesRead } = await readInto(fd, part, 0, room, null)
    parts.push(part.subarray(0, bytesRead))
    if (bytesRead < room) return parts.length === 1 ? (parts[0] ?? part) : Buffer.concat(parts)
  }
}

function ps(pid: number, column: string): Promise<string | null> {
  return textOf('/bin/ps', ['-o', column, '-p', String(pid)])
}

function textOf(program: string, args: readonly string[]): Promise<string | null> {
  const options = { env: { LC_ALL: 'C', TZ: 'UTC' }, timeout: 5000 }
  return new Promise(resolve => {
    execFile(program, args, options, (error, stdout) => resolve(error === null ? stdout.trim() || null : null))
  })
}

/**
 * Resolves with the pid namespace (`pid:[4026531836]`); each container has its own. Null: none or unknown, and always
 * outside of Linux.
 */
export async function pidNamespace(platform: NodeJS.Platform): Promise<string | null> {
  return platform === 'linux' ? await readlink('/proc/self/ns/pid').catch(() => null) : null
}
