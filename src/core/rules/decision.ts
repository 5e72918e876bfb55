import { clipEnd, truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { Reply } from '../shapes/reply.ts'

/** What a template has a person decide; docs/reference/events.md says what each field is. */
export type Decision = Omit<EventOf<'decision-asked'>, 'type' | 'until'>

/** The choice by which a secret is given that a decision is about (`Decision.secret`): it has been stored before. */
export const GIVE_SECRET = 'give'

/** What can be answered to a decision. */
export type Choice = Decision['choices'][number]

/** A decision that is asked for. */
export interface OpenDecision extends Decision {
  /** When it was asked, and when its default is taken, or the session ends without it; Unix time, ms. */
  since: number
  until: number
}

/** A decision that was made, and what its choice was called. */
export interface DecidedChoice extends Omit<EventOf<'decision-made'>, 'type'> {
  label: string
}

/** When a wait for a person ends by itself, and how: its default is taken, the session's time is used up, or it ends for want of a person. */
export interface HoldEnd {
  /** ms, by the clock of what it was computed from. */
  at: number
  how: EventOf<'hold-until'>['how']
}

/** What the end of a wait for a person follows from; times are ms since it began. */
interface HoldTerms {
  now: number
  hasDefault: boolean
  /** Since when nobody sees that it waits; null while somebody does, which puts the default off. */
  aloneSince: number | null
  decideAfterMs: number
  maxWaitMs: number
  /** When the session's time is used up; Infinity: never. */
  limitAt: number
}

/**
 * The end of a wait for a person. Of a limit and another end in the same moment, to the ms, the limit counts, and so it
 * does where both have passed: the work would be ended by it at once. Pure.
 */
export function endOfHold({ now, hasDefault, aloneSince, decideAfterMs, maxWaitMs, limitAt }: HoldTerms): HoldEnd {
  const at = hasDefault && aloneSince !== null ? Math.min(aloneSince + decideAfterMs, maxWaitMs) : maxWaitMs
  if (limitAt - Math.max(at, now) < 1) return { at: limitAt, how: hasDefault ? 'limit' : 'needs-person' }
  return { at, how: hasDefault ? 'goes-on' : 'needs-person' }
}

/** What somebody answers. `session`, `decision`, `version` of the plan: which they mean; left out: the one that is asked for. */
export interface DecisionAnswer {
  choice: string
  text?: string
  session?: string
  decision?: string
  version?: number
}

/** What a line that a person typed answers; null if it is blank. A number alone is the choice in that place. Pure. */
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
 * A decision as it is journaled: its texts cut where they are too long. Throws an error for one that no template may ask
 * for, such as one whose default is none of its choices.
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

/** Goes on after the decision's id. */
function problemOf({ id, title, choices, default: usual, file }: Decision): string | null {
  const ids = choices.map(choice => choice.id)
  if (!ID.test(id) || !ids.every(each => ID.test(each))) return 'has an id that is no word of small letters'
  if (title.trim() === '') return 'has no title'
  if (ids.length === 0 || ids.length > MOST_CHOICES) return `has not 1 to ${MOST_CHOICES} choices`
  if (new Set(ids).size < ids.length) return 'has two choices of the same id'
  if (file === undefined && choices.some(({ opensFile }) => opensFile)) return 'has no file that could be opened'
  if (usual === null) return null
  const chosen = choices.find(choice => choice.id === usual)
  if (chosen === undefined) return 'has a default that is none of its choices'
  return chosen.text === 'must' ? 'has a default that needs a text' : null
}

function clipLine(text: string, limit: number): string {
  return truncate(text.replace(/\s+/g, ' ').trim(), limit)
}

/** What of a session says whether something is to be decided. */
interface Deciding {
  id: string
  decision: OpenDecision | null
  decided: DecidedChoice | null
  ended: unknown
}

/** Why an answer is not taken; null if it is. The one that came first has been journaled, and counts. Pure. */
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
    return { code: 'not-asked', message: `"${decided.id}" of ${id} has been decided already: ${decided.choice}${by}.` }
  }
  const open = decision === null ? 'nothing' : `about "${decision.id}"`
  return {
    code: 'not-asked',
    message: `${id} asks ${open} now${meant === undefined ? '' : `, not about "${meant.slice(0, 80)}"`}.`,
  }
}
