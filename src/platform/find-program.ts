import { access, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { isWritableByAgents, type WritableByAgents } from './writable-by-agents.ts'

export interface ProgramSearch {
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** A program in there does not count: an agent may have put it there. */
  where: WritableByAgents
}

/** `path` is null if there is none; `passedOver` are those that do not count, absolute paths. */
export interface ProgramFound {
  path: string | null
  passedOver: readonly string[]
}

/** The first program of this name on the PATH that no agent can have written. On Windows `.exe` may be left out. */
export async function findProgram(name: string, { env, platform, where }: ProgramSearch): Promise<ProgramFound> {
  const file = platform === 'win32' && !name.includes('.') ? `${name}.exe` : name
  const passedOver: string[] = []
  for (const folder of (env[pathVariable(env)] ?? '').split(delimiter)) {
    const path = join(folder, file)
    if (!isAbsolute(folder) || !(await isProgram(path))) continue
    if (!isWritableByAgents(path, where)) return { path, passedOver }
    passedOver.push(path)
  }
  return { path: null, passedOver }
}

/** Whether a path is a file that may be run. */
export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** What the variable PATH is called in this environment: Windows also spells it `Path`. */
export function pathVariable(env: Readonly<NodeJS.ProcessEnv>): string {
  return Object.keys(env).find(name => name.toUpperCase() === 'PATH') ?? 'PATH'
}
