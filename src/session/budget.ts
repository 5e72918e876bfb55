import type { Clock } from '../base/clock.ts'
import { limitReached } from '../core/events/outcome.ts'
import { sessionTokens } from '../core/state/state.ts'
import type { RunnerOptions, WorkTree } from './options.ts'

/** Tracks the used part of a session's limits, and bounds its looks at the files. */
export class Budget {
  readonly #options: Pick<RunnerOptions, 'log' | 'clock' | 'policy' | 'asked'>
  readonly #startedAt: number

  constructor(options: Pick<RunnerOptions, 'log' | 'clock' | 'policy' | 'asked'>) {
    this.#options = options
    this.#startedAt = options.clock.monotonic()
  }

  /** Time that the session has taken, ms; includes all waits, also those for a person. */
  get elapsedMs(): number {
    const { log, clock } = this.#options
    return log.state.workedMs + clock.monotonic() - this.#startedAt
  }

  /** Time left, ms; infinity: no limit. */
  get timeLeftMs(): number {
    return (this.#options.log.state.limits.timeMs ?? Number.POSITIVE_INFINITY) - this.elapsedMs
  }

  /** Time for work that a reached limit must not interrupt: the time left, at least the grace, ms. */
  get leastMs(): number {
    return Math.max(this.timeLeftMs, this.#options.policy.graceMs)
  }

  /** Usable percentage of the account's usage limit; null: all, or a person ended the wait for it. */
  get maxUsage(): number | null {
    const { clock, policy, log } = this.#options
    return log.state.waivedUntil > clock.now() ? null : policy.maxUsage
  }

  /** Returns the limit that is reached when this many rounds are used; null: none. */
  limitReached(rounds: number): ReturnType<typeof limitReached> {
    const { state } = this.#options.log
    return limitReached(state.limits, {
      rounds,
      timeMs: this.elapsedMs,
      tokens: sessionTokens(state),
      cost: state.cost.amount,
    })
  }

  /** Runs a look at the files that ends with the session. */
  bounded<T>(look: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { log, clock, asked } = this.#options
    const { savepoint, running, last } = log.state
    const isFirst = savepoint === null && running === null && last === null
    // The result of a round or gate is read even when the time is over.
    const mostMs = isFirst ? this.timeLeftMs : this.leastMs
    return lookNoLongerThan(look, { clock, ending: asked.ending, mostMs })
  }

  /** Returns the work tree with each look bounded by `bounded`. */
  bounding(workTree: WorkTree): WorkTree {
    return {
      take: (_, how) => this.bounded(signal => workTree.take(signal, how)),
      changed: (before, after) => workTree.changed(before, after),
    }
  }
}

/** Time limits of a look at the work tree. */
interface LookLimits {
  clock: Clock
  /** Aborted when the session must end; a look may then take another `END_LOOK_MS`. */
  ending: AbortSignal
  /** Time left to the session, ms; infinity: no limit. */
  mostMs: number
}

/** Bounds a look at the files: aborts its signal after `mostMs`, or `END_LOOK_MS` after the session must end. */
export async function lookNoLongerThan<T>(
  look: (signal: AbortSignal) => Promise<T>,
  { clock, ending, mostMs }: LookLimits,
): Promise<T> {
  const [done, over] = [new AbortController(), new AbortController()]
  const giveUpAfter = async (ms: number) => {
    await clock.wait(Math.min(Math.max(0, ms), MOST_LOOK_MS), done.signal)
    over.abort()
  }
  const end = () => void giveUpAfter(END_LOOK_MS)
  if (ending.aborted) end()
  else ending.addEventListener('abort', end)
  if (Number.isFinite(mostMs)) void giveUpAfter(mostMs)
  try {
    return await look(over.signal)
  } finally {
    ending.removeEventListener('abort', end)
    done.abort()
  }
}

/** Longest look at the files after a person has ended the session, ms: it shows what the round left. */
const END_LOOK_MS = 20_000
const MOST_LOOK_MS = 24 * 60 * 60 * 1000
