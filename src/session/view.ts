import type { Recorded } from './events.ts'
import type { LiveEvent } from './live-events.ts'
import type { SessionState } from './state.ts'

/** Something that draws events and decides nothing. */
export interface View {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  live(event: LiveEvent): void
}
