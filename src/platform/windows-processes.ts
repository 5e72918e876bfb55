import { uptime } from 'node:os'
import * as v from 'valibot'
import { type Ended, type EndOptions, endFound, type FoundProcess } from './end-processes.ts'
import { runProcess, systemProgram } from './run-process.ts'

/** A process of Windows. */
interface WindowsProcess {
  pid: number
  /** The pid of its starter, which may have ended; another process may have that pid now. */
  parent: number
  /** Unix time, ms; null: not known. */
  createdAt: number | null
  /** Empty: not known. */
  command: string
}

/**
 * Ends the processes of a killed codemachine on Windows, where their environments are unreadable: see `orphansOf`. Finds
 * nothing if PowerShell gives no list. Never run on a real Windows yet.
 */
export async function endOrphans(
  owner: { pid: number; at: number },
  env: Readonly<NodeJS.ProcessEnv>,
  options: EndOptions,
): Promise<Ended> {
  if (options.platform !== 'win32') return { ended: [], left: [] }
  const machine = { self: options.self, bootedAt: options.clock.now() - uptime() * 1000 }
  return await endFound(async () => orphansOf(owner, await listProcesses(env), machine), options)
}

/**
 * Returns the living codex processes that an ended process has started, and all that these have. A child was created after
 * its parent, and before another process got the parent's pid. Such another process may have ended, too, so the program
 * counts. Without this process `self` and its ancestors. None if the owner lived before the system's start: pids begin anew.
 * @param owner `at`: a time when it lived; Unix time, ms
 * @param machine `bootedAt`: the system's start; Unix time, ms
 */
export function orphansOf(
  owner: { pid: number; at: number },
  processes: readonly WindowsProcess[],
  { self, bootedAt }: { self: number; bootedAt: number },
): FoundProcess[] {
  if (owner.at < bootedAt) return []
  const byPid = new Map(processes.map(each => [each.pid, each]))
  const own = new Set<number>()
  for (let at = byPid.get(self); at !== undefined && !own.has(at.pid); at = byPid.get(at.parent)) own.add(at.pid)
  const now = byPid.get(owner.pid)
  const until = now === undefined ? Number.POSITIVE_INFINITY : (now.createdAt ?? 0)
  const found = new Map<number, WindowsProcess>()
  const addBelow = (parent: number, since: number, isChild: (child: WindowsProcess, createdAt: number) => boolean) => {
    for (const each of processes) {
      const { pid, createdAt } = each
      if (each.parent !== parent || createdAt === null || createdAt < since || !isChild(each, createdAt)) continue
      if (pid === owner.pid || own.has(pid) || found.has(pid)) continue
      found.set(pid, each)
      addBelow(pid, createdAt, () => true)
    }
  }
  addBelow(owner.pid, owner.at, ({ command }, createdAt) => createdAt < until && IS_CODEX.test(command))
  return [...found.values()].map(({ pid, command }) => ({ pid, startTime: null, command: command.slice(0, 200) }))
}

const IS_CODEX = /\bcodex\b/i

const LIST = [
  `Get-CimInstance Win32_Process`,
  `Select-Object ProcessId, ParentProcessId, CommandLine, @{ n = 'At'; e = { $_.CreationDate.ToUniversalTime().ToString('o') } }`,
  `ConvertTo-Json -Compress`,
].join(' | ')

async function listProcesses(env: Readonly<NodeJS.ProcessEnv>): Promise<WindowsProcess[]> {
  const { stdout } = await runProcess(
    systemProgram('powershell.exe', env),
    ['-NoProfile', '-NonInteractive', '-Command', `[Console]::OutputEncoding = [Text.Encoding]::UTF8; ${LIST}`],
    { env, encoding: 'utf8', outputLimit: 64 * 1024 * 1024, timeoutMs: 30_000 },
  )
  return readProcesses(stdout)
}

const processSchema = v.object({
  ProcessId: v.number(),
  ParentProcessId: v.number(),
  CommandLine: v.nullable(v.string()),
  At: v.nullable(v.string()),
})

/** Parses the list that PowerShell prints as JSON; a list of one is an object, and an empty one no text. */
export function readProcesses(stdout: string): WindowsProcess[] {
  const text = stdout.replace(/^\uFEFF/, '').trim()
  const list = v.safeParse(v.pipe(v.string(), v.parseJson()), text)
  if (!list.success) return []
  return [list.output].flat().flatMap(each => {
    const read = v.safeParse(processSchema, each)
    if (!read.success) return []
    const { ProcessId: pid, ParentProcessId: parent, CommandLine: command, At: at } = read.output
    const createdAt = at === null ? Number.NaN : Date.parse(at)
    return [{ pid, parent, createdAt: Number.isNaN(createdAt) ? null : createdAt, command: command ?? '' }]
  })
}
