import { unreachable } from '../base/errors.ts'
import type { SessionOutcome } from '../session/outcome.ts'
import type { Tone } from './description.ts'
import { oneLine } from './safe-text.ts'

const REASON_CHARS = 2000

/** How a session ended, in words: in few, in full, and what a person can do about it. */
export interface OutcomeInWords {
  short: string
  text: string
  hint: string | null
  tone: Tone
}

/** The outcome of a session for a person. */
export function describeOutcome(outcome: SessionOutcome): OutcomeInWords {
  switch (outcome.kind) {
    case 'done':
      return outcome.verified
        ? { short: 'done, verified', text: 'done — verified', hint: null, tone: 'good' }
        : {
            short: 'done, unverified',
            text: 'done — unverified, for no gates are configured',
            hint: null,
            tone: 'good',
          }
    case 'limit':
      return { short: 'limit reached', text: 'limit reached: no rounds are left', hint: null, tone: 'warning' }
    case 'needs-person': {
      const hint = outcome.hint === null ? null : oneLine(outcome.hint, REASON_CHARS)
      return {
        short: 'needs a person',
        text: `needs a person: ${oneLine(outcome.reason, REASON_CHARS)}`,
        hint,
        tone: 'bad',
      }
    }
    case 'interrupted':
      return {
        short: 'interrupted',
        text: `interrupted (${outcome.signal})`,
        hint: null,
        tone: 'warning',
      }
    default:
      return unreachable(outcome)
  }
}
