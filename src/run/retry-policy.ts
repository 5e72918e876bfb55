import type { Clock } from '../base/clock.ts'
import { limitReached, type RoundOutcome, renewalOf, type WaitReason } from '../core/events/outcome.ts'
import {
  type AfterRound,
  type AfterRoundOptions,
  afterRenewal,
  afterRound,
  waitAtMost,
} from '../core/rules/after-round.ts'
import { sessionTokens } from '../core/state/state.ts'
import type { PersonAsked } from './person.ts'
import type { SessionLog } from './session-log.ts'

export interface RetryPolicyOptions {
  log: SessionLog
  clock: Clock
  asked: PersonAsked
  random(): number
  maxWaitMs: number
  maxUsage: number | null
}

/**
 * Decides after each round whether to retry, and when: back-off, usage-window resets, the person's `retry`. All times in
 * Unix ms.
 */
export class RetryPolicy {
  readonly #options: RetryPolicyOptions
  /** Usage windows that are renewed by then are not waited for; Unix time, ms. */
  #waivedUntil = 0

  constructor(options: RetryPolicyOptions) {
    this.#options = options
  }

  /** The per cent of the account's usage limit that may be used; null: all of it, or a person ended the wait for it. */
  get maxUsage(): number | null {
    return this.#waivedUntil > this.#options.clock.now() ? null : this.#options.maxUsage
  }

  /** The action after a round that ended with this outcome. */
  after(outcome: RoundOutcome): AfterRound {
    return afterRound(outcome, this.#options.log.state, this.#moment())
  }

  /**
   * The wait, or the end, if as much of the account's usage limit is used as may be; null if less is used.
   * @param isFirst no round has run yet: then a window that is full is not tried either
   */
  beforeRound(isFirst: boolean): { reason: WaitReason; cause: RoundOutcome; after: AfterRound } | null {
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
    const after = waitAtMost(cause, log.state, afterRenewal(renewedAt, moment.random), moment)
    return { reason: share === 100 ? 'usage-limit' : 'max-usage', cause, after }
  }

  /** Journals the wait and waits, at most `mostMs`. */
  async wait(reason: WaitReason, cause: RoundOutcome, until: number, mostMs: number): Promise<void> {
    const { log } = this.#options
    const round = log.state.roundsUsed + 1
    log.emit({ type: 'waiting', round, reason, cause, until: new Date(until).toISOString() })
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

/** A machine that slept wakes up late; so the time of day is looked at this often. */
const SLICE_MS = 60_000

interface WaitOptions {
  clock: Clock
  /** Ends the wait early. */
  signal: AbortSignal
  /** Called once a minute with what is left, ms. */
  onSlice(leftMs: number): void
}

/**
 * Waits until a moment of the day, Unix time in ms; a machine that sleeps meanwhile does not prolong it, and a clock
 * that is set back does not either.
 */
async function waitUntil(until: number, { clock, signal, onSlice }: WaitOptions): Promise<void> {
  const end = clock.monotonic() + (until - clock.now())
  for (;;) {
    const left = Math.min(until - clock.now(), end - clock.monotonic())
    if (!(left > 0) || signal.aborted) return
    await clock.wait(Math.min(left, SLICE_MS), signal)
    const stillLeft = until - clock.now()
    if (!signal.aborted && stillLeft > 0) onSlice(stillLeft)
  }
}

/** What of its limits a session has used while it runs. */
export class Budget {
  readonly #log: SessionLog
  readonly #clock: Clock
  readonly #asked: PersonAsked
  readonly #startedAt: number
  readonly #heldBefore: number

  constructor({ log, clock, asked }: { log: SessionLog; clock: Clock; asked: PersonAsked }) {
    this.#log = log
    this.#clock = clock
    this.#asked = asked
    this.#startedAt = clock.monotonic()
    this.#heldBefore = asked.heldMs
  }

  /** How long the session has been worked on, ms; not counted is the time for which a person had it held. */
  get elapsedMs(): number {
    const held = this.#asked.heldMs - this.#heldBefore
    return this.#log.state.workedMs + this.#clock.monotonic() - this.#startedAt - held
  }

  /** Infinity if there is no limit of time. */
  get timeLeftMs(): number {
    return (this.#log.state.limits.timeMs ?? Number.POSITIVE_INFINITY) - this.elapsedMs
  }

  /** The limit that is reached when this many rounds are used; null if none is. */
  limitReached(rounds: number): ReturnType<typeof limitReached> {
    const { state } = this.#log
    return limitReached(state.limits, { rounds, timeMs: this.elapsedMs, tokens: sessionTokens(state) })
  }
}
