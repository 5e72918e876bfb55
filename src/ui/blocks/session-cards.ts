import type { RecordedOf } from '../../session/events.ts'
import type { SessionState } from '../../session/state.ts'
import { wrapLine } from '../cells.ts'
import { describeOutcome } from '../describe-outcome.ts'
import { formatCount } from '../format-count.ts'
import { formatDuration } from '../format-duration.ts'
import { formatTokens } from '../format-tokens.ts'
import { oneLine, safeText } from '../safe-text.ts'
import type { Role, Theme } from '../theme.ts'
import { wordsForLimits } from '../words-for-limits.ts'
import { wordsForGates, wordsForQuestions, wordsForReviewTerms } from '../words-for-proof.ts'
import type { BlockOptions } from './block-options.ts'
import { cardLines, cardRowColumns } from './card-lines.ts'
import { clipText } from './clip-text.ts'
import { roleOf } from './described-lines.ts'
import { firstRows } from './first-rows.ts'

const NAME_CHARS = 200
const GOAL_CHARS = 72 * 1024
const CLIPPED_CHARS = 1000
const LINES = 6
const LINES_OF_AN_OLD_GOAL = 2

/** The beginning of a session: its goal, and what it may do. */
export function createdCard(event: RecordedOf<'session-created'>, options: BlockOptions): string[] {
  const { full } = options
  const codex = [event.model, event.effort].filter(value => value !== null).map(value => oneLine(value, NAME_CHARS))
  const goal = safeText(clipText(event.goal.trim(), full ? GOAL_CHARS : CLIPPED_CHARS))
  const facts = [
    `${oneLine(event.template, NAME_CHARS)}, ${oneLine(event.sandbox, NAME_CHARS)}, network ${event.network ? 'on' : 'off'}, ${wordsForLimits(event.limits)}`,
    ...(codex.length === 0 ? [] : [`model ${codex.join(', ')}`]),
    ...[wordsForGates(event.gates), wordsForReviewTerms(event.review)].filter(words => words !== null),
  ]
  const rows = [
    ...limited(goal, { most: full ? null : LINES, role: 'strong' }, options),
    '',
    ...facts.flatMap(fact => limited(fact, { most: LINES_OF_AN_OLD_GOAL, role: 'dim' }, options)),
  ]
  return cardLines({ title: `session ${oneLine(event.session, NAME_CHARS)}`, rows }, options)
}

/** The end of a session: how it ended and how far that is proved, what it was for, what it took, and how much it asks. */
export function endedCard(event: RecordedOf<'session-ended'>, state: SessionState, options: BlockOptions): string[] {
  const { text, hint, tone } = describeOutcome(event.outcome, state)
  const took = `${formatCount(event.rounds, 'round')}, ${formatDuration(event.durationMs)}, ${formatTokens(event.tokens)}`
  const goal = oneLine(state.goal, CLIPPED_CHARS)
  const rows = [
    ...limited(text, { most: LINES, role: roleOf(tone) }, options),
    ...limited(hint ?? '', { most: LINES, role: 'plain' }, options),
    ...limited(goal, { most: LINES_OF_AN_OLD_GOAL, role: 'plain' }, options),
    ...limited(took, { most: LINES_OF_AN_OLD_GOAL, role: 'dim' }, options),
    ...limited(wordsForQuestions(state.questions) ?? '', { most: LINES_OF_AN_OLD_GOAL, role: 'warning' }, options),
  ]
  return cardLines({ title: `session ${oneLine(event.session, NAME_CHARS)} ended`, rows }, options)
}

/** The rows of a text in a card, each painted; at most so many, the last with an ellipsis; none of an empty text. */
function limited(
  text: string,
  { most, role }: { most: number | null; role: Role },
  place: { columns: number; theme: Theme },
): string[] {
  if (text === '') return []
  const columns = cardRowColumns(place)
  const rows = text.split('\n').flatMap(line => wrapLine(line, columns))
  return firstRows(rows, most ?? rows.length, columns).map(row => place.theme.paint(role, row))
}
