import { askWhoRuns, type LockHolder } from '../../session/run-lock.ts'
import type { FeedOptions } from './fed.ts'

/** Who runs in the work directory; `unknown`: that cannot be told. */
export type Runner = LockHolder | null | 'unknown'

/** A run that goes away is noticed within this time, ms. */
const LOOK_MS = 1000

/** Who runs in the work directory, looked up at most once a second. */
export class RunLookout {
  readonly #options: FeedOptions
  #lookedAt = Number.NEGATIVE_INFINITY
  #runner: Runner = null
  #isTold = false

  constructor(options: FeedOptions) {
    this.#options = options
  }

  async look(): Promise<Runner> {
    const { records, platform, clock } = this.#options
    const now = clock.monotonic()
    if (now - this.#lookedAt < LOOK_MS) return this.#runner
    this.#lookedAt = now
    this.#runner = await askWhoRuns(records.lock, platform, problem => this.#tell(problem))
    return this.#runner
  }

  #tell(problem: string): void {
    if (!this.#isTold) this.#options.onProblem(problem)
    this.#isTold = true
  }
}
