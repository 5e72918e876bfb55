import { unreachable } from '../../base/errors.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import type { PlanStep, SessionState } from '../../core/state/state.ts'
import { cutLine, oneLine, padLine, safeText, widthOf, wrapLine } from '../../words/cells.ts'
import { describeEvent } from '../../words/event.ts'
import { type Description, describe, KEY_HINTS } from '../../words/names.ts'
import { formatCount, formatDuration, formatTime, formatTokens } from '../../words/numbers.ts'
import { describeOutcome, wordsForLimits } from '../../words/outcome.ts'
import { isToldOfAgent, planInWords } from '../../words/plan.ts'
import {
  describeProof,
  isReviewAnswer,
  isReviewing,
  wordsForGates,
  wordsForQuestions,
  wordsForReviewTerms,
} from '../../words/proof.ts'
import { taskLines } from '../header/tasks.ts'
import type { Role, Theme } from '../terminal/cells.ts'
import { diffLines, readDiff } from './changes.ts'
import { type BlockOptions, clipText, describedLines, firstRows, roleOf, underPrefix } from './frame.ts'
import { itemLines } from './item.ts'
import { agentEndLines, agentItemLines, agentStartLines, gateLines, reviewerLines, reviewLines } from './proof.ts'

/**
 * An event as finished lines for the terminal, each at most `columns` cells wide; none for what a person need not see.
 * In the scrollback a blank line parts it from what is before; in full its local time stands in front.
 * @param state the session after the event
 */
export function eventLines(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  if (options.full) return timedLines(event, state, options)
  const lines = drawn(event, state, options)
  return lines.length === 0 || isOneOfMany(event) ? lines : ['', ...lines]
}

/** Gates that pass, one after the other, are a list; so are tasks, and what agents beside each other do. */
function isOneOfMany(event: Recorded): boolean {
  if (event.type === 'gate-ended') return event.status === 'passed' && event.when === 'claim'
  if (event.type === 'item-completed') return event.instance !== undefined
  return event.type === 'agent-started' || event.type === 'task-judged'
}

// Narrower than this, the time has a line of its own.
const LEAST_COLUMNS_WITH_TIME = 60

function timedLines(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  const time = options.theme.paint('dim', formatTime(Date.parse(event.at)))
  if (options.columns < LEAST_COLUMNS_WITH_TIME) {
    const lines = drawn(event, state, options)
    return lines.length === 0 || options.columns < widthOf(time) ? lines : [time, ...lines]
  }
  const gutter = ' '.repeat(widthOf(time) + 2)
  const lines = drawn(event, state, { ...options, columns: options.columns - gutter.length })
  return lines.map((line, i) => (i === 0 ? `${time}  ${line}` : line && gutter + line))
}

function drawn(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  switch (event.type) {
    case 'session-created':
      return createdCard(event, options)
    case 'session-ended':
      return endedCard(event, state, options)
    case 'round-started':
    case 'round-ended':
      return roundLines(event, state, options)
    case 'item-completed':
      return drawnItem(event, state, options)
    case 'gate-ended':
      return gateLines(event, state, options)
    case 'review-ended':
      return reviewLines(event, options)
    case 'question-asked':
      return askedLines(describeProof(event, state, KEY_HINTS), options)
    case 'plan-updated':
      return checklistLines(event, options)
    case 'replanned':
      return replanLines(event, describeEvent(event, state, KEY_HINTS), options)
    case 'steered':
    case 'replan-asked':
      return personLines(event, state, options)
    case 'agent-started':
      return agentStartLines(event, options)
    case 'agent-ended':
      return agentEndLines(event, options)
    case 'plan-ready':
      return planLines(event, options)
    case 'plan-refused':
    case 'task-judged':
    case 'session-resumed':
    case 'keep-awake':
    case 'model-rerouted':
    case 'request-answered':
    case 'warning':
    case 'error':
    case 'turn-continued':
    case 'winding-down':
    case 'machine-slept':
    case 'waiting':
    case 'wait-ended':
    case 'stop-asked':
    case 'interrupt-asked':
    case 'skip-asked':
    case 'paused':
    case 'held':
    case 'unpaused':
    case 'stuck':
    case 'memory-broken':
    case 'repository-restored':
    case 'settings-changed':
    case 'protected-changed':
    case 'review-started':
    case 'done-nominated':
    case 'done-refused':
    case 'done-accepted':
      return describedLines(describeEvent(event, state, KEY_HINTS), options)
    // The header shows what they say, as long as it is so.
    case 'turn-started':
    case 'usage':
    case 'limits':
    case 'savepoint':
    case 'gate-started':
    case 'tasks-judged':
      return []
    default:
      return unreachable(event)
  }
}

