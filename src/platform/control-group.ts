import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pid as ownPid } from 'node:process'
import type { Clock } from '../base/clock.ts'
import {
  type Ended,
  endFound,
  type FoundProcess,
  MARK_VARIABLE,
  parseMark,
  readCommand,
  readEnvironment,
  readVariable,
  variableIn,
} from './end-processes.ts'
import { ancestorsOf, type ProcessStat, readStat } from './processes.ts'

/** What a control group is looked at with. */
interface ControlGroupOptions {
  platform: NodeJS.Platform
  /** The pid of this process. */
  self: number
  clock: Clock
  /** How long what is found may take to end by itself after SIGTERM, ms. */
  graceMs: number
  /** The pids of codemachines that work elsewhere now: where one of them stands in the group, nothing in it is touched. */
  otherRuns: () => Promise<readonly number[]>
  /** Where proc(5) is mounted. Default: /proc */
  proc?: string
}

/**
 * The control group (cgroup v2) that this process has to itself, as `systemd-run --user --scope` makes one. It may also
 * hold descendants, and ancestors in the same process group (`npx`, `sh -c`). Null on other systems, and if anything else
 * is in the group now.
 * So one with an interactive shell, a tmux or the init of a
 * container in it does not count, nor does one that is such an init itself: what is begun from there, or enters the
 * container, could not be told from what an agent has left.
 */
export async function openControlGroup(options: ControlGroupOptions): Promise<ControlGroup | null> {
  const { platform, self, proc = PROC } = options
  if (platform !== 'linux') return null
  const folder = await folderOf(self, proc)
  const members = folder === null ? null : await membersOf(folder, proc)
  const own = members?.get(self)
  if (folder === null || members === null || own === undefined) return null
  const ancestors = await ancestorsOf(self, platform, proc)
  for (const [pid, { parent, group }] of members) {
    // The program that a container runs: a person can enter its group at any time (`docker exec`).
    if (parent === 0) return null
    const isAbove = ancestors.has(pid) && group === own.group
    if (isAbove || (await ancestorsOf(pid, platform, proc)).has(self)) continue
    // What has ended meanwhile has no ancestors any more.
    if ((await readStat(pid, proc)) !== null) return null
  }
  return new ControlGroup(folder, members, options)
}

const PROC = '/proc'

/** Finds and ends, by the control group of this process, what agents have orphaned without the mark in its environment. */
class ControlGroup {
  readonly #folder: string
  /** What stood in the group at the start. */
  readonly #before: Members
  readonly #options: ControlGroupOptions
  /** One for each that works: what its agents orphan while they work is still in use. */
  readonly #working = new Set<symbol>()

  constructor(folder: string, before: Members, options: ControlGroupOptions) {
    this.#folder = folder
    this.#before = before
    this.#options = options
  }

  /** Says that commands of agents run from now on, until the returned function is called. */
  works(): () => void {
    const work = Symbol()
    this.#working.add(work)
    return () => void this.#working.delete(work)
  }

