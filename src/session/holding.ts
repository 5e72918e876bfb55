import type { SessionState } from './state.ts'

/** The session after a person has asked at `at` (Unix time, ms) that no further round start. */
export function hold(state: SessionState, at: number): SessionState {
  const isIdle = state.running === null && state.waiting === null && state.checking === null
  return { ...state, pausedAt: state.pausedAt ?? at, heldSince: state.heldSince ?? (isIdle ? at : null) }
}

/** The session when something runs, or waits for its time, again: the time for which it was held is not time that it was worked on. */
export function released(state: SessionState, at: number): SessionState {
  if (state.heldSince === null) return state
  const ms = Math.max(0, at - state.heldSince)
  return { ...leaveOut(state, ms), heldSince: null }
}

/** The session after `ms` that were neither work nor a failure that goes on. */
export function leaveOut(state: SessionState, ms: number): SessionState {
  const { failures, beganAt } = state
  const since = failures.since === null ? null : failures.since + ms
  return { ...state, beganAt: beganAt + ms, failures: { ...failures, since } }
}

/** The session after a person has asked that the round which runs end early. */
export function interrupted(state: SessionState): SessionState {
  return state.running === null ? state : { ...state, running: { ...state.running, isInterrupted: true } }
}
