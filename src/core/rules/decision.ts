import { clipEnd, truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { Reply } from '../shapes/reply.ts'

/** A decision that a template asks of a person; docs/reference/events.md explains each field. */
export type Decision = Omit<EventOf<'decision-asked'>, 'type' | 'until'>

/** The choice that gives the secret of a decision (`Decision.secret`), which was stored before. */
export const GIVE_SECRET = 'give'

/** A possible answer to a decision. */
export type Choice = Decision['choices'][number]

/** An open decision. */
export interface OpenDecision extends Decision {
  /** Times when it was asked, and when its default applies or the session ends without it; Unix time, ms. */
  since: number
  until: number
}

/** A decision that was made, with the label of its choice. */
export interface DecidedChoice extends Omit<EventOf<'decision-made'>, 'type'> {
  label: string
}

/** Automatic end of a wait for a person: the default applies, the time limit is reached, or the session ends. */
export interface HoldEnd {
  /** Time in ms, by the clock of the input times. */
  at: number
  how: EventOf<'hold-until'>['how']
}

/** Input for the end of a wait for a person; times are ms since it began. */
interface HoldTerms {
  now: number
  hasDefault: boolean
  /** Time since which nobody watches; null: somebody does, which postpones the default. */
  aloneSince: number | null
  decideAfterMs: number
  maxWaitMs: number
  /** Time when the session's time limit is reached; Infinity: never. */
  limitAt: number
}

/**
 * Returns the end of a wait for a person. A time limit wins over another end at the same ms, or if both have passed: it
 * would stop the work at once. Pure.
 */
export function endOfHold({ now, hasDefault, aloneSince, decideAfterMs, maxWaitMs, limitAt }: HoldTerms): HoldEnd {
  const at = hasDefault && aloneSince !== null ? Math.min(aloneSince + decideAfterMs, maxWaitMs) : maxWaitMs
  if (limitAt - Math.max(at, now) < 1) return { at: limitAt, how: hasDefault ? 'limit' : 'needs-person' }
  return { at, how: hasDefault ? 'goes-on' : 'needs-person' }
}

/** A person's answer. `session`, `decision`, `version` of the plan: its target; left out: the open one. */
export interface DecisionAnswer {
  choice: string
  text?: string
  session?: string
  decision?: string
  version?: number
}

/** Parses a typed answer; null: blank. A number selects the choice at that position. Pure. */
export function answerIn(line: string, choices: readonly Choice[]): DecisionAnswer | null {
  const [, first = '', rest = ''] = /^\s*(\S+)\s*(.*)$/s.exec(line) ?? []
  if (first === '') return null
  const byNumber = /^\d{1,2}$/.test(first) ? choices[Number(first) - 1]?.id : undefined
  const text = rest.trim()
  const said = /^"[^"]*"$/.test(text) ? text.slice(1, -1) : text
  return { choice: byNumber ?? first, ...(said === '' ? {} : { text: said }) }
}

const ID = /^[a-z][a-z0-9-]{0,39}$/
const MOST_CHOICES = 20
const TITLE_CHARS = 500
const BODY_CHARS = 16_000
const LABEL_CHARS = 200

/**
 * Returns a decision for the journal, with long texts cut. Throws an `Error` for an invalid one: its default is none of its
 * choices, for example.
 */
export function checkedDecision(decision: Decision): Decision {
  const problem = problemOf(decision)
  if (problem !== null) throw new Error(`The decision ${JSON.stringify(decision.id).slice(0, 100)} ${problem}.`)
  return {
    ...decision,
    title: clipLine(decision.title, TITLE_CHARS),
    body: clipEnd(decision.body, BODY_CHARS),
    choices: decision.choices.map(choice => ({
      ...choice,
      label: clipLine(choice.label, LABEL_CHARS),
      ...(choice.hint === undefined ? {} : { hint: clipLine(choice.hint, LABEL_CHARS) }),
    })),
  }
}

/** Returns the rest of a sentence that starts with the decision's id; null: no problem. */
function problemOf({ id, title, choices, default: usual, file }: Decision): string | null {
  const ids = choices.map(choice => choice.id)
  if (!ID.test(id) || !ids.every(each => ID.test(each))) return 'has an id that is not a lower-case word'
  if (title.trim() === '') return 'has no title'
  if (ids.length === 0 || ids.length > MOST_CHOICES) return `must have 1 to ${MOST_CHOICES} choices`
  if (new Set(ids).size < ids.length) return 'has two choices with the same id'
  if (file === undefined && choices.some(({ opensFile }) => opensFile))
    return 'has a choice that opens a file, but names no file'
  if (usual === null) return null
  const chosen = choices.find(choice => choice.id === usual)
  if (chosen === undefined) return 'has a default that is not one of its choices'
  return chosen.text === 'must' ? 'has a default that needs a text' : null
}

function clipLine(text: string, limit: number): string {
  return truncate(text.replace(/\s+/g, ' ').trim(), limit)
}

/** The parts of a session about its decision. */
interface Deciding {
  id: string
  decision: OpenDecision | null
  decided: DecidedChoice | null
  ended: unknown
}

/** Returns why an answer is refused; null: it is accepted. The first answer was journaled and wins. Pure. */
export function refusalOf(answer: DecisionAnswer, state: Deciding): Reply | null {
  const { id, ended } = state
  if (answer.session !== undefined && answer.session !== id) {
    return { code: 'other-session', message: `${id} runs now, not ${answer.session}.` }
  }
  const open = ended === null ? state.decision : null
  if (open === null || (answer.decision !== undefined && answer.decision !== open.id)) return notAsked(answer, state)
  const choice = open.choices.find(each => each.id === answer.choice)
  if (choice === undefined) {
    const known = open.choices.map(each => each.id).join(', ')
    return {
      code: 'unknown-choice',
      message: `${id} offers no choice "${answer.choice.slice(0, 80)}"; use one of ${known}.`,
    }
  }
  const hasText = answer.text !== undefined && answer.text.trim() !== ''
  if (choice.text === 'must' && !hasText) {
    return { code: 'text-missing', message: `"${choice.id}" needs a text: describe what you want.` }
  }
  if (choice.text === undefined && hasText) {
    return { code: 'text-not-wanted', message: `"${choice.id}" takes no text; leave it out.` }
  }
  return null
}

function notAsked({ decision: meant }: DecisionAnswer, { id, decision, decided, ended }: Deciding): Reply {
  if (ended !== null) return { code: 'not-asked', message: `${id} has ended, so it takes no more decisions.` }
  if (decided !== null && (meant === undefined ? decision === null : meant === decided.id)) {
    const by = decided.by === 'default' ? ', by default' : ''
    return { code: 'not-asked', message: `"${decided.id}" of ${id} was already decided: ${decided.choice}${by}.` }
  }
  const open = decision === null ? 'nothing' : `about "${decision.id}"`
  return {
    code: 'not-asked',
    message: `${id} asks ${open} now${meant === undefined ? '' : `, not about "${meant.slice(0, 80)}"`}.`,
  }
}
