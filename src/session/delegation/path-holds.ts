import { rmdir } from 'node:fs/promises'
import { isAbsolute, join, win32 } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { findObstacle, makeFolderInside } from '../../workspace/files/inside-directory.ts'
import { isInRuntime } from '../../workspace/files/write-all.ts'

/** Folders relative to the work directory, with `/` between their names; null: the whole work directory, empty: none. */
export type Paths = readonly string[] | null

/** A turn that was taken: nobody else writes in its paths, but for who takes a turn under it. */
export interface Hold {
  readonly paths: Paths
  /** That of whoever asked for this one; null: nobody's. */
  readonly under: Hold | null
  readonly who: WhoHolds
}

/** Who wants a turn. */
interface WhoHolds {
  agent: string
  /** Called with the agents that have to end first, while it has no turn, each time that they are others. */
  onBehind?(agents: readonly string[]): void
}

interface PathHoldsOptions {
  /** How many work at the same time, those under others not counted: who waits for another does not work. */
  atOnce: number
  /** Whether `a` and `A` are the same folder. */
  ignoresCase: boolean
}

/**
 * Whose turn it is to write where. Those whose paths overlap wait for each other, first come first served: who waits
 * holds up whoever comes later and overlaps with it, and nobody else. Under a hold one at a time has its turn.
 */
export class PathHolds {
  readonly #options: PathHoldsOptions
  readonly #held = new Set<Hold>()
  readonly #waiting: Waiting[] = []

  constructor(options: PathHoldsOptions) {
    this.#options = options
  }

  /** How many wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when it has its turn; with null if `over` is aborted before. */
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

  /** Gives their turn to all who need not wait any more. */
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

  /** Those that want to write where this one does, and come first. */
  #inTheWay(hold: Hold, before: readonly Hold[]): Hold[] {
    const first = [...beside(hold, this.#held), ...beside(hold, before)]
    return first.filter(other => overlap(hold.paths, other.paths, this.#options.ignoresCase))
  }

  #tell(waiting: Waiting, before: readonly Hold[]): void {
    const { hold } = waiting
    const inTheWay = this.#inTheWay(hold, before)
    // Else it is only that too many work already.
    const first = inTheWay.length > 0 ? inTheWay : beside(hold, this.#held)
    const agents = [...new Set(first.map(({ who }) => who.agent))]
    const behind = agents.join()
    if (behind === waiting.behind) return
    waiting.behind = behind
    hold.who.onBehind?.(agents)
  }
}

/** `behind`: whom it was last told to wait for. */
interface Waiting {
  hold: Hold
  take(): void
  behind: string
}

function beside({ under }: Hold, holds: Iterable<Hold>): Hold[] {
  return [...holds].filter(hold => hold.under === under)
}

/** Whether a path lies in one of these folders, or is one. */
export function liesWithin(path: string, paths: Paths, ignoresCase: boolean): boolean {
  return paths === null || paths.some(folder => isWithin(keyOf(folder, ignoresCase), keyOf(path, ignoresCase)))
}

function overlap(some: Paths, others: Paths, ignoresCase: boolean): boolean {
  if (some === null) return others === null || others.length > 0
  if (others === null) return some.length > 0
  return some.some(path =>
    others.some(other => {
      return liesWithin(path, [other], ignoresCase) || liesWithin(other, [path], ignoresCase)
    }),
  )
}

function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** A file system that does not tell cases apart does not tell apart how a letter is composed, either. */
function keyOf(path: string, ignoresCase: boolean): string {
  return ignoresCase ? path.normalize().toLowerCase() : path
}

/** The most folders that one agent may be given, and the most characters of each. */
const MOST_PATHS = 20
const MOST_CHARACTERS = 300

/** Whose first part is not for agents that were given folders: what codemachine and git keep there. */
const OURS = '.codemachine'
const GIT = '.git'

interface ReadPathsOptions {
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
  if (parts[0]?.toLowerCase() === OURS || isInRuntime(parts))
    return `The path ${shown} lies in codemachine's own folder; leave it out.`
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

/** As a person's own commands would make them: less what their umask takes. */
const MODE = 0o777

/**
 * The folders of the project that agents were given to write in and that were not there: made when the first of them
 * begins, and taken away when nobody is given them any more and nobody has put anything in. One object for a session.
 */
export class GivenFolders {
  /** The work directory's real path. */
  readonly #directory: string
  readonly #made = new Set<string>()
  readonly #given = new Set<readonly string[]>()
  #before: Promise<unknown> = Promise.resolve()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Makes those that are missing, relative to the work directory; what is in the way, a sentence, or null. */
  give(folders: readonly string[]): Promise<string | null> {
    this.#given.add(folders)
    return this.#inOrder(() => this.#make(folders))
  }

  /** Those of an agent that has ended: the same list as they were given with. */
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

  /** The innermost first, so that those around them are empty then. */
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

  /** One would else take away what another has just made the way to. */
  #inOrder<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#before.then(action)
    this.#before = done.catch(() => {})
    return done
  }
}
