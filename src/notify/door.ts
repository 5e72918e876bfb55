import type { Notification } from './notification.ts'

/** Why a notification did not arrive. One problem of a kind is said, and not again. */
export interface DoorProblem {
  kind: string
  sentence: string
  /** It was known before the delivery was ended early. */
  wasKnown?: boolean
}

/** A way on which notifications reach a person. */
export interface Door {
  readonly name: 'command' | 'webhook' | 'terminal'
  /** Takes bounded time, and ends all that it started when `signal` aborts. Null: it has arrived. Never rejects. */
  deliver(notification: Notification, signal: AbortSignal): Promise<DoorProblem | null>
}
