import type { Recorded, RecordedOf } from '../../../core/events/events.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { wordsForAdopted } from '../../../tell/words/adopted.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { decisionInWords } from '../../../tell/words/decision.ts'
import { describeEvent } from '../../../tell/words/event.ts'
import { describeAgentItem } from '../../../tell/words/item.ts'
import { type Description, describe, KEY_HINTS, withRest } from '../../../tell/words/names.ts'
import { formatTime } from '../../../tell/words/numbers.ts'
import { describeOutcome, wordsForLimits, wordsForSpent } from '../../../tell/words/outcome.ts'
import {
  agentEndInWords,
  agentFacts,
  agentLabel,
  agentOf,
  isToldOfAgent,
  planInWords,
  requestInWords,
} from '../../../tell/words/plan.ts'
import {
  describeQuestion,
  isAnswerTold,
  isReviewing,
  wordsForGates,
  wordsForQuestions,
  wordsForReviewTerms,
  wordsForTests,
} from '../../../tell/words/proof.ts'
import { wordsForIssue } from '../../../tell/words/published.ts'
import { oneLine, safeText, titleLine, withoutMarkdown } from '../../../tell/words/safe-text.ts'
import { describeEntered, describeState } from '../../../tell/words/work.ts'
import { taskLines } from '../header/tasks.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { checklistLines } from './checklist.ts'
import { gateLines, reviewerLines, reviewLines } from './gates-and-reviews.ts'
import { itemLines, shellLines } from './item-lines.ts'
import {
  type BlockOptions,
  behindBar,
  clipText,
  describedLines,
  firstRows,
  type LineOptions,
  linesBelow,
  MOST_TEXT,
  roleOf,
  underPrefix,
} from './layout.ts'
import { markdownLines } from './markdown.ts'
import { replanLines } from './plan-change.ts'

/**
 * An event as finished lines for the terminal, each at most `columns` cells wide; `[]` for an event that is not shown.
 * In the scrollback a blank line separates it from the block before; in full its local time stands in front.
 * @param state the session after the event
 */
export function eventLines(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  if (options.full) return linesWithTime(event, state, options)
  const lines = linesFor(event, state, options)
  return lines.length === 0 || isListed(event) ? lines : ['', ...lines]
}

/** Whether events of this kind form a list, without blank lines: passing gates, tasks, and the items of parallel agents. */
function isListed(event: Recorded): boolean {
  if (event.type === 'gate-ended') return event.status === 'passed' && event.when === 'claim'
  if (event.type === 'item-completed') return event.instance !== undefined
  return event.type === 'agent-started' || event.type === 'task-judged'
}

/** On the screen warnings are one line, whatever they say; `/status` and the log have them in full. */
function warningLines(event: RecordedOf<'warning'>, state: SessionState, options: BlockOptions): string[] {
  const { columns, theme } = options
  if (options.full) {
    const all = [event.message, ...(event.more ?? [])]
    return all.flatMap(message => wrapLine(theme.paint('warning', `warning: ${oneLine(message, MOST_TEXT)}`), columns))
  }
  const text = describeEvent(event, state, KEY_HINTS)?.text ?? ''
  const room = columns - widthOf(IN_FULL)
  const line = widthOf(text) <= columns || room < LEAST_WARNING ? text : `${cutLine(text, room)}${IN_FULL}`
  return [theme.paint('warning', cutLine(line, columns))]
}

const IN_FULL = ' /status'
/** Narrower than this, the end of a warning says more than where it is in full. */
const LEAST_WARNING = 20

// Narrower than this, the time has a line of its own.
const LEAST_COLUMNS_WITH_TIME = 60

function linesWithTime(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  const time = options.theme.paint('dim', formatTime(Date.parse(event.at)))
  if (options.columns < LEAST_COLUMNS_WITH_TIME) {
    const lines = linesFor(event, state, options)
    return lines.length === 0 || options.columns < widthOf(time) ? lines : [time, ...lines]
  }
  const gutter = ' '.repeat(widthOf(time) + 2)
  const lines = linesFor(event, state, { ...options, columns: options.columns - gutter.length })
  return lines.map((line, i) => (i === 0 ? `${time}  ${line}` : line && gutter + line))
}

