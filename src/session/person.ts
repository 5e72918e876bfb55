import type { EndedBy } from '../core/events/outcome.ts'

/** What a person has asked of a running session, by a signal or from another terminal, and what waits for it. */
export class PersonAsked {
  #ending = new AbortController()
  #stopping = new AbortController()
  #endsNow: EndedBy | null = null
  #stops = false
  #skips = false
  #paused = false
  /** Interrupted, or a change of plan asked for: that is of this session alone. */
  #holds = false
  #changed = new AbortController()
  #wait: AbortController | null = null

  /** @param signal aborted with the name of the signal that the process got */
  constructor(signal: AbortSignal) {
    const end = () => this.endNow(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  }

  /** Aborted when the session is to end at once; another one for each session. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Aborted when the session is to end, at once or after this round; another one for each session. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** By what the session is to end now, between two rounds; null if it goes on. */
  get endedBy(): EndedBy | null {
    if (this.#endsNow !== null) return this.#endsNow
    if (this.#skips) return 'skip'
    return this.#stops ? 'stop' : null
  }

  get isPaused(): boolean {
    return this.#paused || this.#holds
  }

  /** Whether it was paused as such: then it never goes on by itself. */
  get isHeldByPause(): boolean {
    return this.#paused
  }

  /** Aborted when something else is asked than before; another one after that. */
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

  /** Ends this session at once, and takes back a pause, so that the next one can start. */
  skip(): void {
    this.#skips = true
    this.#paused = false
    this.#end()
  }

  /** The session has ended; what a person asked of it alone goes with it, and all else stands. */
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

  /** This session holds, but for a change of plan that was asked for. */
  hold(): void {
    this.#holds = true
    this.#change()
  }

  /** Ends the wait that goes on now; false if there is none. */
  retry(): boolean {
    const { signal } = this.#wait ?? {}
    if (!signal || signal.aborted) return false
    this.#wait?.abort()
    return true
  }

  /** Runs something that waits, with a signal that `retry`, and every end, aborts. */
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
