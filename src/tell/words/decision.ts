import type { RecordedOf } from '../../core/events/events.ts'
import { type Choice, GIVE_SECRET, type OpenDecision } from '../../core/rules/decision.ts'
import { PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { here } from './commands.ts'
import { clipLines, type Description, describe, type Hints } from './names.ts'
import { formatCountdown, formatMoment } from './numbers.ts'
import { oneLine } from './safe-text.ts'

/** Returns a sentence on the saved text of an answer that was not accepted. */
export function keptEdit(file: string): string {
  return `Your text is saved in ${oneLine(file, PATH_CHARS)}.`
}

/** Says the same if the decision was made during the edit. */
export function decidedMeanwhile(file: string | null): string {
  const already = 'It was already decided'
  return file === null ? already : `${already}. ${keptEdit(file)}`
}

const PATH_CHARS = 300
const TITLE_CHARS = 500
const LABEL_CHARS = 200
const MOST_LINES = 40
const REST = 'the session has all of it'

/**
 * Describes an open decision for a person. A build's plan has its own words.
 * @param state the session after the event
 */
export function describeDecisionAsked(event: Asked, state: TaskPlanSign, hints: Hints): Description {
  const { heading, rest } = decisionInWords(event, state, hints)
  if (rest.length === 0) return describe(heading)
  return describe([heading, ...bodyOf(event.body), ...rest].join('\n'), 'strong')
}

type Asked = RecordedOf<'decision-asked'>
type TaskPlanSign = Pick<SessionState, 'taskPlan'>

/**
 * Describes a decision in lines, without its subject: the question, the choices, and the end; no `rest` if its default
 * applies at once.
 */
export function decisionInWords(
  { at, id, title, choices, default: usual, file, until }: Asked,
  { taskPlan }: TaskPlanSign,
  hints: Hints,
): { heading: string; rest: string[]; left: string } {
  const [now, end] = [Date.parse(at), Date.parse(until)]
  if (end <= now) return { heading: `to decide: ${oneLine(title, TITLE_CHARS)}`, rest: [], left: '' }
  const left = wordsForDecisionEnd({ choices, default: usual, until: end }, now)
  if (id === PLAN_DECISION && taskPlan !== null)
    return { heading: `the plan waits for you: ${hints.startBuild}`, rest: [left], left }
  const how = `${left}; ${hints.decide}`
  return {
    heading: `you decide: ${oneLine(title, TITLE_CHARS)}`,
    rest: [...choicesInWords({ choices, file }), how],
    left: how,
  }
}

/** Says when and how a decision ends unanswered: `after 10 min without an answer: Start`. Times: Unix time, ms. */
export function wordsForDecisionEnd(
  { choices, default: usual, until }: Pick<OpenDecision, 'choices' | 'default' | 'until'>,
  now: number,
): string {
  return usual === null
    ? `it waits until ${formatMoment(until, now)} at the longest`
    : `after ${formatCountdown(until - now)} without an answer: ${labelOf(choices, usual)}`
}

/**
 * Describes the answer to a decision.
 * @param state the session after the event
 */
export function describeDecisionMade(
  { choice, text, by }: RecordedOf<'decision-made'>,
  { decided }: Pick<SessionState, 'decided'>,
): Description {
  const label = oneLine(decided?.label ?? choice, LABEL_CHARS)
  const said = text === null ? '' : `: ${clipLines(text, MOST_LINES, REST)}`
  return by === 'default'
    ? describe(`nobody answered, so: ${label}`, 'warning')
    : describe(`decided by a person: ${label}${said}`, 'strong')
}

/** Describes a session with an open decision: `you decide: Which way? (since 22:41, until 22:51: Start)`. */
export function wordsForDeciding(decision: OpenDecision, now: number): string {
  const { title, default: usual, since, until, choices } = decision
  const then = usual === null ? '' : `: ${labelOf(choices, usual)}`
  return `${oneLine(title, TITLE_CHARS)} (since ${formatMoment(since, now)}, until ${formatMoment(until, now)}${then})`
}

/**
 * Describes an open decision with the commands that answer it. `about`: its subject, in lines that are safe to write;
 * `directory`: as typed; null: not typed.
 */
export function decisionLines(
  session: string,
  decision: OpenDecision,
  { now, directory, about }: { now: number; directory: string | null; about: readonly string[] },
): string[] {
  const { title, choices, default: usual, file, until, secret } = decision
  const left =
    usual === null
      ? `It waits until ${formatMoment(until, now)} at the longest.`
      : `Without an answer until ${formatMoment(until, now)}, ${formatCountdown(Math.max(0, until - now))} from now: ${labelOf(choices, usual)}`
  return [
    `${session} asks: ${oneLine(title, TITLE_CHARS)}`,
    ...about,
    ...choicesInWords({ choices, file }),
    left,
    'To decide:',
    ...choices.map(choice =>
      secret !== undefined && choice.id === GIVE_SECRET
        ? `  codemachine secret set ${secret.key}${here(directory)}`
        : `  ${decideCommand(choice, directory)}`,
    ),
  ]
}

/** Returns the command that selects a choice. `directory`: the work directory as typed; null: not typed. */
function decideCommand({ id, text }: Choice, directory: string | null): string {
  const said = text === undefined ? '' : text === 'must' ? ' "…"' : ' ["…"]'
  return `codemachine decide ${id}${said}${here(directory)}`
}

/** Lists the choices, a line each, after the file that they are about. */
export function choicesInWords({ choices, file }: { choices: readonly Choice[]; file?: string | undefined }): string[] {
  return [...seeFile(file), ...choices.map(choiceInWords)]
}

function seeFile(file: string | undefined): string[] {
  return file === undefined ? [] : [`  See ${oneLine(file, LABEL_CHARS)}`]
}

function choiceInWords({ id, label, hint }: Choice): string {
  const more = hint === undefined ? '' : ` (${oneLine(hint, LABEL_CHARS)})`
  return `  ${id}: ${oneLine(label, LABEL_CHARS)}${more}`
}

function bodyOf(body: string): string[] {
  return body.trim() === '' ? [] : clipLines(body, MOST_LINES, REST).split('\n')
}

/** Returns the words of a choice, on one line. */
export function labelOf(choices: readonly Choice[], id: string): string {
  return oneLine(choices.find(choice => choice.id === id)?.label ?? id, LABEL_CHARS)
}
