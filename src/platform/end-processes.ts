import { execFile, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { kill } from 'node:process'
import { promisify } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { systemErrorCode } from '../base/errors.ts'
import {
  ancestorsOf,
  isStillRunning,
  type ProcessIdentity,
  type ProcessStat,
  readOfProc,
  readStat,
  startTimeOf,
} from './processes.ts'
import { systemProgram } from './run-process.ts'

/** How processes are ended that were left running. */
export interface EndOptions {
  clock: Clock
  platform: NodeJS.Platform
  /** The pid of this process: neither it nor a process that it descends from is ever ended. */
  self: number
  /** How long they may take to end by themselves after SIGTERM, ms. */
  graceMs: number
}

/** The processes that were ended, and those that could not be. */
export interface Ended {
  ended: FoundProcess[]
  /** Still alive: they belong to another user, or hang in the kernel. */
  left: FoundProcess[]
}

/**
 * Ends every process that has the variable with a matching value, as `endFound` does.
 * @param leaders pids of processes that led a session each (`setsid`) and have ended: what is left in their sessions is ended, too
 */
export async function endMarked(
  variable: string,
  matches: (value: string) => boolean,
  options: EndOptions,
  leaders: ReadonlySet<number> = new Set(),
): Promise<Ended> {
  const { self, platform } = options
  const own = await ancestorsOf(self, platform)
  const find = async () => {
    const marked: FoundProcess[] = await findMarked(variable, matches, platform)
    const known = new Set(marked.map(({ pid }) => pid))
    const left = leaders.size > 0 && platform === 'linux' ? await findInSessions(leaders) : []
    return [...marked, ...left.filter(({ pid }) => !known.has(pid))].filter(({ pid }) => !own.has(pid))
  }
  return await endFound(find, options)
}

/**
 * Ends what is found: SIGTERM, a bounded wait, SIGKILL; and looks again for what was started meanwhile, until twice nothing
 * is left or five times have not been enough.
 */
export async function endFound(
  find: () => Promise<FoundProcess[]>,
  { platform, ...options }: Omit<EndOptions, 'self'>,
): Promise<Ended> {
  const seen = new Map<string, FoundProcess>()

  let left = await find()
  for (let pass = 0; left.length > 0 && pass <= MOST_KILLS; pass++) {
    for (const each of left) {
      seen.set(`${each.pid} ${each.startTime}`, each)
      await endProcess(each, pass === 0 && !each.isDeaf ? 'SIGTERM' : 'SIGKILL', platform)
    }
    await waitUntilGone(left, pass === 0 ? options.graceMs : KILL_MS, options.clock, platform)
    left = await find()
    if (left.length > 0) continue
    // On a busy machine, what starts them again needs a moment for it.
    await options.clock.wait(AGAIN_MS)
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
    execFile(systemProgram('taskkill.exe'), ['/PID', String(pid), '/T', '/F'], { timeout: 5000 }, error =>
      resolve(error === null),
    )
  })
}

const MOST_KILLS = 5
/** How long the kernel may take to take a killed process away, ms. */
const KILL_MS = 1000
const POLL_MS = 10
/** From a look that finds nothing left to the one that is believed, ms. */
const AGAIN_MS = 100

async function waitUntilGone(
  processes: readonly ProcessIdentity[],
  ms: number,
  clock: Clock,
  platform: NodeJS.Platform,
): Promise<void> {
  const deadline = clock.monotonic() + ms
  for (const each of processes)
    while (clock.monotonic() < deadline && (await isStillRunning(each, platform))) await clock.wait(POLL_MS)
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

/** A process that was looked for and found. */
export interface FoundProcess extends ProcessIdentity {
  /** Its command line, at most 200 characters, for showing. */
  command: string
  /** Whether SIGTERM is not waited for, which it does not listen to; left out: it is. */
  isDeaf?: true
}

/** A process found by a variable of its environment. */
interface MarkedProcess extends FoundProcess {
  /** The value of the variable. */
  value: string
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

/**
 * Living processes in sessions whose leaders have ended, on Linux. Bubblewrap that is killed while it starts leaves a child
 * that waits for it for ever, blocks SIGTERM, and has an environment without anything of ours; codex starts one at any time.
 */
async function findInSessions(leaders: ReadonlySet<number>): Promise<FoundProcess[]> {
  const ended = new Set<number>()
  // What lives under such a pid again is somebody else's.
  for (const pid of leaders) if ((await readStat(pid)) === null) ended.add(pid)
  if (ended.size === 0) return []
  return await findEach(async pid => {
    const stat = await readStat(pid)
    return stat !== null && ended.has(stat.session) ? stat : null
  })
}

/**
 * Ends such children that a codemachine which was killed has left: those whose sandbox was for this directory, an absolute path.
 * On Linux.
 */
export async function endUnfinishedSandboxes(directory: string, options: EndOptions): Promise<void> {
  if (options.platform !== 'linux') return
  const find = () =>
    findEach(async pid => {
      const line = (await readOfProc(`/proc/${pid}/cmdline`))?.toString('utf8') ?? ''
      if (!line.startsWith('bwrap\0') || !line.includes(LOOK_OF_CODEX) || !line.includes(directory)) return null
      const stat = await readStat(pid)
      if (stat === null || (await readStat(stat.session)) !== null) return null
      // One that is still being built has the program above it that builds it.
      return (await readStat(stat.parent))?.session === stat.session ? null : stat
    })
  await endFound(find, options)
}

/** The argument by which codex has itself look at files in a sandbox. */
const LOOK_OF_CODEX = '--codex-run-as-fs-helper'

/** Living processes of which `look` finds what Linux says of them. */
async function findEach(look: (pid: number) => Promise<ProcessStat | null>): Promise<FoundProcess[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const found: FoundProcess[] = []
  const readNext = async () => {
    for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
      const stat = await look(pid)
      if (stat !== null) found.push({ pid, startTime: stat.startTime, command: await readCommand(pid), isDeaf: true })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_READS }, readNext))
  return found
}

