import type { Recorded } from './events.ts'
import type { SessionLimits } from './limits.ts'

/** An event as this version writes it: fields that an earlier 0.x did not write yet have a value that says nothing. */
export function withNewerFields(event: Recorded): Recorded {
  switch (event.type) {
    case 'session-created':
    case 'session-resumed':
      return { ...event, limits: { ...NO_LIMITS, ...event.limits }, said: event.said ?? {}, host: event.host ?? '' }
    case 'round-ended':
      // Unlike that of any other round: nothing is known of the two.
      return event.memory === undefined ? { ...event, memory: event.at } : event
    default:
      return event
  }
}

const NO_LIMITS: SessionLimits = { rounds: null, timeMs: null, tokens: null }