  /** Ends what is found, with SIGTERM and then SIGKILL, in bounded time; nothing while anything works. */
  async endStrays(): Promise<Ended> {
    return await endFound(() => this.findStrays(), this.#options)
  }

  /**
   * What stands in the group or in one below it, is neither of its start nor descends from this process, and has no mark of
   * any codemachine. Nothing while anything works, nor where somebody else has begun to use the group: a process of our
   * own session (no agent can get into it), one that an ancestor of ours in the group has started, another codemachine.
   * What was started for a person (`forPerson`) or by systemd, and what that has started, is left out, and so is what cannot
   * be looked into.
   */
  async findStrays(): Promise<FoundProcess[]> {
    const { self, proc = PROC, otherRuns } = this.#options
    const others = new Set(await otherRuns())
    const members = (await membersOf(this.#folder, proc)) ?? new Map<number, ProcessStat>()
    const own = members.get(self)
    if (own === undefined) return []
    const found: FoundProcess[] = []
    const wasThere = (pid: number) =>
      members.has(pid) && this.#before.get(pid)?.startTime === members.get(pid)?.startTime
    for (const [pid, { session, startTime }] of members) {
      if (wasThere(pid)) continue
      const line = await ancestorsOf(pid, 'linux', proc)
      if (line.has(self) || (await this.#isForPerson(line, members))) continue
      // What has ended meanwhile has no ancestors any more.
      if ((await readStat(pid, proc))?.startTime !== startTime) continue
      const owner = await markedBy(pid, proc)
      const isOthers = typeof owner === 'number' && owner !== self && members.has(owner)
      if (isOthers || others.has(pid) || session === own.session || [...line].some(wasThere)) return []
      if (owner === null) found.push({ pid, startTime, command: await readCommand(pid, proc) })
    }
    // What began to work meanwhile has orphaned nothing that was in the group when it was read.
    return this.#working.size === 0 ? found : []
  }

  async #isForPerson(line: ReadonlySet<number>, members: Members): Promise<boolean> {
    const { self, proc } = this.#options
    for (const pid of line) {
      if ((await readVariable(pid, PERSON_VARIABLE, proc)) === String(self)) return true
      if (members.has(pid) && (await readVariable(pid, SYSTEMD_VARIABLE, proc)) === String(pid)) return true
    }
    return false
  }
}

/** By systemd.exec(5), the pid of a process that systemd itself has started, such as `ExecStop=` of a unit. */
const SYSTEMD_VARIABLE = 'SYSTEMD_EXEC_PID'

/**
 * The pid of the codemachine by whose mark a process goes. Null if it has no mark: what is none of ours was made up to look
 * like one. `unknown` for what lets nobody look into it, such as `gpg-agent`: it may have been started for the person.
 */
async function markedBy(pid: number, proc: string): Promise<number | 'unknown' | null> {
  const environment = await readEnvironment(pid, proc)
  if (environment === null) return 'unknown'
  return parseMark(variableIn(environment, MARK_VARIABLE) ?? '')?.owner.pid ?? null
}

/** Who has started a program for the person: the pid of a codemachine. */
const PERSON_VARIABLE = 'CODEMACHINE_FOR_PERSON'

/** The environment of a program that is started for the person and may live on, such as an editor or a browser. */
export function forPerson(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  return { ...env, [PERSON_VARIABLE]: String(ownPid) }
}

/** The processes of a group and of those below it, by pid. */
type Members = ReadonlyMap<number, ProcessStat>

/** How many groups are looked into: agents can make more. */
const MOST_GROUPS = 1000

/** Null if it cannot be read, is too large, or has processes that cannot be seen from here (another pid namespace). */
async function membersOf(top: string, proc: string): Promise<Members | null> {
  const members = new Map<number, ProcessStat>()
  const folders = [top]
  // The list grows while it is gone through.
  for (const folder of folders) {
    if (folders.length > MOST_GROUPS) return null
    const pids = await readFile(join(folder, 'cgroup.procs'), 'latin1').catch(() => null)
    // One below may have gone again.
    if (pids === null && folder === top) return null
    for (const pid of (pids ?? '')
      .split('\n')
      .filter(line => line !== '')
      .map(Number)) {
      if (pid === 0) return null
      const stat = await readStat(pid, proc)
      if (stat !== null) members.set(pid, stat)
    }
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) if (entry.isDirectory()) folders.push(join(folder, entry.name))
  }
  return members
}

/**
 * The folder of the control group of a process, by cgroups(7) and proc_pid_mountinfo(5); null if there is none, or it cannot
 * be reached from here.
 */
async function folderOf(pid: number, proc: string): Promise<string | null> {
  const read = (file: string) => readFile(join(proc, String(pid), file), 'utf8').catch(() => '')
  const group = /^0::(\/.*)$/m.exec(await read('cgroup'))?.[1]
  if (group === undefined) return null
  for (const line of (await read('mountinfo')).split('\n')) {
    const [mount = '', type = ''] = line.split(' - ')
    const [, , , root = '', at = ''] = mount.split(' ').map(unescaped)
    const inside = root === '/' ? group : `${group}/`.startsWith(`${root}/`) ? group.slice(root.length) : null
    // Above the root of its namespace a group has a path with `..` in it.
    if (type.startsWith('cgroup2 ') && inside !== null && !inside.split('/').includes('..')) return join(at, inside)
  }
  return null
}

/** Blanks and the like are written as `\040`. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
