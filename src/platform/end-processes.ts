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

/** Options to end leftover processes. */
export interface EndOptions {
  clock: Clock
  platform: NodeJS.Platform
  /** The pid of this process; it and its ancestors are never ended. */
  self: number
  /** Grace time after SIGTERM, ms. */
  graceMs: number
}

/** Ended processes, and those that could not be ended. */
export interface Ended {
  ended: FoundProcess[]
  /** Still alive: another user's, or stuck in the kernel. */
  left: FoundProcess[]
}

/**
 * Ends every process whose variable has a matching value, see `endFound`.
 * @param leaders pids of ended session leaders (`setsid`), whose remaining processes are ended, too
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
 * Ends found processes: SIGTERM, a bounded wait, SIGKILL. Searches again for new ones, until two searches find none, or
 * after five passes.
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
    // On a busy machine, their starter may need a moment to start them again.
    await options.clock.wait(AGAIN_MS)
    left = await find()
  }
  for (const each of left) seen.delete(`${each.pid} ${each.startTime}`)
  return { ended: [...seen.values()], left }
}

/** Sends the signal if exactly this process still lives (pids are reused); false: not sent. */
export async function endProcess(
  process: ProcessIdentity,
  signal: NodeJS.Signals,
  platform: NodeJS.Platform,
): Promise<boolean> {
  return (await isStillRunning(process, platform)) && send(process.pid, signal)
}

/**
 * Ends the process group that this pid leads (spawned `detached`); on Windows, the process and its descendants with any
 * signal. Resolves when it was sent; false: no target.
 */
export async function endTree(pid: number, signal: NodeJS.Signals, platform: NodeJS.Platform): Promise<boolean> {
  // Negated for a group: 0 would mean our own group, and 1 every process of this user.
  if (!Number.isInteger(pid) || pid <= 1) throw new RangeError(`No process group has the pid ${pid}.`)
  if (platform !== 'win32') return send(-pid, signal)
  return new Promise(resolve => {
    execFile(systemProgram('taskkill.exe'), ['/PID', String(pid), '/T', '/F'], { timeout: 5000 }, error =>
      resolve(error === null),
    )
  })
}

const MOST_KILLS = 5
/** Time for the kernel to remove a killed process, ms. */
const KILL_MS = 1000
const POLL_MS = 10
/** Time between an empty search and its confirmation, ms. */
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

/** A found process. */
export interface FoundProcess extends ProcessIdentity {
  /** Its command line for people, at most 200 characters. */
  command: string
  /** True: it ignores SIGTERM, so SIGKILL comes first; left out: it does not. */
  isDeaf?: true
}

/** A process found by an environment variable. */
interface MarkedProcess extends FoundProcess {
  /** The value of the variable. */
  value: string
}

/**
 * Finds every living process whose start environment has the variable with a matching value.
 *
 * Linux: every process that this user may inspect. macOS: those of `ps -E`, which omits system programs; never run on a real
 * one yet. Windows: none, for environments of other processes are unreadable. Not found: a process that overwrote its
 * environment (`setproctitle`), or started with `env -i`.
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

/** Parallel reads: more than libuv's four threads, so that no thread idles. */
const CONCURRENT_READS = 16

async function findInProc(variable: string, matches: (value: string) => boolean): Promise<MarkedProcess[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const found: MarkedProcess[] = []
  const readNext = async () => {
    for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
      const value = await readVariable(pid, variable)
      if (value === null || !matches(value)) continue
      const startTime = await startTimeOf(pid, 'linux')
      // If the pid was reused meanwhile, the first value belongs to another process.
      if (startTime === null || (await readVariable(pid, variable)) !== value) continue
      found.push({ pid, startTime, value, command: await readCommand(pid) })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_READS }, readNext))
  return found.sort((a, b) => a.pid - b.pid)
}

/**
 * Finds living processes in sessions whose leaders have ended, on Linux. A bubblewrap killed at its start leaves a child
 * that waits for ever, blocks SIGTERM, and has no mark. Codex starts bubblewrap at any time.
 */
async function findInSessions(leaders: ReadonlySet<number>): Promise<FoundProcess[]> {
  const ended = new Set<number>()
  // A living process with that pid is a new, foreign one.
  for (const pid of leaders) if ((await readStat(pid)) === null) ended.add(pid)
  if (ended.size === 0) return []
  return await findEach(async pid => {
    const stat = await readStat(pid)
    return stat !== null && ended.has(stat.session) ? stat : null
  })
}

/**
 * Ends such bubblewrap children of a killed codemachine whose sandbox was for this directory, an absolute path. Linux only.
 */
export async function endUnfinishedSandboxes(directory: string, options: EndOptions): Promise<void> {
  if (options.platform !== 'linux') return
  const find = () =>
    findEach(async pid => {
      const line = (await readOfProc(`/proc/${pid}/cmdline`))?.toString('utf8') ?? ''
      if (!line.startsWith('bwrap\0') || !line.includes(LOOK_OF_CODEX) || !line.includes(directory)) return null
      const stat = await readStat(pid)
      if (stat === null || (await readStat(stat.session)) !== null) return null
      // A sandbox under construction still has its builder as parent.
      return (await readStat(stat.parent))?.session === stat.session ? null : stat
    })
  await endFound(find, options)
}

