import type { SessionState } from '../session/state.ts'

/** What a session that runs is doing. Asked to stop, it still does one of the others until its round has ended. */
export type Activity = 'running' | 'waiting' | 'paused' | 'waiting-for-network' | 'winding-down' | 'stopping'

/** What tells it; as in SessionState. */
type Signs = Pick<
  SessionState,
  'running' | 'checking' | 'waiting' | 'pausedAt' | 'offlineSince' | 'windingDown' | 'stopAsked'
>

/** What a session that runs is doing now: the first of these that is the case. Pure. */
export function activityOf({
  running,
  checking,
  waiting,
  pausedAt,
  offlineSince,
  windingDown,
  stopAsked,
}: Signs): Activity {
  if (waiting !== null) return 'waiting'
  if (pausedAt !== null && running === null && checking === null) return 'paused'
  if (windingDown !== null) return 'winding-down'
  if (offlineSince !== null) return 'waiting-for-network'
  return stopAsked ? 'stopping' : 'running'
}
