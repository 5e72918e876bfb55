import type { Clock } from '../../base/clock.ts'
import type { Recorded } from '../../session/events.ts'
import type { LiveEvent } from '../../session/live-events.ts'
import type { Records } from '../../session/records.ts'
import type { Standing } from '../../session/standing.ts'
import type { SessionState } from '../../session/state.ts'

/** What a screen is fed with that watches a session of another process. */
export type Fed =
  /** `state`: the session after the event. */
  | { kind: 'event'; event: Recorded; state: SessionState }
  /** `at`: Unix time, ms. */
  | { kind: 'live'; event: LiveEvent; at: number }
  /** The past has been told; from now on it comes as it happens. */
  | { kind: 'attached'; state: SessionState; standing: Standing }
  | { kind: 'ended' }
  /** The run goes on with this session: what follows is of it, from its first event on. */
  | { kind: 'next-session'; id: string }
  /** Nobody runs it any more, and it has not come to its end. The last that is fed. */
  | { kind: 'gone' }
  /** The same, of one that nobody ran when it was looked at first. The last that is fed. */
  | { kind: 'cut-off' }

export interface FeedOptions {
  records: Records
  id: string
  platform: NodeJS.Platform
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** Told once, as a sentence, if it cannot be known whether somebody runs. */
  onProblem: (problem: string) => void
}
