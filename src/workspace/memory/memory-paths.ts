import { join } from 'node:path'
import type { MemoryLayout } from '../../core/state/state.ts'
import { isFileName } from '../../platform/files.ts'

/** Folder of all memory, relative to the work directory. */
export const memoryRoot = '.codemachine'

/** Folders that agents share with the person; relative to the work directory. */
export const projectFolders = {
  agents: join(memoryRoot, 'agents'),
  inputs: join(memoryRoot, 'inputs'),
  memory: join(memoryRoot, 'memory'),
  plan: join(memoryRoot, 'plan'),
}

/** Paths of a session's memory; all absolute. */
export interface SessionFolder {
  folder: string
  main: string
  tasks: string
  /** Knowledge base: a folder of agents' notes, shared by all sessions of the work directory. */
  kb: string
  /** Folder of the last good copies, in the records. */
  lastGood: string
}

/** The session that owns a memory. */
export interface SessionPlace {
  directory: string
  id: string
  /** Session's folder in the records. */
  records: string
  /** Location of its tasks; undefined: with the rest of its memory. */
  memory?: MemoryLayout
}

/** Returns the paths of a session's memory, without disk access. */
export function sessionFolder(session: SessionPlace): SessionFolder {
  const home = join(session.directory, memoryRoot)
  const folder = join(home, 'projects', session.id)
  return {
    folder,
    main: join(folder, 'MAIN.md'),
    tasks: session.memory === 'project-plan' ? planPaths(session.directory).tasks : join(folder, 'tasks.json'),
    kb: join(home, 'kb'),
    lastGood: join(session.records, 'last-good'),
  }
}

/** Returns the memory paths of one of its scopes (`RoundScope`), without disk access. On Windows, `con` gets `_con`. */
export function scopeFolder(
  { folder, kb, lastGood }: Omit<SessionFolder, 'main' | 'tasks'>,
  name: string,
  platform?: NodeJS.Platform,
): SessionFolder {
  const part = isFileName(name, platform) ? name : `_${name}`
  const own = join(folder, 'steps', part)
  return {
    folder: own,
    main: join(own, 'MAIN.md'),
    tasks: join(own, 'tasks.json'),
    kb,
    lastGood: join(lastGood, 'steps', part),
  }
}

/** Paths of a project's plan; absolute or relative like the directory. */
interface PlanPaths {
  folder: string
  tasks: string
  /** File of the last summary. */
  summary: string
  /** Folder of the plans of earlier builds. */
  earlier: string
}

/** Returns the paths of a work directory's plan, without disk access. */
export function planPaths(directory: string): PlanPaths {
  const folder = join(directory, projectFolders.plan)
  return {
    folder,
    tasks: join(folder, 'tasks.json'),
    summary: join(folder, 'summary.md'),
    earlier: join(folder, 'earlier'),
  }
}
