import type { BuildEvent } from './build-events.ts'
import type { ClaimEvent } from './claim-events.ts'
import type { FileEvent } from './file-events.ts'
import type { LifecycleEvent } from './lifecycle-events.ts'
import type { RoundEvent } from './round-events.ts'

/**
 * Everything that can happen in a session and is kept: the journal is a list of these. Documented, with the tree of
 * their order, in docs/events.md.
 */
export type SessionEvent = LifecycleEvent | RoundEvent | FileEvent | BuildEvent | ClaimEvent

/** The event of one type; of several, a union. */
export type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** One line of the journal and of `--json`. `at` is ISO 8601 in UTC with ms. */
export type Recorded<E extends SessionEvent = SessionEvent> = E extends SessionEvent
  ? { v: 1; at: string; session: string } & E
  : never

/** The line of one type of event; of several, a union. */
export type RecordedOf<T extends Recorded['type']> = Extract<Recorded, { type: T }>
