import type { Clock } from '../base/clock.ts'
import { limitReached } from './limits.ts'
import type { PersonAsked } from './person-asked.ts'
import type { SessionLog } from './session-log.ts'
import { sessionTokens } from './session-tokens.ts'

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

  /** The limit that is reached once so many rounds are used. */
  limitReached(rounds: number): ReturnType<typeof limitReached> {
    const { state } = this.#log
    return limitReached(state.limits, { rounds, timeMs: this.elapsedMs, tokens: sessionTokens(state) })
  }
}
