import type { Clock } from '../base/clock.ts'
import type { SessionState } from '../session/state.ts'

/** Whoever has just paused a session, or broken in on it, is still there; ms. */
const LONG_HOLD_MS = 5 * 60_000

/** Sees once of each pause that it has lasted for a while. */
export class HoldWatch {
  readonly #clock: Clock
  #wait = new AbortController()
  #isTold = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** To be called with the session after each of its events. */
  follow({ heldSince, pausedAt }: SessionState): void {
    if (heldSince === null) this.end()
    if (pausedAt === null) this.#isTold = false
  }

  /** The session is held from now on: calls back after a while, if it still is, and nobody was told before. */
  begin(tell: () => void): void {
    this.end()
    const { signal } = this.#wait
    void this.#clock.wait(LONG_HOLD_MS, signal).then(() => {
      if (signal.aborted || this.#isTold) return
      this.#isTold = true
      tell()
    })
  }

  end(): void {
    this.#wait.abort()
    this.#wait = new AbortController()
  }
}
