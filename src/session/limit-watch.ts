import type { Clock } from '../base/clock.ts'
import type { PreparedRound, RoundEvent } from './engine.ts'
import type { WindDownLimit } from './limits.ts'
import { limitReached, renewalOf } from './limits.ts'
import { WIND_DOWN } from './notices.ts'
import type { SessionLog } from './session-log.ts'
import { sessionTokens } from './session-tokens.ts'

/** What a round may take, beside the session's own limits. */
export interface LimitPolicy {
  /** What an agent gets to come to a safe stop, ms. */
  graceMs: number
  /** The part of the account's usage window that may be used, 0 to 100; null: all. */
  maxUsage: number | null
  /** How long the session may still be worked on, ms; infinity: no limit. */
  timeLeftMs: number
  /** What the agent is asked when it has to come to its end; left out: to leave the work in a good state. */
  windDown?: string
  /** Called when it has to. */
  onWindDown?(): void
}

export interface LimitWatchOptions extends LimitPolicy {
  log: SessionLog
  clock: Clock
}

/** Looks whether the running round reaches a limit; then the agent is asked to stop safely, and interrupted if it does not. */
export class LimitWatch {
  readonly #prepared: PreparedRound
  readonly #round: number
  readonly #options: LimitWatchOptions
  readonly #safely: (action: () => void) => void
  readonly #ended = new AbortController()
  #state: 'watching' | 'untold' | 'told' = 'watching'

  constructor(
    prepared: PreparedRound,
    round: number,
    options: LimitWatchOptions,
    safely: (action: () => void) => void,
  ) {
    this.#prepared = prepared
    this.#round = round
    this.#options = options
    this.#safely = safely
    if (Number.isFinite(options.timeLeftMs)) void this.#after(options.timeLeftMs, () => this.#windDown('time'))
  }

  look(event: RoundEvent): void {
    // A limit that was reached before the turn had started.
    if (this.#state === 'untold' && event.type === 'turn-started') void this.#tell()
    if (this.#state !== 'watching') return
    const { log, maxUsage, clock } = this.#options
    const { state } = log
    if (event.type === 'usage') {
      const used = { rounds: 0, timeMs: 0, tokens: sessionTokens(state) }
      if (limitReached(state.limits, used) === 'tokens') this.#windDown('tokens')
    } else if (event.type === 'limits' && maxUsage !== null) {
      const windows = [state.primaryWindow, state.secondaryWindow]
      if (renewalOf(windows, maxUsage, clock.now()) !== null) this.#windDown('usage')
    }
  }

  end(): void {
    this.#ended.abort()
  }

  #windDown(limit: WindDownLimit): void {
    if (this.#state !== 'watching' || this.#ended.signal.aborted) return
    this.#state = 'untold'
    const { graceMs, log } = this.#options
    this.#safely(() => log.emit({ type: 'winding-down', round: this.#round, limit, graceMs }))
    this.#options.onWindDown?.()
    void this.#tell()
    void this.#after(graceMs, () => void this.#prepared.interrupt())
  }

  async #tell(): Promise<void> {
    if (await this.#prepared.steer(this.#options.windDown ?? WIND_DOWN)) this.#state = 'told'
  }

  async #after(ms: number, action: () => void): Promise<void> {
    const { signal } = this.#ended
    // A timer cannot be set to more than 24 days, and no round takes as long.
    await this.#options.clock.wait(Math.min(Math.max(0, ms), 2 ** 31 - 1), signal)
    if (!signal.aborted) action()
  }
}
