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

/** Options to inspect a control group. */
interface ControlGroupOptions {
  platform: NodeJS.Platform
  /** The pid of this process. */
  self: number
  clock: Clock
  /** Grace time after SIGTERM, ms. */
  graceMs: number
  /** Resolves with the pids of other working codemachines; if one is in the group, nothing is ended. */
  otherRuns: () => Promise<readonly number[]>
  /** Mount point of proc(5). Default: /proc */
  proc?: string
}

/**
 * Opens the control group (cgroup v2) that only this process uses, as `systemd-run --user --scope` makes one. It may contain
 * descendants, and ancestors in the same process group (`npx`, `sh -c`). Null on other systems, or if any other process is
 * in the group now. So a group with an interactive shell, a tmux or a container's init does not count. Null, too, if this
 * process is an init. A person's processes there would look like an agent's leftovers.
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
    // A container's init: a person can enter its group at any time (`docker exec`).
    if (parent === 0) return null
    const isAbove = ancestors.has(pid) && group === own.group
    if (isAbove || (await ancestorsOf(pid, platform, proc)).has(self)) continue
    // An ended process has no ancestors any more.
    if ((await readStat(pid, proc)) !== null) return null
  }
  return new ControlGroup(folder, members, options)
}

const PROC = '/proc'

/** Finds and ends orphans of agents without our mark, by this process's control group. */
class ControlGroup {
  readonly #folder: string
  /** Members of the group at the start. */
  readonly #before: Members
  readonly #options: ControlGroupOptions
  /** One per running work: orphans of its agents are still in use. */
  readonly #working = new Set<symbol>()

  constructor(folder: string, before: Members, options: ControlGroupOptions) {
    this.#folder = folder
    this.#before = before
    this.#options = options
  }

  /** Reports that agents' commands run from now until the returned function is called. */
  works(): () => void {
    const work = Symbol()
    this.#working.add(work)
    return () => void this.#working.delete(work)
  }

  /** Ends found strays with SIGTERM, then SIGKILL, in bounded time; does nothing while any work runs. */
  async endStrays(): Promise<Ended> {
    return await endFound(() => this.findStrays(), this.#options)
  }

  /**
   * Finds processes in the group or below it that are new, are not our descendants, and have no codemachine mark. Finds none
   * while any work runs, or if others use the group: a process of our own session (agents cannot enter it), one that an
   * ancestor in the group started, or another codemachine. Skips unreadable processes, and those started for a person
   * (`forPerson`) or by systemd, with their descendants.
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
      // An ended process has no ancestors any more.
      if ((await readStat(pid, proc))?.startTime !== startTime) continue
      const owner = await markedBy(pid, proc)
      const isOthers = typeof owner === 'number' && owner !== self && members.has(owner)
      if (isOthers || others.has(pid) || session === own.session || [...line].some(wasThere)) return []
      if (owner === null) found.push({ pid, startTime, command: await readCommand(pid, proc) })
    }
    // Work that began meanwhile has no orphans in the list that was read.
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

/** Variable of systemd.exec(5): the pid of a process that systemd itself started (`ExecStop=` of a unit). */
const SYSTEMD_VARIABLE = 'SYSTEMD_EXEC_PID'

/**
 * Resolves with the pid of the codemachine in a process's mark. Null: no mark, or a forged one. `unknown`: the process
 * forbids inspection (`gpg-agent`), so it may be the person's.
 */
async function markedBy(pid: number, proc: string): Promise<number | 'unknown' | null> {
  const environment = await readEnvironment(pid, proc)
  if (environment === null) return 'unknown'
  return parseMark(variableIn(environment, MARK_VARIABLE) ?? '')?.owner.pid ?? null
}

/** Variable with the pid of the codemachine that started a program for the person. */
const PERSON_VARIABLE = 'CODEMACHINE_FOR_PERSON'

/** Returns the environment of a program for the person that may outlive us: an editor, a browser. */
export function forPerson(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  return { ...env, [PERSON_VARIABLE]: String(ownPid) }
}

/** Processes of a group and its subgroups, by pid. */
type Members = ReadonlyMap<number, ProcessStat>

/** Limit of inspected groups: agents can create more. */
const MOST_GROUPS = 1000

/** Null: unreadable, too large, or with processes of another pid namespace. */
async function membersOf(top: string, proc: string): Promise<Members | null> {
  const members = new Map<number, ProcessStat>()
  const folders = [top]
  // The loop also visits folders that it appends.
  for (const folder of folders) {
    if (folders.length > MOST_GROUPS) return null
    const pids = await readFile(join(folder, 'cgroup.procs'), 'latin1').catch(() => null)
    // A subgroup may be gone again.
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
 * Resolves with a process's control group folder, by cgroups(7) and proc_pid_mountinfo(5); null: none, or unreachable from
 * here.
 */
async function folderOf(pid: number, proc: string): Promise<string | null> {
  const read = (file: string) => readFile(join(proc, String(pid), file), 'utf8').catch(() => '')
  const group = /^0::(\/.*)$/m.exec(await read('cgroup'))?.[1]
  if (group === undefined) return null
  for (const line of (await read('mountinfo')).split('\n')) {
    const [mount = '', type = ''] = line.split(' - ')
    const [, , , root = '', at = ''] = mount.split(' ').map(unescaped)
    const inside = root === '/' ? group : `${group}/`.startsWith(`${root}/`) ? group.slice(root.length) : null
    // A group above the root of its namespace has `..` in its path.
    if (type.startsWith('cgroup2 ') && inside !== null && !inside.split('/').includes('..')) return join(at, inside)
  }
  return null
}

/** Decodes blanks and other special characters, written as `\040`. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
