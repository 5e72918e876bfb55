import type { Clock } from '../base/clock.ts'
import type { LiveEvent, Recorded, SessionEvent } from './events.ts'
import type { Journal } from './journal.ts'
import { fold, type SessionState } from './state.ts'
import type { View } from './view.ts'

/** The one place where something comes to have happened: journaled, folded, shown. */
export class SessionLog {
  #state: SessionState
  readonly #journal: Journal
  readonly #views: readonly View[]
  readonly #clock: Clock

  constructor(state: SessionState, journal: Journal, views: readonly View[], clock: Clock) {
    this.#state = state
    this.#journal = journal
    this.#views = views
    this.#clock = clock
  }

  get state(): SessionState {
    return this.#state
  }

  emit(event: SessionEvent): void {
    const recorded: Recorded = {
      v: 1,
      at: new Date(this.#clock.now()).toISOString(),
      session: this.#state.id,
      ...event,
    }
    this.#journal.append(recorded)
    this.#state = fold(this.#state, recorded)
    for (const view of this.#views) view.event(recorded, this.#state)
  }

  live(event: LiveEvent): void {
    for (const view of this.#views) view.live(event)
  }

  sync(): Promise<void> {
    return this.#journal.sync()
  }
}
