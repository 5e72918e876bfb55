import { unreachable } from '../base/errors.ts'
import type { EndedBy, SessionOutcome } from '../session/outcome.ts'
import type { Tone } from './description.ts'
import { oneLine } from './safe-text.ts'
import { type ProvedState, wordsForProof } from './words-for-proof.ts'
import { wordsForStall } from './words-for-stall.ts'

const REASON_CHARS = 2000

const LIMIT_REACHED = {
  rounds: 'no rounds are left',
  time: 'the time is used up',
  tokens: 'the tokens are used up',
}

/** How a session ended, in words: in few, in full, and what a person can do about it. */
export interface OutcomeInWords {
  short: string
  text: string
  hint: string | null
  tone: Tone
}

/**
 * The outcome of a session for a person.
 * @param state the session that ended so, which says by what it is verified; left out: not known
 */
export function describeOutcome(outcome: SessionOutcome, state?: ProvedState): OutcomeInWords {
  switch (outcome.kind) {
    case 'done': {
      const short = outcome.verified ? 'done, verified' : 'done, unverified'
      return { short, text: `done — ${wordsForProof(outcome.verified, state)}`, hint: null, tone: 'good' }
    }
    case 'limit':
      return {
        short: 'limit reached',
        text: `limit reached: ${LIMIT_REACHED[outcome.limit]}`,
        hint: null,
        tone: 'warning',
      }
    case 'needs-person': {
      const hint = outcome.hint === null ? null : oneLine(outcome.hint, REASON_CHARS)
      return {
        short: 'needs a person',
        text: `needs a person: ${oneLine(outcome.reason, REASON_CHARS)}`,
        hint,
        tone: 'bad',
      }
    }
    case 'stalled':
      return {
        short: 'stalled',
        text: `stalled: ${wordsForStall(outcome.why, outcome.rounds)}, and nothing that was tried has helped`,
        hint: 'See with codemachine logs what holds it up. Change that, or write into MAIN.md what to try, before it goes on.',
        tone: 'bad',
      }
    case 'interrupted':
      return describeInterruption(outcome.by)
    default:
      return unreachable(outcome)
  }
}

function describeInterruption(by: EndedBy): OutcomeInWords {
  if (by === 'stop') return { short: 'stopped', text: 'stopped by a person', hint: null, tone: 'warning' }
  if (by === 'skip') return { short: 'skipped', text: 'skipped by a person', hint: null, tone: 'warning' }
  return { short: 'interrupted', text: `interrupted (${SIGNALS[by]})`, hint: null, tone: 'warning' }
}

const SIGNALS: Readonly<Record<Exclude<EndedBy, 'stop' | 'skip'>, string>> = {
  SIGINT: 'Ctrl+C',
  SIGTERM: 'SIGTERM',
  SIGHUP: 'its terminal was closed',
}
