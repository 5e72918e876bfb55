import type { Clock } from '../../base/clock.ts'
import { NOT_KNOWN, sendCommand } from '../../session/control.ts'

/** What a run takes as "somebody still watches" holds for a minute. */
const BEAT_MS = 30_000
/** A run that opens does not take commands yet. */
const SOON_MS = 2000
const MOST_SOON = 3
const REPLY_MS = 2000

/** Lets a run know that somebody watches it. Disposing of it takes back what has not been taken yet. */
export class Attendance implements AsyncDisposable {
  readonly #control: string
  readonly #clock: Clock
  #due = Number.NEGATIVE_INFINITY
  #missed = 0
  readonly #leaving = new AbortController()
  #sending: Promise<void> = Promise.resolve()

  /** @param control the directory of the run's commands */
  constructor(control: string, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /** Says so if it is time to. Call it while somebody runs; nothing waits for the answer. */
  keep(): void {
    const now = this.#clock.monotonic()
    if (now < this.#due) return
    this.#due = now + BEAT_MS
    this.#sending = this.#send()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort()
    await this.#sending
  }

  async #send(): Promise<void> {
    const at = new Date(this.#clock.now()).toISOString()
    const how = { clock: this.#clock, timeoutMs: REPLY_MS, signal: this.#leaving.signal }
    const sent = sendCommand(this.#control, { type: 'watch', at }, how)
    const reply = await sent.catch(() => null)
    // An older version: it will never know.
    if (reply?.message === NOT_KNOWN) {
      this.#due = Number.POSITIVE_INFINITY
      return
    }
    const isTaken = reply?.delivered ?? false
    this.#missed = isTaken ? 0 : this.#missed + 1
    if (!isTaken && this.#missed <= MOST_SOON) this.#due = this.#clock.monotonic() + SOON_MS
  }
}
