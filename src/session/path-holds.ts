/** Folders relative to the work directory, with `/` between their names; null: the whole work directory, empty: none. */
export type Paths = readonly string[] | null

/** A turn that was taken: nobody else writes in its paths, but for who takes a turn under it. */
export interface Hold {
  readonly paths: Paths
  /** That of whoever asked for this one; null: nobody's. */
  readonly under: Hold | null
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
  readonly #waiting: { hold: Hold; take(): void }[] = []

  constructor(options: PathHoldsOptions) {
    this.#options = options
  }

  /** How many wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when it has its turn; with null if `over` is aborted before. */
  async take(paths: Paths, under: Hold | null, over: AbortSignal): Promise<Hold | null> {
    if (over.aborted) return null
    const hold: Hold = { paths, under }
    const turn = Promise.withResolvers<Hold | null>()
    const waiting = { hold, take: () => turn.resolve(hold) }
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
        before.push(waiting.hold)
      }
    }
  }

  #mayTake({ paths, under }: Hold, before: readonly Hold[]): boolean {
    const { atOnce, ignoresCase } = this.#options
    const beside = (holds: Iterable<Hold>) => [...holds].filter(hold => hold.under === under)
    const held = beside(this.#held)
    if (held.length >= (under === null ? atOnce : 1)) return false
    return ![...held, ...beside(before)].some(other => overlap(paths, other.paths, ignoresCase))
  }
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
