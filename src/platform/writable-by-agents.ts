import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isWithin } from './path-within.ts'

/** Folders in which agents can write in every sandbox that may write, by name and by real path. */
export interface WritableByAgents {
  workDirectory: readonly string[]
  /** Of the repository around it. */
  gitDirectories: readonly string[]
  temporary: readonly string[]
}

/** Where agents that work in `directory` can write. */
export function writableByAgents(
  directory: string,
  env: Readonly<NodeJS.ProcessEnv>,
  gitDirectories: readonly string[],
): WritableByAgents {
  return {
    workDirectory: bothNames([directory]),
    gitDirectories: bothNames(gitDirectories),
    temporary: bothNames(['/tmp', ...(env.TMPDIR ? [env.TMPDIR] : [])]),
  }
}

/** Whether a path lies, by name or by real path, in one of these folders. Absolute; it need not be there. */
export function isWritableByAgents(path: string, where: WritableByAgents): boolean {
  return Object.values(where).some(folders => liesIn(path, folders))
}

/** As `isWritableByAgents`, for some of the folders. */
export function liesIn(path: string, folders: readonly string[]): boolean {
  return bothNames([path]).some(name => folders.some(folder => isWithin(folder, name)))
}

function bothNames(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap(path => [path, realPathOf(path)]))]
}

/** Of a folder that is not there yet too: then that of what is there, with the rest of the name. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(realPathOf(dirname(path)), basename(path))
  }
}
