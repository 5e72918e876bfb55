import type { Clock } from '../base/clock.ts'
import type { Redactor } from '../base/redactor.ts'
import type { Recorded, SessionEvent } from './events.ts'
import { fold } from './fold.ts'
import type { Journal } from './journal.ts'
import type { LiveEvent } from './live-events.ts'
import type { SessionState } from './state.ts'
import type { View } from './view.ts'

/**
 * The one place where something comes to have happened: journaled, folded, shown. Without its secrets: what a restart
 * reads is what was known before it. A live text may come in pieces that hold a part of a secret each, which is not
 * found; nothing of it is kept, and what comes whole afterwards is without it.
 */
export class SessionLog {
  #state: SessionState
  readonly #journal: Journal
  readonly #views: readonly View[]
  readonly #clock: Clock
  readonly #redactor: Redactor

  constructor(state: SessionState, journal: Journal, views: readonly View[], clock: Clock, redactor: Redactor) {
    this.#state = state
    this.#journal = journal
    this.#views = views
    this.#clock = clock
    this.#redactor = redactor
  }

  get state(): SessionState {
    return this.#state
  }

  emit(event: SessionEvent): void {
    const recorded = this.#record(event)
    this.#journal.append(recorded)
    this.#state = fold(this.#state, recorded)
    for (const view of this.#views) view.event(recorded, this.#state)
  }

  /** What the session would come to with this event, if it happened now. */
  stateAfter(event: SessionEvent): SessionState {
    return fold(this.#state, this.#record(event))
  }

  live(event: LiveEvent): void {
    const shown = this.#redactor.event(event)
    for (const view of this.#views) view.live(shown)
  }

  sync(): Promise<void> {
    return this.#journal.sync()
  }

  #record(event: SessionEvent): Recorded {
    const at = new Date(this.#clock.now()).toISOString()
    return { v: 1, at, session: this.#state.id, ...this.#redactor.event(event) }
  }
}