/**
 * The value of a variable in the environment that a process was started with, on Linux; null too where that cannot be read.
 * @param proc where proc(5) is mounted
 */
export async function readVariable(pid: number, variable: string, proc = '/proc'): Promise<string | null> {
  const environment = await readEnvironment(pid, proc)
  return environment && variableIn(environment, variable)
}

/**
 * The environment that a process was started with, on Linux, as proc(5) has it. Null for a process that has ended, belongs
 * to someone else or lets nobody look into it (`PR_SET_DUMPABLE`); a zombie's reads as empty.
 */
export async function readEnvironment(pid: number, proc: string): Promise<Buffer | null> {
  return await readOfProc(`${proc}/${pid}/environ`)
}

/** The value of a variable in an environment as proc(5) has it; null: it is not in there. */
export function variableIn(environment: Buffer, variable: string): string | null {
  const head = `${variable}=`
  for (let at = environment.indexOf(head); at >= 0; at = environment.indexOf(head, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue
    const end = environment.indexOf(0, at)
    return environment.toString('utf8', at + head.length, end < 0 ? environment.length : end)
  }
  return null
}

/**
 * The command line of a process on Linux, at most 200 characters; empty if it has ended.
 * @param proc where proc(5) is mounted
 */
export async function readCommand(pid: number, proc = '/proc'): Promise<string> {
  const line = (await readOfProc(`${proc}/${pid}/cmdline`))?.toString('utf8') ?? ''
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

/** The environment variable by which all that codemachine starts, and all that these start, can be found again. */
export const MARK_VARIABLE = 'CODEMACHINE_MARK'

/** The owner of a process, as its environment names it. */
export interface Mark {
  /** The key of the records of the work directory. */
  key: string
  /** The codemachine process that started it. */
  owner: ProcessIdentity
  /** Tells apart what one owner starts. */
  n: number
}

/** The value of the variable: `<key>/<owner's pid>/<owner's start time, or ->/<n>`. */
export function makeMark({ key, owner, n }: Mark): string {
  return `${key}/${owner.pid}/${owner.startTime ?? '-'}/${n}`
}

/** Reads what `makeMark` wrote; null for anything else. */
export function parseMark(value: string): Mark | null {
  const [, key, pid, startTime, n] = /^([^/]+)\/([1-9]\d{0,9})\/([^/\s]+)\/(\d{1,9})$/.exec(value) ?? []
  if (key === undefined || startTime === undefined) return null
  return { key, owner: { pid: Number(pid), startTime: startTime === '-' ? null : startTime }, n: Number(n) }
}

/**
 * Ends what a codemachine that has died left running for the records with this key: every marked process whose owner
 * no longer lives. What a living codemachine started is not touched. Finds nothing on Windows.
 */
export async function endLeftovers(key: string, options: EndOptions): Promise<Ended> {
  const isOurs = (value: string) => parseMark(value)?.key === key
  const ownerless = new Set<string>()
  for (const { value } of await findMarked(MARK_VARIABLE, isOurs, options.platform)) {
    const mark = parseMark(value)
    if (mark !== null && !(await isStillRunning(mark.owner, options.platform))) ownerless.add(value)
  }
  if (ownerless.size === 0) return { ended: [], left: [] }
  return endMarked(MARK_VARIABLE, value => ownerless.has(value), options)
}

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
  for (const pid of pids) for (const target of [-pid, pid]) send(target, 'SIGKILL')
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