/** What codex did, in a round or as the reviewer of one. The reviewer's answer is only shown in full as it was written. */
function drawnItem(event: RecordedOf<'item-completed'>, state: SessionState, options: BlockOptions): string[] {
  const { item, session, instance } = event
  if (isToldOfAgent(event, state)) return []
  if (instance !== undefined) return agentItemLines(event, instance, state, options)
  const draw = (columns: number) => itemLines(item, { session, directory: state.directory }, { ...options, columns })
  if (!isReviewing(state)) return draw(options.columns)
  if (!options.full && item.kind === 'agent-message' && isReviewAnswer(item.text)) return []
  return reviewerLines(options, draw)
}

/** A question that is noted for the person: it stands out, and what belongs to it does not. */
function askedLines({ text, more }: Description, { columns, theme }: BlockOptions): string[] {
  const sign = theme.symbols ? theme.paint('accent', '? ') : ''
  return [
    ...wrapLine(sign + theme.paint('strong', text), columns),
    ...underPrefix({ first: '  ', columns }, inner =>
      more.flatMap((line, i) => wrapLine(i === more.length - 1 ? theme.paint('dim', line) : line, inner)),
    ),
  ]
}

const MOST_STEPS = 20
const STEP_CHARS = 500
const EXPLANATION_CHARS = 2000

const MARKS: Readonly<Record<PlanStep['status'], { symbol: string; word: string; mark: Role; text: Role }>> = {
  completed: { symbol: '✔ ', word: 'done: ', mark: 'good', text: 'dim' },
  'in-progress': { symbol: '▸ ', word: 'now: ', mark: 'accent', text: 'strong' },
  pending: { symbol: '○ ', word: 'to do: ', mark: 'dim', text: 'plain' },
}

/** The agent's plan as a list to tick off: `✔ read`, `▸ write`, `○ test`. */
function checklistLines(
  { explanation, steps }: { explanation: string | null; steps: readonly PlanStep[] },
  { columns, theme, full }: BlockOptions,
): string[] {
  const shown = full ? steps : steps.slice(0, MOST_STEPS)
  const left = steps.length - shown.length
  const why = oneLine(explanation ?? '', EXPLANATION_CHARS)
  return [
    ...wrapLine(theme.paint('strong', 'plan') + (why === '' ? '' : theme.paint('dim', `  ${why}`)), columns),
    ...shown.flatMap(step => stepLines(step, columns, theme)),
    ...(left > 0 ? wrapLine(theme.paint('dim', `… and ${left} more`), columns) : []),
  ]
}

function stepLines({ step, status }: PlanStep, columns: number, theme: Theme): string[] {
  const { symbol, word, mark, text } = MARKS[status]
  const sign = theme.symbols ? symbol : word
  const prefix = { first: theme.paint(mark, sign), columns }
  return underPrefix(prefix, inner => wrapLine(theme.paint(text, oneLine(step, STEP_CHARS)), inner))
}

/** What a person said to the session, in a colour of its own; in full all of it. */
function personLines(
  event: RecordedOf<'steered' | 'replan-asked'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  if (!options.full) return describedLines(describeEvent(event, state, KEY_HINTS), options, 'person')
  const lead = describeEvent({ ...event, text: '' }, state, KEY_HINTS)?.text ?? ''
  return describedLines(describe(`${lead}${event.text.trim()}`), options, 'person')
}

const MOST_ROWS = 60

/** A plan that is ready, as a checklist by its phases. */
function planLines(event: RecordedOf<'plan-ready'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const tasks = event.tasks.map(task => ({ ...task, done: false }))
  const rows = full ? 2 * tasks.length : MOST_ROWS
  const board = { title: null, tasks, current: null }
  return [
    ...wrapLine(theme.paint('strong', planInWords(event)), columns),
    ...taskLines({ board, plan: [] }, { columns, rows, theme }),
  ]
}

