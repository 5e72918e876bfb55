import type { RecordedOf } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'
import { cutLine, oneLine, padLine, safeText, wrapLine } from '../../words/cells.ts'
import { formatCount, formatDuration, formatTokens } from '../../words/numbers.ts'
import { describeOutcome, wordsForLimits } from '../../words/outcome.ts'
import { wordsForGates, wordsForQuestions, wordsForReviewTerms } from '../../words/proof.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { type BlockOptions, clipText, firstRows, type LineOptions, MOST_TEXT, roleOf } from './layout.ts'

const NAME_CHARS = 200
const GOAL_CHARS = 1000
const MOST_ROWS = 6
const FACT_ROWS = 2

/** The card at the beginning of a session: its goal, and its limits, gates and permissions. */
export function sessionCreatedCard(event: RecordedOf<'session-created'>, options: BlockOptions): string[] {
  const { full } = options
  const codex = [event.model, event.effort].filter(value => value !== null).map(value => oneLine(value, NAME_CHARS))
  const goal = safeText(clipText(event.goal.trim(), full ? MOST_TEXT : GOAL_CHARS))
  const facts = [
    `${oneLine(event.template, NAME_CHARS)}, ${oneLine(event.sandbox, NAME_CHARS)}, network ${event.network ? 'on' : 'off'}, ${wordsForLimits(event.limits)}`,
    ...(codex.length === 0 ? [] : [`model ${codex.join(', ')}`]),
    ...[wordsForGates(event.gates), wordsForReviewTerms(event.review)].filter(words => words !== null),
  ]
  const rows = [
    ...cardText(goal, { most: full ? null : MOST_ROWS, role: 'strong' }, options),
    '',
    ...facts.flatMap(fact => cardText(fact, { most: FACT_ROWS, role: 'dim' }, options)),
  ]
  return cardLines(`session ${oneLine(event.session, NAME_CHARS)}`, rows, options)
}

/** The card at the end of a session: its outcome, how to go on, its goal, what it used, and how many questions are open. */
export function sessionEndedCard(
  event: RecordedOf<'session-ended'>,
  state: SessionState,
  options: LineOptions,
): string[] {
  const { text, hint, tone } = describeOutcome(event.outcome, state)
  const used = `${formatCount(event.rounds, 'round')}, ${formatDuration(event.durationMs)}, ${formatTokens(event.tokens)}`
  const rows = [
    ...cardText(text, { most: MOST_ROWS, role: roleOf(tone) }, options),
    ...cardText(hint ?? '', { most: MOST_ROWS, role: 'plain' }, options),
    ...cardText(oneLine(state.goal, GOAL_CHARS), { most: FACT_ROWS, role: 'plain' }, options),
    ...cardText(used, { most: FACT_ROWS, role: 'dim' }, options),
    ...cardText(wordsForQuestions(state.questions) ?? '', { most: FACT_ROWS, role: 'warning' }, options),
  ]
  return cardLines(`session ${oneLine(event.session, NAME_CHARS)} ended`, rows, options)
}

/** A text wrapped to the card's width and painted; at most `most` rows, the last with an ellipsis. `[]` for ''. */
function cardText(text: string, { most, role }: { most: number | null; role: Role }, options: LineOptions): string[] {
  if (text === '') return []
  const columns = innerColumns(options)
  const rows = text.split('\n').flatMap(line => wrapLine(line, columns))
  return firstRows(rows, most ?? rows.length, columns).map(row => options.theme.paint(role, row))
}

const NARROWEST = 24
const WIDEST = 84
// Both borders, and the space between each and the row.
const BORDER_CELLS = 4

/** The width of a row inside a card. */
function innerColumns({ columns, theme }: LineOptions): number {
  return hasBorder(columns, theme) ? Math.min(columns, WIDEST) - BORDER_CELLS : columns
}

/** A title and painted rows inside a border; without the border on a narrow terminal and for a screen reader. */
function cardLines(title: string, rows: readonly string[], { columns, theme }: LineOptions): string[] {
  if (!hasBorder(columns, theme)) {
    return [theme.paint('strong', title), ...rows].flatMap(row => wrapLine(row, columns))
  }
  const inner = innerColumns({ columns, theme })
  const width = inner + BORDER_CELLS
  const border = (text: string) => theme.paint('accent', text)
  const name = cutLine(title, width - 6)
  const top = padLine(`╭─ ${name} `, width - 1).replace(/ +$/, spaces => ` ${'─'.repeat(spaces.length - 1)}`)
  return [
    border(`${top}╮`),
    ...rows.flatMap(row => wrapLine(row, inner)).map(row => `${border('│')} ${padLine(row, inner)} ${border('│')}`),
    border(`╰${'─'.repeat(width - 2)}╯`),
  ]
}

function hasBorder(columns: number, theme: Theme): boolean {
  return theme.symbols && columns >= NARROWEST
}
