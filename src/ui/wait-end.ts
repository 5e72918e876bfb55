import type { SessionState } from '../session/state.ts'

/** When the wait of a session is over: Unix time, ms; earlier than was meant if its time is used up before. Null if it waits for nothing. */
export function waitEndOf({
  waiting,
  limits,
  beganAt,
  workedMs,
}: Pick<SessionState, 'waiting' | 'limits' | 'beganAt' | 'workedMs'>): number | null {
  if (waiting === null) return null
  return limits.timeMs === null ? waiting.until : Math.min(waiting.until, beganAt + limits.timeMs - workedMs)
}
