import { unreachable } from '../base/errors.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { type Description, describe } from './description.ts'
import { formatMoment } from './format-time.ts'
import type { Hints } from './hints.ts'
import { waitEndOf } from './wait-end.ts'
import { wordsForWait } from './words-for-wait.ts'

/** A wait, as it is seen when it begins, or when its session goes on. */
export function describeWaiting({ at }: Recorded, state: SessionState, hints: Hints): Description | null {
  const { waiting } = state
  if (waiting === null) return null
  const now = Date.parse(at)
  const end = waitEndOf(state) ?? waiting.until
  const limit = end < waiting.until ? `, but the time is used up at ${formatMoment(end, now)}` : ''
  return describe(`waiting ${wordsForWait(waiting, now)}${limit}; ${hints.endWait}`, 'warning')
}

/** What ended a wait, and what comes next. */
export function describeWaitEnd({ reason }: RecordedOf<'wait-ended'>): Description {
  switch (reason) {
    case 'over':
      return describe('wait over')
    case 'retry':
      return describe('wait ended by a person: trying again', 'strong')
    case 'stopped':
      return describe('wait broken off: it goes on when the session does', 'warning')
    default:
      return unreachable(reason)
  }
}

/** A person who asked it to stop; at once if nothing runs. */
export function describeStopAsked({ now }: RecordedOf<'stop-asked'>, state: SessionState): Description {
  const work = workOf(state)
  return describe(`stop asked for: ${now || work === null ? 'now' : `after this ${work}`}`, 'strong')
}

/** What runs, which a person may want to end: `round`, `gate`, `review`; null if nothing does. */
export function workOf({ running, checking }: SessionState): string | null {
  return running === null ? (checking?.kind ?? null) : 'round'
}

/** A person who interrupted it; null if nothing runs and it holds at once, for `held` says it. */
export function describeInterrupt(state: SessionState): Description | null {
  const work = workOf(state)
  if (work !== null) return describe(`interrupted by a person: the ${work} ends now`, 'strong')
  return state.waiting === null ? null : describe('interrupted by a person: it holds after this wait', 'strong')
}

/** A person who asked it to pause, which it does between two rounds; null if that is at once, for `held` says it. */
export function describePaused(state: SessionState): Description | null {
  const work = state.waiting === null ? workOf(state) : 'wait'
  return work === null ? null : describe(`pause asked for: after this ${work}`, 'strong')
}
