import { isAbsolute, join, win32 } from 'node:path'
import { findObstacle } from '../workspace/inside-directory.ts'
import { liesWithin, type Paths } from './path-holds.ts'

/** The most folders that one agent may be given, and the most characters of each. */
const MOST_PATHS = 20
const MOST_CHARACTERS = 300

/** Whose first part is not for agents that were given folders: what codemachine and git keep there. */
const OURS = '.codemachine'
const GIT = '.git'

export interface ReadPathsOptions {
  /** The work directory's real path. */
  directory: string
  platform: NodeJS.Platform
  ignoresCase: boolean
}

/**
 * The folders that an agent is to write in, each once and none inside of another; null if it is the whole work directory.
 * A sentence for whoever asked if one of them cannot be had.
 */
export async function readPaths(
  written: Paths,
  { directory, platform, ignoresCase }: ReadPathsOptions,
): Promise<{ paths: Paths } | { problem: string }> {
  if (written === null || written.length === 0) return { paths: null }
  if (written.length > MOST_PATHS) return { problem: `These are ${written.length} paths; name ${MOST_PATHS} at most.` }
  const paths: string[] = []
  for (const each of written) {
    const parts = partsOf(each, platform)
    const problem = problemOf(each, parts) ?? (await problemOnDisk(directory, parts))
    if (problem !== null) return { problem: `${problem} No agent was started.` }
    if (parts.length === 0) return { paths: null }
    paths.push(parts.join('/'))
  }
  const outermost = paths.filter((path, at) => {
    return !paths.some((other, place) => {
      if (place === at || !liesWithin(path, [other], ignoresCase)) return false
      // Of two that are the same the first is kept.
      return place < at || !liesWithin(other, [path], ignoresCase)
    })
  })
  return { paths: outermost }
}

function partsOf(path: string, platform: NodeJS.Platform): string[] {
  const separators = platform === 'win32' ? /[\\/]/ : /\//
  return path
    .trim()
    .split(separators)
    .filter(part => part !== '' && part !== '.')
}

function problemOf(path: string, parts: readonly string[]): string | null {
  const shown = JSON.stringify(path.length > 80 ? `${path.slice(0, 80).toWellFormed()}…` : path)
  if (path.length > MOST_CHARACTERS) return `The path ${shown} is longer than ${MOST_CHARACTERS} characters.`
  if (path.trim() === '') return 'A path is empty; name folders relative to the work directory.'
  if (/\p{Cc}/u.test(path) || !path.isWellFormed()) return `The path ${shown} has characters that no path should have.`
  if (isAbsolute(path.trim()) || win32.isAbsolute(path.trim()) || /^[a-z]:/i.test(path.trim())) {
    return `The path ${shown} is absolute; name folders relative to the work directory.`
  }
  if (parts.includes('..')) return `The path ${shown} leads out by ".."; name folders inside the work directory.`
  if (/[*?]/.test(path)) return `The path ${shown} is a pattern; name folders.`
  if (parts.some(part => part.toLowerCase() === GIT)) return `The path ${shown} lies in git's own folder; leave it out.`
  if (parts[0]?.toLowerCase() === OURS) return `The path ${shown} lies in codemachine's own folder; leave it out.`
  return null
}

async function problemOnDisk(directory: string, parts: readonly string[]): Promise<string | null> {
  const path = parts.join('/')
  const obstacle = await findObstacle(directory, join(...parts))
  switch (obstacle?.kind) {
    case undefined:
      return null
    case 'link':
      return `The path "${path}" leads through a link (${obstacle.path}); name the folder itself.`
    case 'not-a-directory':
      return `"${obstacle.path}" is a file; name the folder that it is in.`
    case 'missing':
      // No folder is to be made where somebody means a file.
      return FILE_NAME.test(path) ? `"${path}" looks like a file; name the folder that it is in.` : null
  }
}

const FILE_NAME = /[^./]\.[a-z]\w{0,7}$/i
