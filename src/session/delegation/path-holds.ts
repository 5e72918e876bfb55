import { rmdir } from 'node:fs/promises'
import { isAbsolute, join, win32 } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { comparable, isFileName, pathsOf } from '../../platform/files.ts'
import { findObstacle, makeFolderInside } from '../../workspace/files/inside-directory.ts'
import { isInRuntime, isOwnFolder } from '../../workspace/files/write-all.ts'

/** Folders relative to the work directory, separated by `/` inside; null: the whole work directory, empty: none. */
export type Paths = readonly string[] | null

/** A taken turn: only turns under it can write in its paths. */
export interface Hold {
  readonly paths: Paths
  /** The turn of the agent that asked for this one; null: none. */
  readonly under: Hold | null
  readonly who: WhoHolds
}

/** The agent that wants a turn. */
interface WhoHolds {
  agent: string
  /** Called with the agents that have to end first, again when the list changes. */
  onBehind?(agents: readonly string[]): void
}

interface PathHoldsOptions {
  /** Most agents at work. An agent under another one does not count: the other one waits. */
  atOnce: number
  /** Says whether `a` and `A` are the same folder. */
  platform: NodeJS.Platform
}

/**
 * Grants turns to write in paths. Overlapping requests wait for each other, first come first served; others do not wait.
 * Under a hold, one turn at a time.
 */
export class PathHolds {
  readonly #options: PathHoldsOptions
  readonly #held = new Set<Hold>()
  readonly #waiting: Waiting[] = []

  constructor(options: PathHoldsOptions) {
    this.#options = options
  }

  /** Number of requests that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves with the turn; with null if `over` is aborted first. */
  async take(paths: Paths, under: Hold | null, over: AbortSignal, who: WhoHolds): Promise<Hold | null> {
    if (over.aborted) return null
    const hold: Hold = { paths, under, who }
    const turn = Promise.withResolvers<Hold | null>()
    const waiting: Waiting = { hold, take: () => turn.resolve(hold), behind: '' }
    const leave = () => {
      const at = this.#waiting.indexOf(waiting)
      if (at === -1) return
      this.#waiting.splice(at, 1)
      turn.resolve(null)
      this.#next()
    }
    over.addEventListener('abort', leave, { once: true })
    this.#waiting.push(waiting)
    this.#next()
    try {
      return await turn.promise
    } finally {
      over.removeEventListener('abort', leave)
    }
  }

  release(hold: Hold): void {
    this.#held.delete(hold)
    this.#next()
  }

  /** Grants all turns that need not wait any more. */
  #next(): void {
    const before: Hold[] = []
    for (const waiting of [...this.#waiting]) {
      if (this.#mayTake(waiting.hold, before)) {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        this.#held.add(waiting.hold)
        waiting.take()
      } else {
        this.#tell(waiting, before)
        before.push(waiting.hold)
      }
    }
  }