/** Argument of codex's own file helper in a sandbox. */
const LOOK_OF_CODEX = '--codex-run-as-fs-helper'

/** Finds living processes for which `look` returns their stat. */
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
 * Resolves with a variable of a process's start environment, on Linux; null: not set, or unreadable.
 * @param proc mount point of proc(5)
 */
export async function readVariable(pid: number, variable: string, proc = '/proc'): Promise<string | null> {
  const environment = await readEnvironment(pid, proc)
  return environment && variableIn(environment, variable)
}

/**
 * Resolves with a process's start environment on Linux, in the format of proc(5). Null: it has ended, belongs to another
 * user, or forbids inspection (`PR_SET_DUMPABLE`). A zombie's is empty.
 */
export async function readEnvironment(pid: number, proc: string): Promise<Buffer | null> {
  return await readOfProc(`${proc}/${pid}/environ`)
}

/** Returns a variable's value from an environment in proc(5) format; null: not set. */
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
 * Resolves with a process's command line on Linux, at most 200 characters; empty: it has ended.
 * @param proc mount point of proc(5)
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
  for (const each of readMarks(stdout, variable)) {
    const startTime = matches(each.value) ? await startTimeOf(each.pid, platform) : null
    if (startTime !== null) found.push({ ...each, startTime })
  }
  return found
}

/** Parses `ps -E -ww -axo pid=,command=`: the environment stands behind the command line. A zombie has none. */
export function readMarks(stdout: string, variable: string): Omit<MarkedProcess, 'startTime'>[] {
  return stdout.split('\n').flatMap(line => {
    const [, pid, command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? []
    // The last one: a command line may show another.
    const value = command.split(` ${variable}=`).slice(1).at(-1)?.split(' ')[0]
    return pid === undefined || value === undefined ? [] : [{ pid: Number(pid), value, command: command.slice(0, 200) }]
  })
}

/** The environment variable that marks all processes of codemachine and their descendants. */
export const MARK_VARIABLE = 'CODEMACHINE_MARK'

/** The owner of a process, from its environment. */
export interface Mark {
  /** The key of the records of the work directory. */
  key: string
  /** The codemachine process that started it. */
  owner: ProcessIdentity
  /** Number of the process among those of its owner. */
  n: number
}

/** Returns the value of the variable: `<key>/<owner's pid>/<owner's start time, or ->/<n>`. */
export function makeMark({ key, owner, n }: Mark): string {
  return `${key}/${owner.pid}/${owner.startTime ?? '-'}/${n}`
}

/** Parses a value of `makeMark`; null: another text. */
export function parseMark(value: string): Mark | null {
  const [, key, pid, startTime, n] = /^([^/]+)\/([1-9]\d{0,9})\/([^/\s]+)\/(\d{1,9})$/.exec(value) ?? []
  if (key === undefined || startTime === undefined) return null
  return { key, owner: { pid: Number(pid), startTime: startTime === '-' ? null : startTime }, n: Number(n) }
}

/**
 * Ends leftovers of a dead codemachine for the records with this key: marked processes without a living owner. Processes of
 * a living codemachine stay. Finds nothing on Windows.
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

/** Time limit, ms: a person who interrupts twice must not wait. */
const MOST_MS = 1000

/**
 * Kills this process's app-servers and their processes synchronously, before an exit without a regular end. Best effort,
 * bounded, never throws.
 * || Linux: all processes with our mark, and the groups that they lead. macOS: our app-servers, their descendants and
 * groups, but no orphans. Windows: nothing; codex ends with its pipes.
 */
export function killMarkedNow(self: number, platform: NodeJS.Platform, clock: Clock): void {
  const deadline = clock.monotonic() + MOST_MS
  try {
    if (platform === 'linux') {
      // Repeat until all are gone: new ones may have started meanwhile.
      for (let found = markedBy(self); found.length > 0 && clock.monotonic() < deadline; found = markedBy(self))
        killAll(found)
    } else if (platform !== 'win32') killAll(descendantsOfAppServers(self))
  } catch {
    // We exit anyway; the rest ends with our pipes, or at the next start.
  }
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) for (const target of [-pid, pid]) send(target, 'SIGKILL')
}

/** Returns living processes with a mark of exactly this process. */
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

/** Returns field 22 of /proc/<pid>/stat (proc(5)). The program's name in brackets may contain spaces and brackets. */
function startTimeNow(pid: number): string | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

/** Returns an empty text for an ended or foreign process. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Returns this process's app-servers and all of their descendants. */
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
  // The loop also visits pids that it appends.
  for (const pid of found) for (const each of lines) if (each.parent === pid) found.push(each.pid)
  return found
}
