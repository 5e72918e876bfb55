import type { RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { type Description, describe } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatSpan } from './format-span.ts'
import { formatTokens } from './format-tokens.ts'
import { isReviewing } from './reviewer.ts'
import { oneLine } from './safe-text.ts'
import { wordsForPart } from './words-for-build.ts'
import { wordsForCause, wordsForRoundEnd } from './words-for-cause.ts'
import { wordsForRemedy, wordsForStall } from './words-for-stall.ts'
import { wordsForWindDown } from './words-for-wind-down.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 2000

/** Which round starts, and who works in it with what. @param state the session after the event */
export function describeRoundStart(event: RecordedOf<'round-started'>, state: SessionState): Description {
  const model = event.model === null ? '' : `, model ${name(event.model)}`
  const change = state.running?.replan != null ? CHANGING : null
  const part = event.part === undefined ? change : wordsForPart(event.part)
  const number = `round ${event.round}`
  const isNumbered = event.part !== 'summary' && !(change !== null && state.build !== null)
  const heading = [...(isNumbered ? [number] : []), ...(part === null ? [] : [part])].join('  ')
  return describe(
    `${heading}${part === null ? '  ' : ': '}${name(event.agent)}, ${name(event.engine)} ${name(event.codex)}${model}`,
    'strong',
  )
}

const CHANGING = 'changing the plan'

/** What a round is called at its end: in a build the next one takes the number of a summary or a change of plan. */
function endedRound({ round }: RecordedOf<'round-ended'>, { build, last }: SessionState): string {
  if (build === null || last === null) return `round ${round}`
  if (last.part === null) return CHANGING
  return last.part === 'summary' ? wordsForPart(last.part) : `round ${round}`
}

/**
 * An error that codex reports; null for the second and later notices that the network is away, and for one that it does
 * not try again after: the turn ends with that, and its end says it.
 */
export function describeError(event: RecordedOf<'error'>, state: SessionState): Description | null {
  if (event.waitsForNetwork) {
    const isFirst = state.offlineSince === Date.parse(event.at)
    return isFirst ? describe('the network is away; codex keeps trying', 'warning') : null
  }
  if (!event.willRetry) return null
  const details = event.details === null ? '' : `: ${oneLine(event.details, TEXT_CHARS)}`
  return describe(`error: ${oneLine(event.message, TEXT_CHARS)}${details} (codex tries again)`, 'warning')
}

/** A turn that failed, and goes on as another one. */
export function describeTurnContinued({ cause }: RecordedOf<'turn-continued'>): Description {
  const why = cause.class === 'network' ? 'turn failed for the network' : `turn failed (${wordsForCause(cause)})`
  return describe(`${why}; going on in the same thread`, 'warning')
}

/** A limit that was reached in the middle of a round. */
export function describeWindingDown(event: RecordedOf<'winding-down'>, state: SessionState): Description {
  return describe(
    `${wordsForWindDown(event.limit, state)}: the ${isReviewing(state) ? 'reviewer' : 'agent'} is told to come to a safe stop, and has ${formatSpan(event.graceMs)}`,
    'warning',
  )
}

/** A session that does not get on, and what is done about it. */
export function describeStuck({ why, rounds, remedy }: RecordedOf<'stuck'>): Description {
  return describe(`${wordsForStall(why, rounds)}: the next round is ${wordsForRemedy(remedy)}`, 'warning')
}

/** How a round ended, and what it took and changed. @param state the session after the event */
export function describeRoundEnd(event: RecordedOf<'round-ended'>, state: SessionState): Description {
  const facts = [
    `${endedRound(event, state)} ended: ${wordsForRoundEnd(event.outcome)}`,
    formatDuration(event.durationMs),
    ...(event.tokens === null ? [] : [formatTokens(event.tokens.total)]),
    `${event.changedCount === 0 ? 'no files' : formatCount(event.changedCount, 'file')} changed`,
  ]
  return describe(facts.join(', '), event.outcome.class === 'worked' ? 'strong' : 'warning')
}

function name(value: string): string {
  return oneLine(value, NAME_CHARS)
}