function linesFor(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  switch (event.type) {
    case 'session-created':
      return sessionCreatedCard(event, state, options)
    case 'session-ended':
      return sessionEndedCard(event, state, options)
    case 'round-started':
    case 'round-ended':
      return roundLines(event, state, options)
    case 'item-completed':
      return completedItemLines(event, state, options)
    case 'shell-ran':
      return shellLines(event, options)
    case 'gate-ended':
      return gateLines(event, state, options)
    case 'review-ended':
      return reviewLines(event, options)
    case 'question-asked':
      return questionLines(describeQuestion(event, KEY_HINTS), options)
    case 'plan-updated':
      return checklistLines(event, options)
    // The header counts it down.
    case 'hold-until':
      return []
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
    case 'decision-asked':
      return decisionLines(event, state, options)
    case 'warning':
      return warningLines(event, state, options)
    case 'state-entered':
      return describedLines(options.full ? describeState(event) : describeEntered(event, state), options)
    // The table of `describeEvent` has every type; null there: the status line shows it while it lasts, or nothing does.
    default:
      return describedLines(describeEvent(event, state, KEY_HINTS), options)
  }
}

/** An item of the round, of its reviewer or of another agent. A reviewer's answer is shown as it was written only in full. */
function completedItemLines(event: RecordedOf<'item-completed'>, state: SessionState, options: BlockOptions): string[] {
  const { item, session, instance } = event
  if (isToldOfAgent(event, state)) return []
  if (instance !== undefined) return agentItemLines(event, instance, state, options)
  const draw = (columns: number) => itemLines(item, { session, directory: state.directory }, { ...options, columns })
  if (!options.full && item.kind === 'agent-message' && isAnswerTold(item.text, state)) return []
  if (!isReviewing(state)) return draw(options.columns)
  return reviewerLines(options, draw)
}

/** What is to be decided; what it is about, and the choices, only where no question on the screen shows them. */
function decisionLines(event: RecordedOf<'decision-asked'>, state: SessionState, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { heading, rest, left } = decisionInWords(event, state, KEY_HINTS)
  const strong = (text: string) => describedLines(describe(text, 'strong'), options)
  if (rest.length === 0) return describedLines(describe(heading), options)
  if (!full && theme.symbols) return strong(`${heading}\n${left}`)
  const about = event.body.trim() === '' ? [] : markdownLines(event.body, { columns, theme, first: true })
  return [...strong(heading), ...about, ...linesBelow({ text: '', more: rest, tone: 'strong' }, options)]
}

const PATH_CHARS = 300

/** The beginning or end of a round as a rule; in full with the agent's input or the changed files below it. */
function roundLines(
  event: RecordedOf<'round-started' | 'round-ended'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const rule = ruleLines(describeEvent(event, state, KEY_HINTS), options)
  if (!options.full) return rule
  const more = event.type === 'round-started' ? event.input.trim() : changedPaths(event)
  return more === '' ? rule : [...rule, ...describedLines(describe(more, 'quiet'), options)]
}

function changedPaths({ changed, changedCount }: RecordedOf<'round-ended'>): string {
  const shown = changed.map(path => oneLine(path, PATH_CHARS))
  return withRest(shown, changedCount).join('\n')
}

const LEAD = '── '

/** A description inside a horizontal rule; without the rule on a narrow terminal and for a screen reader. */
function ruleLines(description: Description | null, options: BlockOptions): string[] {
  const { columns, theme } = options
  if (description === null) return []
  const { text, tone } = description
  const room = columns - LEAD.length - widthOf(text) - 1
  if (!theme.symbols || room < 2) return describedLines(description, options)
  const rule = `${theme.paint('dim', LEAD)}${theme.paint(roleOf(tone), text)} ${theme.paint('dim', '─'.repeat(room))}`
  return [rule, ...linesBelow(description, options)]
}