  #mayTake(hold: Hold, before: readonly Hold[]): boolean {
    const { under } = hold
    const held = beside(hold, this.#held)
    if (held.length >= (under === null ? this.#options.atOnce : 1)) return false
    return this.#inTheWay(hold, before).length === 0
  }

  /** Returns the earlier turns whose paths overlap with this one. */
  #inTheWay(hold: Hold, before: readonly Hold[]): Hold[] {
    const first = [...beside(hold, this.#held), ...beside(hold, before)]
    return first.filter(other => overlap(hold.paths, other.paths, this.#options.platform))
  }

  #tell(waiting: Waiting, before: readonly Hold[]): void {
    const { hold } = waiting
    const inTheWay = this.#inTheWay(hold, before)
    // Otherwise the only reason is the number of agents at work.
    const first = inTheWay.length > 0 ? inTheWay : beside(hold, this.#held)
    const agents = [...new Set(first.map(({ who }) => who.agent))]
    const behind = agents.join()
    if (behind === waiting.behind) return
    waiting.behind = behind
    hold.who.onBehind?.(agents)
  }
}

/** `behind`: the agents last reported to it. */
interface Waiting {
  hold: Hold
  take(): void
  behind: string
}

function beside({ under }: Hold, holds: Iterable<Hold>): Hold[] {
  return [...holds].filter(hold => hold.under === under)
}

/** True if a path is inside of one of these folders, or equals one. */
export function liesWithin(path: string, paths: Paths, platform: NodeJS.Platform): boolean {
  return paths === null || paths.some(folder => isBelow(comparable(path, platform), comparable(folder, platform)))
}

function overlap(some: Paths, others: Paths, platform: NodeJS.Platform): boolean {
  if (some === null) return others === null || others.length > 0
  if (others === null) return some.length > 0
  return some.some(path =>
    others.some(other => {
      return liesWithin(path, [other], platform) || liesWithin(other, [path], platform)
    }),
  )
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** Most folders for one agent, and most characters of each path. */
const MOST_PATHS = 20
const MOST_CHARACTERS = 300

interface ReadPathsOptions {
  /** Real path of the work directory. */
  directory: string
  platform: NodeJS.Platform
}

/**
 * Returns the folders for an agent, none twice or nested; null: the whole work directory. A sentence for the caller if one
 * is not allowed.
 */
export async function readPaths(
  written: Paths,
  { directory, platform }: ReadPathsOptions,
): Promise<{ paths: Paths } | { problem: string }> {
  if (written === null || written.length === 0) return { paths: null }
  if (written.length > MOST_PATHS) return { problem: `These are ${written.length} paths; name ${MOST_PATHS} at most.` }
  const paths: string[] = []
  for (const each of written) {
    const parts = partsOf(each, platform)
    const problem = problemOf(each, parts, platform) ?? (await problemOnDisk(directory, parts))
    if (problem !== null) return { problem: `${problem} No agent was started.` }
    if (parts.length === 0) return { paths: null }
    paths.push(parts.join('/'))
  }
  const outermost = paths.filter((path, at) => {
    return !paths.some((other, place) => {
      if (place === at || !liesWithin(path, [other], platform)) return false
      // Of two equal folders, keep the first.
      return place < at || !liesWithin(other, [path], platform)
    })
  })
  return { paths: outermost }
}

function partsOf(path: string, platform: NodeJS.Platform): string[] {
  const { sep } = pathsOf(platform)
  return path
    .trim()
    .replaceAll(sep, '/')
    .split('/')
    .filter(part => part !== '' && part !== '.')
}

function problemOf(path: string, parts: readonly string[], platform: NodeJS.Platform): string | null {
  const shown = JSON.stringify(path.length > 80 ? `${path.slice(0, 80).toWellFormed()}…` : path)
  if (path.length > MOST_CHARACTERS) return `The path ${shown} is longer than ${MOST_CHARACTERS} characters.`
  if (path.trim() === '') return 'A path is empty; name folders relative to the work directory.'
  if (/\p{Cc}/u.test(path) || !path.isWellFormed()) return `The path ${shown} has characters that no path should have.`
  if (isAbsolute(path.trim()) || win32.isAbsolute(path.trim()) || /^[a-z]:/i.test(path.trim())) {
    return `The path ${shown} is absolute; name folders relative to the work directory.`
  }
  if (parts.includes('..')) return `The path ${shown} leads out by ".."; name folders inside the work directory.`
  if (/[*?]/.test(path)) return `The path ${shown} is a pattern; name folders.`
  if (!parts.every(part => isFileName(part, platform)))
    return `The path ${shown} has a name that no folder can have here.`
  if (parts.some(isOwnFolder) || isInRuntime(parts))
    return `The path ${shown} lies in a folder of git or codemachine; leave it out.`
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
      // Create no folder where the caller means a file.
      return FILE_NAME.test(path) ? `"${path}" looks like a file; name the folder that it is in.` : null
  }
}

const FILE_NAME = /[^./]\.[a-z]\w{0,7}$/i

/** Mode of a new folder, as a person's own commands have it: the umask applies. */
const MODE = 0o777

/**
 * Creates missing folders that agents may write. Removes them when no agent has them any more and they are empty. One object
 * per session.
 */
export class GivenFolders {
  /** Real path of the work directory. */
  readonly #directory: string
  readonly #made = new Set<string>()
  readonly #given = new Set<readonly string[]>()
  #before: Promise<unknown> = Promise.resolve()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Creates the missing folders, relative to the work directory. Resolves with a sentence on an obstacle, or null. */
  give(folders: readonly string[]): Promise<string | null> {
    this.#given.add(folders)
    return this.#inOrder(() => this.#make(folders))
  }

  /** Releases the folders of an ended agent; pass the same list as to `give`. */
  takeBack(folders: readonly string[]): Promise<void> {
    this.#given.delete(folders)
    return this.#inOrder(() => this.#removeEmpty())
  }

  async #make(folders: readonly string[]): Promise<string | null> {
    for (const folder of folders) {
      try {
        const onMade = (path: string) => void this.#made.add(path)
        const obstacle = await makeFolderInside(this.#directory, join(folder), { mode: MODE, onMade })
        if (obstacle !== null) return `${obstacle.path} is no real folder, so nothing can be written in ${folder}.`
      } catch (error) {
        return `The folder ${folder} cannot be made: ${messageOf(error)}.`
      }
    }
    return null
  }

  /** Removes the innermost folders first, so that the outer ones are empty then. */
  async #removeEmpty(): Promise<void> {
    const inUse = new Set([...this.#given].flat().map(folder => join(folder)))
    for (const path of [...this.#made].sort((a, b) => b.length - a.length)) {
      if (inUse.has(path) || (await findObstacle(this.#directory, path)) !== null) continue
      await rmdir(join(this.#directory, path)).then(
        () => this.#made.delete(path),
        () => {},
      )
    }
  }

  /** Runs actions one at a time: otherwise one could remove the parent that another has just created. */
  #inOrder<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#before.then(action)
    this.#before = done.catch(() => {})
    return done
  }
}
