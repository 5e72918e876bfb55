import { isDeepStrictEqual } from 'node:util'
import type { PreparedRound, ThreadSpec } from '../core/engine.ts'
import { higherEffort } from '../core/rules/stall.ts'
import { inTemplate, type Template } from '../core/template.ts'
import type { Budget } from './budget.ts'
import type { RunnerOptions } from './options.ts'
import type { RoundProviders } from './providers/round-providers.ts'
import type { SessionLog } from './session-log.ts'
import { withoutSecrets } from './shell/session-shell.ts'

/** Longest wait of the first round for the account's usage, ms. A later problem appears in the round. */
const USAGE_MS = 15_000
/** Age at which a fingerprint is taken again before a round, ms. */
const STALE_MS = 1_000

/** Prepares the threads of a session's rounds; starts at most one ahead, during the running round. */
export class ThreadAhead {
  readonly #options: RunnerOptions
  readonly #budget: Budget
  readonly #providers: RoundProviders
  #ahead: PreparedRound | null = null
  #usage: Promise<void> = Promise.resolve()

  constructor(options: RunnerOptions, budget: Budget, providers: RoundProviders) {
    this.#options = options
    this.#budget = budget
    this.#providers = providers
  }

  /** Starts the thread of the next round, if there may be one. */
  startNext(): void {
    const { log, template, asked } = this.#options
    if (asked.endedBy !== null || asked.isPaused) return
    if (this.#budget.limitReached(log.state.roundsUsed + 1) !== null) return
    const next = aheadOf(log, template)
    if (next) this.#start(this.#providers.complete(next))
  }

  /** Asks codex for the account's usage before the first round: other programs may have used it up. */
  lookAtUsage(): void {
    this.#usage = this.#lookAtUsage()
    // `waitForUsage` reports the error.
    this.#usage.catch(() => {})
  }

  /** Waits for the account's usage, if it was asked for. True if that took so long that files may have changed. */
  async waitForUsage(): Promise<boolean> {
    const { clock } = this.#options
    const from = clock.monotonic()
    await this.#usage
    return clock.monotonic() - from > STALE_MS
  }

  async #lookAtUsage(): Promise<void> {
    const { log, clock, template, asked } = this.#options
    if (asked.endedBy !== null || asked.isPaused || this.#budget.limitReached(log.state.roundsUsed) !== null) return
    const wanted = aheadOf(log, template)
    const thread = wanted && this.#providers.complete(wanted)
    // Other providers do not use the account.
    if (thread === null || thread.provider !== undefined) return
    const answered = new AbortController()
    const late = clock.wait(USAGE_MS, AbortSignal.any([answered.signal, asked.stopping])).then(() => null)
    const prepared = this.#start(thread)
    const limits = await Promise.race([prepared.limits(), late])
    answered.abort()
    // The session may have ended meanwhile, so check again.
    if (limits !== null && this.#ahead === prepared)
      log.emit(this.#options.engines.reported({ type: 'limits', ...limits }, thread))
  }

  /** Returns the thread started ahead if it fits, otherwise a new one. The caller owns it from now on. */
  take(wanted: ThreadSpec): PreparedRound {
    const thread = this.#asNow(wanted)
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead && isDeepStrictEqual(ahead.thread, thread)) return ahead
    ahead?.discard()
    return this.#prepare(thread)
  }

  /** Ends the thread started ahead, even if its specification was not known yet. */
  discard(): void {
    this.#ahead?.discard()
    this.#ahead = null
    this.#options.engines.cool()
  }

  #start(thread: ThreadSpec): PreparedRound {
    this.#ahead ??= this.#prepare(this.#asNow(thread))
    return this.#ahead
  }

  /** Prepares a thread. Ends a process that was started before a thread was known and is unused: it would wait all night. */
  #prepare(thread: ThreadSpec): PreparedRound {
    const { engines } = this.#options
    const prepared = engines.prepare(thread)
    engines.cool()
    return prepared
  }

  /** Returns the thread with its current unreadable paths, which change during the session. */
  #asNow(thread: ThreadSpec): ThreadSpec {
    return withoutSecrets(this.#withEffort(thread), this.#options.deniedPaths())
  }

  /** Raises the reasoning effort of a stalled session. On a provider it does not: its model may not support that. */
  #withEffort(thread: ThreadSpec): ThreadSpec {
    if (thread.provider !== undefined && thread.effort === null) return thread
    if (this.#options.log.state.stall.remedy !== 'more-effort') return thread
    return { ...thread, effort: higherEffort(thread.effort) }
  }
}

function aheadOf({ state }: SessionLog, template: Template): ThreadSpec | null {
  return inTemplate(state.template, 'ahead', () => template.ahead(state))
}
