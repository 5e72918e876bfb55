import { leaveOut } from './holding.ts'
import type { SessionState } from './state.ts'

/** Time for which the machine slept (ms) is neither work nor a failure that goes on; a minute more or less is none. */
export function afterSleep(state: SessionState, ms: number): SessionState {
  return ms > 60_000 ? leaveOut(state, ms) : state
}