/** An item of an agent that was given a task: one line behind its name; in full drawn as any item, below the name. */
function agentItemLines(
  { item, session }: RecordedOf<'item-completed'>,
  instance: string,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const place = { session, directory: state.directory }
  if (full) {
    const lines = behindBar(options, inner => itemLines(item, place, { ...options, columns: inner }))
    return lines.length === 0
      ? []
      : [...wrapLine(theme.paint('dim', oneLine(instance, AGENT_NAME_CHARS)), columns), ...lines]
  }
  const told = describeAgentItem(item, place)
  if (told === null) return []
  const { text, end = '', tone } = told
  const paint = (words: string) => theme.paint(roleOf(tone), words)
  const line = `${theme.paint('dim', agentLabel(instance, state))}  ${paint(text.slice(0, text.length - end.length))}`
  const room = columns - widthOf(end)
  if (room >= LEAST_BEFORE_END) return [cutLine(line, room) + paint(end)]
  return [cutLine(line, columns), ...wrapLine(paint(end.trim()), columns)]
}

/** With fewer cells than this for what was done, what came of it has a line of its own. */
const LEAST_BEFORE_END = 16

/** A question that was noted for the person: its text in bold, its details indented below. */
function questionLines({ text, more }: Description, { columns, theme }: BlockOptions): string[] {
  const sign = theme.symbols ? theme.paint('accent', '? ') : ''
  return [
    ...wrapLine(sign + theme.paint('strong', text), columns),
    ...underPrefix({ first: '  ', columns }, inner =>
      more.flatMap((line, i) => wrapLine(i === more.length - 1 ? theme.paint('dim', line) : line, inner)),
    ),
  ]
}

/** The most rows of a plan in the scrollback. */
const PLAN_ROWS = 60

/** What the person told the session, in a colour of its own; in full the whole text. */
function personLines(
  event: RecordedOf<'steered' | 'replan-asked'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  if (!options.full) return describedLines(describeEvent(event, state, KEY_HINTS), options, 'person')
  const lead = describeEvent({ ...event, text: '' }, state, KEY_HINTS)?.text ?? ''
  return describedLines(describe(`${lead}${event.text.trim()}`), options, 'person')
}

/** As where it is at work. */
const AGENT_MARK = '● '
const AGENT_NAME_CHARS = 300
const RESULT_CHARS = 1500
const RESULT_ROWS = 12
const REQUEST_ROWS = 2

/** An agent that was given a task: its name and its tasks; in full the whole request. */
function agentStartLines(event: RecordedOf<'agent-started'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const label = full ? oneLine(event.instance, AGENT_NAME_CHARS) : agentOf(event.instance)
  const first = theme.symbols ? theme.paint('accent', AGENT_MARK) : ''
  const words = `${theme.paint('strong', label)}${theme.symbols ? '  ' : ' starts: '}`
  const request = full ? safeText(event.request).split('\n') : [requestInWords(event.tasks, event.request)]
  return underPrefix({ first, columns }, inner => {
    const rows = request.flatMap((line, i) => wrapLine(i === 0 ? words + line : line, inner))
    if (!full) return firstRows(rows, REQUEST_ROWS, inner)
    const facts = agentFacts(event)
    return facts === '' ? rows : [...rows, ...wrapLine(theme.paint('dim', facts), inner)]
  })
}

const AGENT_ROLES: Readonly<Record<RecordedOf<'agent-ended'>['status'], Role>> = {
  completed: 'good',
  error: 'bad',
  terminated: 'warning',
}

/** The end of an agent's work, with its result below: the first rows of it, in full all of it. */
function agentEndLines(event: RecordedOf<'agent-ended'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const role = AGENT_ROLES[event.status]
  const label = theme.paint('strong', full ? oneLine(event.instance, AGENT_NAME_CHARS) : agentOf(event.instance))
  const heading = `${theme.symbols ? theme.paint(role, AGENT_MARK) : ''}${label}  ${theme.paint(role, agentEndInWords(event))}`
  const result = full ? event.result.trim() : clipText(event.result.trim(), RESULT_CHARS)
  return [
    ...wrapLine(heading, columns),
    ...underPrefix({ first: '  ', columns }, inner => {
      const rows = result === '' ? [] : markdownLines(result, { columns: inner, theme, first: true })
      return full ? rows : firstRows(rows, RESULT_ROWS, inner)
    }),
  ]
}