const MOST_ROWS_OF_REPLAN_LINES = 60

/** What a change of plan did to its files, as diffs, below the first line of its description. */
function replanLines(
  { files }: RecordedOf<'replanned'>,
  description: Description | null,
  options: BlockOptions,
): string[] {
  const heading = description && { ...description, more: [] }
  return [
    ...describedLines(heading, options),
    ...files.flatMap(({ file, diff }) => {
      const rows = readDiff(diff, 'same')
      return [
        ...wrapLine(options.theme.paint('accent', file), options.columns),
        ...diffLines(rows, options.full ? rows.length : MOST_ROWS_OF_REPLAN_LINES, options),
      ]
    }),
  ]
}

const PATH_CHARS = 300

/** The beginning or end of a round as a light line; in full with what the agent was told, or what was changed. */
function roundLines(
  event: RecordedOf<'round-started' | 'round-ended'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const rule = ruleLines(describeEvent(event, state, KEY_HINTS), options)
  if (!options.full) return rule
  const more = event.type === 'round-started' ? event.input.trim() : changedFiles(event)
  return more === '' ? rule : [...rule, ...describedLines(describe(more, 'quiet'), options)]
}

function changedFiles({ changed, changedCount }: RecordedOf<'round-ended'>): string {
  const left = changedCount - changed.length
  return [...changed.map(path => oneLine(path, PATH_CHARS)), ...(left > 0 ? [`… and ${left} more`] : [])].join('\n')
}

const LEAD = '── '
const LONGEST = 100

/** A description in a line across the screen; without the line where there is no room for it. */
function ruleLines(description: Description | null, options: BlockOptions): string[] {
  const { columns, theme } = options
  if (description === null) return []
  const { text, tone } = description
  const room = Math.min(columns, LONGEST) - LEAD.length - widthOf(text) - 1
  if (!theme.symbols || room < 2) return describedLines(description, options)
  return [`${theme.paint('dim', LEAD)}${theme.paint(roleOf(tone), text)} ${theme.paint('dim', '─'.repeat(room))}`]
}

const NAME_CHARS = 200
const GOAL_CHARS = 72 * 1024
const CLIPPED_CHARS = 1000
const LINES = 6
const LINES_OF_AN_OLD_GOAL = 2

/** The beginning of a session: its goal, and what it may do. */
function createdCard(event: RecordedOf<'session-created'>, options: BlockOptions): string[] {
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
function endedCard(event: RecordedOf<'session-ended'>, state: SessionState, options: BlockOptions): string[] {
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

const NARROWEST = 24
const WIDEST = 84
// Its two sides, and the space between them and a row.
const FRAME = 4

/** What fits into a row of a card. */
function cardRowColumns({ columns, theme }: { columns: number; theme: Theme }): number {
  return isFramed(columns, theme) ? Math.min(columns, WIDEST) - FRAME : columns
}

/** A card: a title and rows, which are painted already, in a frame; without the frame where it would be in the way. */
function cardLines(
  { title, rows }: { title: string; rows: readonly string[] },
  { columns, theme }: { columns: number; theme: Theme },
): string[] {
  if (!isFramed(columns, theme)) {
    return [theme.paint('strong', title), ...rows].flatMap(row => wrapLine(row, columns))
  }
  const inner = cardRowColumns({ columns, theme })
  const width = inner + FRAME
  const edge = (text: string) => theme.paint('accent', text)
  const name = cutLine(title, width - 6)
  const top = padLine(`╭─ ${name} `, width - 1).replace(/ +$/, spaces => ` ${'─'.repeat(spaces.length - 1)}`)
  return [
    edge(`${top}╮`),
    ...rows.flatMap(row => wrapLine(row, inner)).map(row => `${edge('│')} ${padLine(row, inner)} ${edge('│')}`),
    edge(`╰${'─'.repeat(width - 2)}╯`),
  ]
}

function isFramed(columns: number, theme: Theme): boolean {
  return theme.symbols && columns >= NARROWEST
}
