import type { StallRemedy } from '../session/lifecycle-events.ts'
import type { RoundOutcome, SessionOutcome, StallReason } from '../session/outcome.ts'

/** What a person may want to be told of. A session that ends for want of a person is `needs-person`, not `ended`; so is what of a build waits for one. */
export type NotifyEvent = 'ended' | 'needs-person' | 'waiting' | 'stuck' | 'paused' | 'round-ended'

/** What a command reads from its stdin and a webhook is sent, as JSON: docs/notifications.md. */
export type Notification = NotificationHead & NotificationFacts

interface NotificationHead {
  v: 1
  /** When it happened; ISO 8601 in UTC. */
  at: string
  session: string
  host: string
  directory: string
  /** On one line, at most 500 characters. */
  goal: string
  /** On one line, without control characters, at most 120 characters; as are `message`, 1000, and `goal`. */
  title: string
  message: string
}

/** What happened. Texts of others in it are cut at 2000 characters, and may hold control characters. */
export type NotificationFacts =
  | {
      event: 'ended' | 'needs-person'
      outcome: SessionOutcome
      exitCode: number
      rounds: number
      tokens: number
      durationMs: number
      /** How many questions were noted for the person. */
      questions: number
    }
  /** The plan of a build waits until the person has looked at it. */
  | { event: 'needs-person'; about: 'plan'; tasks: number }
  /** A task of a build has failed too often; the rest goes on. */
  | { event: 'needs-person'; about: 'task'; task: string; name: string; reason: string; round: number }
  | {
      event: 'waiting'
      /** The round that starts when the wait is over. */
      round: number
      /** ISO 8601 in UTC. */
      until: string
      cause: RoundOutcome
    }
  | { event: 'stuck'; round: number; rounds: number; why: StallReason; remedy: StallRemedy }
  | {
      event: 'round-ended'
      round: number
      roundOutcome: RoundOutcome
      counts: boolean
      durationMs: number
      tokens: number | null
      changedCount: number
    }
  | { event: 'paused' }
  | { event: 'test' }
