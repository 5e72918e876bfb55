import type { SessionState } from './state.ts'

/** How a session stands now. `cut-off`: it did not come to an end, and nobody works on it. */
export type Standing = 'running' | 'cut-off' | 'ended'

/**
 * How a session stands, by who runs now (`at`: since when, ISO 8601). A session that has moved on since that one came
 * is the one that it runs. Pure.
 */
export function standingOf(session: SessionState, runner: { at: string } | null): Standing {
  if (session.ended) return 'ended'
  return runner !== null && session.updatedAt >= Date.parse(runner.at) ? 'running' : 'cut-off'
}

/** How long a session has taken, ms: until it ended, until now if it runs, until its last sign of life if it was cut off. */
export function elapsedMs(session: SessionState, standing: Standing, now: number): number {
  if (session.ended) return session.ended.durationMs
  return session.workedMs + Math.max(0, (standing === 'running' ? now : session.updatedAt) - session.beganAt)
}
