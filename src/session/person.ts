import type { EndedBy } from '../core/events/outcome.ts'

/** Requests of a person to a running session, by a signal or from another terminal, and the waits on them. */
export class PersonAsked {
  #ending = new AbortController()
  #stopping = new AbortController()
  #endsNow: EndedBy | null = null
  #stops = false
  #skips = false
  #paused = false
  /** True after an interrupt or a request to change the plan: applies to this session only. */
  #holds = false
  #changed = new AbortController()
  #wait: AbortController | null = null

  /** @param signal aborted with the name of the signal that the process got */
  constructor(signal: AbortSignal) {
    const end = () => this.endNow(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  }

  /** Aborted when the session must end at once; a new signal per session. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Aborted when the session must end, at once or after this round; a new signal per session. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** The request that ends the session now, between two rounds; null: it continues. */
  get endedBy(): EndedBy | null {
    if (this.#endsNow !== null) return this.#endsNow
    if (this.#skips) return 'skip'
    return this.#stops ? 'stop' : null
  }

  get isPaused(): boolean {
    return this.#paused || this.#holds
  }

  /** True after an explicit pause: the session then never continues by itself. */
  get isHeldByPause(): boolean {
    return this.#paused
  }

  /** Aborted when a request changes; then replaced by a new signal. */
  get changed(): AbortSignal {
    return this.#changed.signal
  }

  endNow(by: EndedBy): void {
    this.#endsNow ??= by
    this.#end()
  }

  stopAfterRound(): void {
    this.#stops = true
    this.#stopping.abort()
    this.#wait?.abort()
    this.#change()
  }

  /** Ends this session at once and cancels a pause, so that the next one can start. */
  skip(): void {
    this.#skips = true
    this.#paused = false
    this.#end()
  }

  /** Forgets the requests for the ended session only; all others remain. */
  forgetSession(): void {
    this.#holds = false
    if (!this.#skips) return
    this.#skips = false
    this.#ending = new AbortController()
    this.#stopping = new AbortController()
    if (this.#endsNow !== null) this.#end()
    else if (this.#stops) this.stopAfterRound()
  }

  pause(): void {
    this.#paused = true
    this.#change()
  }

  unpause(): void {
    this.#paused = false
    this.#holds = false
    this.#change()
  }

  /** Holds this session; a requested change of plan can still run. */
  hold(): void {
    this.#holds = true
    this.#change()
  }

  /** Ends the current wait; false if there is none. */
  retry(): boolean {
    const { signal } = this.#wait ?? {}
    if (!signal || signal.aborted) return false
    this.#wait?.abort()
    return true
  }

  /** Runs a wait with a signal that `retry` and each end abort. */
  async duringWait(action: (signal: AbortSignal) => Promise<void>): Promise<'over' | 'retry' | 'stopped'> {
    this.#wait = new AbortController()
    const { signal } = this.#wait
    try {
      if (this.endedBy === null) await action(AbortSignal.any([signal, this.#ending.signal]))
      if (this.endedBy !== null) return 'stopped'
      return signal.aborted ? 'retry' : 'over'
    } finally {
      this.#wait = null
    }
  }

  #end(): void {
    this.#ending.abort()
    this.#stopping.abort()
    this.#change()
  }

  #change(): void {
    const changed = this.#changed
    this.#changed = new AbortController()
    changed.abort()
  }
}
