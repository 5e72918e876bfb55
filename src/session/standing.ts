import type { SessionState } from './state.ts'

/**
 * How a session stands now. `cut-off`: it did not come to an end, and nobody works on it. `unknown`: it did not come to
 * an end, and whether somebody works on it cannot be seen.
 */
export type Standing = 'running' | 'cut-off' | 'ended' | 'unknown'

/**
 * How a session stands, by who runs now (`at`: since when, ISO 8601). A session that has moved on since that one came
 * is the one that it runs. Pure.
 */
export function standingOf(session: SessionState, runner: { at: string } | null | 'unknown'): Standing {
  if (session.ended) return 'ended'
  if (runner === 'unknown') return 'unknown'
  return runner !== null && session.updatedAt >= Date.parse(runner.at) ? 'running' : 'cut-off'
}

/** How long a session has taken, ms: until it ended, until now if it runs, until its last sign of life if it was cut off; without the time for which it was held. */
export function elapsedMs(session: SessionState, standing: Standing, now: number): number {
  if (session.ended) return session.ended.durationMs
  const until = session.heldSince ?? (standing === 'running' ? now : session.updatedAt)
  return session.workedMs + Math.max(0, until - session.beganAt)
}
