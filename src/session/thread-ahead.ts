import { isDeepStrictEqual } from 'node:util'
import type { Budget } from './budget.ts'
import type { Engine, PreparedRound } from './engine.ts'
import type { PersonAsked } from './person-asked.ts'
import type { SessionLog } from './session-log.ts'
import { higherEffort } from './stall.ts'
import type { Template, ThreadSpec } from './template.ts'

export interface ThreadAheadOptions {
  log: SessionLog
  template: Template
  engine: Engine
  asked: PersonAsked
  budget: Budget
}

/** The threads of a session's rounds, and of these at most one ahead: started while the present one works. */
export class ThreadAhead {
  readonly #options: ThreadAheadOptions
  #ahead: PreparedRound | null = null

  constructor(options: ThreadAheadOptions) {
    this.#options = options
  }

  /** Starts that of the round after the one that runs, if there may be one. */
  startNext(): void {
    const { log, template, asked, budget } = this.#options
    if (asked.endedBy !== null || asked.isPaused) return
    if (budget.limitReached(log.state.roundsUsed + 1) !== null) return
    const next = template.ahead(log.state)
    if (next) this.#start(next)
  }

  /** Has codex say what is used of the account, before the first round: it may have been used up elsewhere. */
  async lookAtUsage(): Promise<void> {
    const { log, template, asked, budget } = this.#options
    if (asked.endedBy !== null || asked.isPaused || budget.limitReached(log.state.roundsUsed) !== null) return
    const thread = template.ahead(log.state)
    if (thread === null) return
    const discard = () => this.discard()
    asked.stopping.addEventListener('abort', discard, { once: true })
    const limits = await this.#start(thread).limits()
    asked.stopping.removeEventListener('abort', discard)
    if (limits !== null) log.emit({ type: 'limits', ...limits })
  }

  /** The one that was started, if it is what is wanted; else another. From now on it is the caller's. */
  take(wanted: ThreadSpec): PreparedRound {
    const thread = this.#withEffort(wanted)
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead && isDeepStrictEqual(ahead.thread, thread)) return ahead
    ahead?.discard()
    return this.#options.engine.prepare(thread)
  }

  discard(): void {
    this.#ahead?.discard()
    this.#ahead = null
  }

  #start(thread: ThreadSpec): PreparedRound {
    this.#ahead ??= this.#options.engine.prepare(this.#withEffort(thread))
    return this.#ahead
  }

  /** A session that gets nowhere thinks harder. */
  #withEffort(thread: ThreadSpec): ThreadSpec {
    if (this.#options.log.state.stall.remedy !== 'more-effort') return thread
    return { ...thread, effort: higherEffort(thread.effort) }
  }
}
