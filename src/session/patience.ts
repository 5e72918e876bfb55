import type { Clock } from '../base/clock.ts'
import { type AfterRound, type AfterRoundOptions, afterRenewal, afterRound, waitAtMost } from './after-round.ts'
import { renewalOf } from './limits.ts'
import type { RoundOutcome } from './outcome.ts'
import type { PersonAsked } from './person-asked.ts'
import type { SessionLog } from './session-log.ts'
import { waitUntil } from './wait.ts'

export interface PatienceOptions {
  log: SessionLog
  clock: Clock
  asked: PersonAsked
  random(): number
  maxWaitMs: number
  maxUsage: number | null
}

/** What a session waits for between two rounds: when, how long, and what ends it early. */
export class Patience {
  readonly #options: PatienceOptions
  /** Usage windows that are renewed by then are not waited for; Unix time, ms. */
  #waivedUntil = 0

  constructor(options: PatienceOptions) {
    this.#options = options
  }

  /** The part of the account's usage that may be used, 0 to 100; null: all of it, or a person did not want to wait. */
  get maxUsage(): number | null {
    return this.#waivedUntil > this.#options.clock.now() ? null : this.#options.maxUsage
  }

  /** What is to be done after a round that ended so. */
  after(outcome: RoundOutcome): AfterRound {
    return afterRound(outcome, this.#options.log.state, this.#moment())
  }

  /**
   * What is to be done if as much of the account's usage is used as the person allows; null if it is not.
   * @param isFirst no round has run yet: then a window that is full is not tried either
   */
  beforeRound(isFirst: boolean): { cause: RoundOutcome; after: AfterRound } | null {
    const { clock, log } = this.#options
    const share = this.#options.maxUsage ?? (isFirst && !log.state.hasCredits ? 100 : null)
    if (share === null) return null
    const { primaryWindow, secondaryWindow } = log.state
    const renewedAt = renewalOf([primaryWindow, secondaryWindow], share, clock.now())
    if (renewedAt === null || renewedAt <= this.#waivedUntil) return null
    const used = Math.max(...[primaryWindow, secondaryWindow].map(window => window?.usedPercent ?? 0))
    const message =
      share === 100 ? 'The usage limit is reached.' : `${used} % of it are used, and --max-usage is ${share} %.`
    const cause: RoundOutcome = { class: 'window', message }
    const moment = this.#moment()
    return { cause, after: waitAtMost(cause, log.state, afterRenewal(renewedAt, moment.random), moment) }
  }

  /** Journals the wait and waits, at most `mostMs`. */
  async wait(cause: RoundOutcome, until: number, mostMs: number): Promise<void> {
    const { log } = this.#options
    const round = log.state.roundsUsed + 1
    log.emit({ type: 'waiting', round, cause, until: new Date(until).toISOString() })
    await this.waitOn(until, mostMs)
  }

  /** Waits out what has been journaled as `waiting`, at most `mostMs`, and never longer than a person allows. */
  async waitOn(until: number, mostMs: number): Promise<void> {
    const { clock, asked, log, maxWaitMs } = this.#options
    const now = clock.now()
    const end = Math.min(until, now + Math.max(0, mostMs), now + maxWaitMs)
    const reason = await asked.duringWait(signal =>
      waitUntil(end, { clock, signal, onSlice: leftMs => log.live({ type: 'still-waiting', leftMs }) }),
    )
    // A person who does not want to wait knows of the limit.
    if (reason === 'retry') this.#waivedUntil = until
    log.emit({ type: 'wait-ended', round: log.state.roundsUsed + 1, reason })
  }

  #moment(): AfterRoundOptions {
    const { clock, random, maxWaitMs } = this.#options
    return { now: clock.now(), random: random(), maxWaitMs }
  }
}
