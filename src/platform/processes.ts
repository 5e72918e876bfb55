import { execFile } from 'node:child_process'
import { close, open, read } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { availableParallelism, loadavg } from 'node:os'
import { kill } from 'node:process'
import { promisify } from 'node:util'
import { systemErrorCode } from '../base/errors.ts'

/** How many tasks wanted each core of the machine in the last minute, in the mean. Always 0 on Windows, which does not tell. */
export function loadOfMachine(): number {
  return (loadavg()[0] ?? 0) / availableParallelism()
}

/** Identifies one process: a pid alone is reused. `startTime`: null where it cannot be known. */
export interface ProcessIdentity {
  pid: number
  startTime: string | null
}

/**
 * When a living process was started, as a text without spaces that never changes for that process; null if there is
 * none (a zombie counts as none), and always on Windows. Linux: clock ticks since boot; macOS: UTC to the second.
 */
export async function startTimeOf(pid: number, platform: NodeJS.Platform): Promise<string | null> {
  switch (platform) {
    case 'linux':
      return (await readStat(pid))?.startTime ?? null
    case 'win32':
      return null
    default: {
      // Never run on a real macOS yet. `lstart` is written in the reader's language and time zone unless told.
      return (await lookWithPs(pid))?.startTime ?? null
    }
  }
}

/** Whether a process with this pid lives; a zombie does not (Windows has none). */
export async function isAlive(pid: number, platform: NodeJS.Platform): Promise<boolean> {
  if (platform === 'linux') return (await readStat(pid)) !== null
  try {
    kill(pid, 0)
  } catch (error) {
    if (systemErrorCode(error) !== 'EPERM') return false
  }
  // Where `ps` cannot be asked, what can be sent a signal lives.
  return platform === 'win32' || (await lookWithPs(pid))?.isZombie !== true
}

/** Whether this very process still lives: same pid, and same start time where both are known. */
export async function isStillRunning(process: ProcessIdentity, platform: NodeJS.Platform): Promise<boolean> {
  if (process.startTime === null || platform === 'win32') return isAlive(process.pid, platform)
  return (await startTimeOf(process.pid, platform)) === process.startTime
}

/**
 * The pids of the process and of all its ancestors but for pid 1; on Windows only its own.
 * @param proc where proc(5) is mounted, on Linux
 */
export async function ancestorsOf(pid: number, platform: NodeJS.Platform, proc = PROC): Promise<Set<number>> {
  const line = new Set([pid])
  const above = (of: number) => parentOf(of, platform, proc)
  for (let next = await above(pid); next > 1 && !line.has(next); next = await above(next)) line.add(next)
  return line
}

/** What names this start of the machine, so that a pid from before a restart is not believed; null on Windows. */
export async function bootId(platform: NodeJS.Platform): Promise<string | null> {
  switch (platform) {
    case 'linux':
      return (await readOfProc('/proc/sys/kernel/random/boot_id'))?.toString('utf8').trim() || null
    case 'win32':
      return null
    default:
      // Not `kern.boottime`, which moves whenever the clock is set.
      return textOf('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'])
  }
}

/** What `ps -o stat=,lstart=` prints of a process: when it was started, ISO 8601; null for a zombie, as it lives no more. */
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
 * Where a process on Windows says that it lives, by a text that no other has: a named pipe, which ends with the process. A pid alone
 * is given to others there, and start times are not known. Null elsewhere. Never run on a real one yet.
 */
export function lifeSign(text: string, platform: NodeJS.Platform): string | null {
  return platform === 'win32' ? `\\\\.\\pipe\\codemachine-${text}` : null
}

/** Answers at a pipe or socket until it is disposed, or the process ends; null if it cannot be opened. Keeps no process alive. */
export async function answerAt(address: string): Promise<AsyncDisposable | null> {
  const server = createServer(socket => socket.destroy())
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.on('error', () => resolve(false)).listen(address, () => resolve(true))
  server.unref()
  if (!(await promise)) return null
  return { [Symbol.asyncDispose]: () => new Promise(closed => void server.close(() => closed())) }
}

/** Whether anybody answers there. One that is too busy for it does. */
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

/** Where proc(5) is mounted. */
const PROC = '/proc'

/** What Linux says of a process: of whom it descends, and when it was started, in clock ticks since boot. */
export interface ProcessStat {
  parent: number
  /** The process group. */
  group: number
  session: number
  startTime: string
}

/**
 * Of /proc/<pid>/stat (proc(5)): fields 3 to 6, and 22. Null if there is no such process, or it has ended already.
 * @param proc where proc(5) is mounted
 */
export async function readStat(pid: number, proc = PROC): Promise<ProcessStat | null> {
  const stat = (await readOfProc(`${proc}/${pid}/stat`))?.toString('latin1') ?? ''
  // The second field is the program's name in brackets, which may hold spaces and brackets itself.
  const [state, parent, group, session, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const startTime = rest[15]
  if (startTime === undefined || state === 'Z' || state === 'X') return null
  return { parent: Number(parent), group: Number(group), session: Number(session), startTime }
}

const openFile = promisify(open)
const readInto = promisify(read)
const closeFile = promisify(close)

/** What most of these files fit into. */
const ROOM_BYTES = 4096

/**
 * A file of proc(5); null if there is none, or it cannot be read. It has no size before it is read: the `readFile` of
 * `node:fs` makes room of 64 KiB or twice that for each, of which a look at all processes leaves megabytes behind.
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

/** As much as there is room for is given at a time, so that a part that is smaller was the last. */
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
 * What names the set of processes that this one can see by pid, as in `pid:[4026531836]`: each container has its own.
 * Null where there are none, or it cannot be told; always but on Linux.
 */
export async function pidNamespace(platform: NodeJS.Platform): Promise<string | null> {
  return platform === 'linux' ? await readlink('/proc/self/ns/pid').catch(() => null) : null
}