/** A finished plan as a checklist, by phases. */
function planLines(event: RecordedOf<'plan-ready'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const tasks = event.tasks.map(task => ({ ...task, done: false }))
  const rows = full ? 2 * tasks.length : PLAN_ROWS
  const board = { title: null, tasks, current: null }
  return [
    ...wrapLine(theme.paint('strong', planInWords(event)), columns),
    ...taskLines({ board, plan: [] }, { columns, rows, theme }),
  ]
}

const NAME_CHARS = 200
const GOAL_CHARS = 1000
const CARD_ROWS = 6
const FACT_ROWS = 2

/** The card at the beginning of a session: its goal, and its limits, gates and permissions. */
function sessionCreatedCard(
  event: RecordedOf<'session-created'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const { full } = options
  const codex = [event.model, event.effort].filter(value => value !== null).map(value => oneLine(value, NAME_CHARS))
  const goal = full
    ? safeText(clipText(event.goal.trim(), MOST_TEXT))
    : safeText(plainLines(clipText(event.goal.trim(), GOAL_CHARS)))
  const facts = [
    `${oneLine(event.template, NAME_CHARS)}, ${oneLine(event.sandbox, NAME_CHARS)}, network ${event.network ? 'on' : 'off'}, ${wordsForLimits(event.limits)}`,
    ...(event.adopted === undefined ? [] : [`continues from ${wordsForAdopted(event.adopted, Date.parse(event.at))}`]),
    ...(event.issue === undefined ? [] : [wordsForIssue(event.issue)]),
    ...(event.follows === undefined ? [] : [`continues from ${oneLine(event.follows, NAME_CHARS)}`]),
    ...(codex.length === 0 ? [] : [`model ${codex.join(', ')}`]),
    ...[wordsForGates(event.gates), wordsForReviewTerms(event.review), wordsForTests(event, state)].filter(
      words => words !== null,
    ),
  ]
  const rows = [
    ...cardText(goal, { most: full ? null : CARD_ROWS, role: 'strong' }, options),
    '',
    ...facts.flatMap(fact => cardText(fact, { most: FACT_ROWS, role: 'dim' }, options)),
  ]
  return cardLines(`session ${oneLine(event.session, NAME_CHARS)}`, rows, options)
}

/** The lines of a goal without their Markdown, and no more than one blank line between them. */
function plainLines(goal: string): string {
  const lines = goal.split('\n').map(line => {
    const [indent = ''] = /^[ \t]*/.exec(line) ?? []
    return indent + withoutMarkdown(line)
  })
  return lines
    .join('\n')
    .replace(/\n(?:[ \t]*\n){2,}/g, '\n\n')
    .trim()
}

/** The card at the end of a session: its outcome, how to go on, its goal, what it used, and how many questions are open. */
function sessionEndedCard(event: RecordedOf<'session-ended'>, state: SessionState, options: LineOptions): string[] {
  const { text, hint, tone } = describeOutcome(event.outcome, state)
  const rows = [
    ...cardText(text, { most: CARD_ROWS, role: roleOf(tone) }, options),
    ...cardText(hint ?? '', { most: CARD_ROWS, role: 'plain' }, options),
    ...cardText(titleLine(state.goal, GOAL_CHARS), { most: FACT_ROWS, role: 'plain' }, options),
    ...cardText(wordsForSpent(event), { most: FACT_ROWS, role: 'dim' }, options),
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

const NARROWEST_CARD = 24
const WIDEST_CARD = 84
// Both borders, and the space between each and the row.
const BORDER_CELLS = 4

/** The width of a row inside a card. */
function innerColumns({ columns, theme }: LineOptions): number {
  return hasBorder(columns, theme) ? Math.min(columns, WIDEST_CARD) - BORDER_CELLS : columns
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
  return theme.symbols && columns >= NARROWEST_CARD
}
