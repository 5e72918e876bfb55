import type { Clock } from '../base/clock.ts'
import { limitReached } from '../core/events/outcome.ts'
import { sessionTokens } from '../core/state/state.ts'
import type { RunnerOptions, WorkTree } from './options.ts'

/** What of its limits a session has used while it runs, and what bounds its looks at the files. */
export class Budget {
  readonly #options: Pick<RunnerOptions, 'log' | 'clock' | 'policy' | 'asked'>
  readonly #startedAt: number
  /** Usage windows that are renewed by then are not waited for; Unix time, ms. */
  waivedUntil = 0

  constructor(options: Pick<RunnerOptions, 'log' | 'clock' | 'policy' | 'asked'>) {
    this.#options = options
    this.#startedAt = options.clock.monotonic()
  }

  /** How long the session has been worked on, ms; what it waited for counts, for a person too. */
  get elapsedMs(): number {
    const { log, clock } = this.#options
    return log.state.workedMs + clock.monotonic() - this.#startedAt
  }

  /** Infinity if there is no limit of time. */
  get timeLeftMs(): number {
    return (this.#options.log.state.limits.timeMs ?? Number.POSITIVE_INFINITY) - this.elapsedMs
  }

  /** The time for what is not left undone for a limit that is reached in the middle of it: what is left, and at least the grace, ms. */
  get leastMs(): number {
    return Math.max(this.timeLeftMs, this.#options.policy.graceMs)
  }

  /** The per cent of the account's usage limit that may be used; null: all of it, or a person ended the wait for it. */
  get maxUsage(): number | null {
    const { clock, policy } = this.#options
    return this.waivedUntil > clock.now() ? null : policy.maxUsage
  }

  /** The limit that is reached when this many rounds are used; null if none is. */
  limitReached(rounds: number): ReturnType<typeof limitReached> {
    const { state } = this.#options.log
    return limitReached(state.limits, {
      rounds,
      timeMs: this.elapsedMs,
      tokens: sessionTokens(state),
      cost: state.cost.amount,
    })
  }

  /** A look at the files that does not outlast the session. */
  bounded<T>(look: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { log, clock, asked } = this.#options
    const { savepoint, running, last } = log.state
    const isFirst = savepoint === null && running === null && last === null
    // What a round or a gate has left is looked at even when the time is over.
    const mostMs = isFirst ? this.timeLeftMs : this.leastMs
    return lookNoLongerThan(look, { clock, ending: asked.ending, mostMs })
  }

  /** The work tree, each look at which is bounded so. */
  bounding(workTree: WorkTree): WorkTree {
    return {
      take: (_, how) => this.bounded(signal => workTree.take(signal, how)),
      changed: (before, after) => workTree.changed(before, after),
    }
  }
}

/** How long a look at the work tree may take. */
interface LookLimits {
  clock: Clock
  /** Aborted when the session is to end; a look may still take `END_LOOK_MS`. */
  ending: AbortSignal
  /** What is left of the session's time, ms; infinite without a limit. */
  mostMs: number
}

/** Bounds a look at the files by the time of the session, and by `END_LOOK_MS` once it is to end: its signal is aborted then. */
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

/** So long the files may be looked at after a person has ended the session, ms: what the round left is to be known. */
const END_LOOK_MS = 20_000
const MOST_LOOK_MS = 24 * 60 * 60 * 1000
