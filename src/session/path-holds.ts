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
export interface WhoHolds {
  agent: string
  /** Called with the agents that have to end first, while it has no turn, each time that they are others. */
  onBehind?(agents: readonly string[]): void
}

export interface PathHoldsOptions {
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
