import type { EventOf } from '../events/events.ts'
import type { RefusedAnswer } from '../rules/answer.ts'
import { withOutput } from '../rules/outputs.ts'
import type { FoldsOf, SessionState } from './state.ts'

/** Names of answers of which a session knows that they were refused. */
const MOST_REFUSED = 100

/** Events of what a round comes to in words: an answer, or another output. */
export type AnswerEvent = EventOf<'answer-given' | 'answer-refused' | 'output-kept'>

/** The state after one more of them. Pure. */
export const ANSWER_FOLDS: FoldsOf<AnswerEvent> = {
  'answer-given': (state, event) => {
    const next = { ...state, outputs: withOutput(state.outputs, event.output) }
    return isOfReview(state)
      ? { ...next, reviews: { ...state.reviews, problem: null } }
      : { ...next, refusedAnswers: withoutRefusal(state.refusedAnswers, event.name) }
  },
  'answer-refused': (state, event) =>
    isOfReview(state)
      ? { ...state, reviews: { ...state.reviews, problem: event.problem } }
      : { ...state, refusedAnswers: withRefusal(state.refusedAnswers, event) },
  'output-kept': (state, event) => ({ ...state, outputs: withOutput(state.outputs, event.output) }),
}

/** Why an answer of this name was refused when it was given last; null if it was not. Pure. */
export function refusedAnswer(
  { refusedAnswers }: Pick<SessionState, 'refusedAnswers'>,
  name: string,
): RefusedAnswer | null {
  return Object.hasOwn(refusedAnswers, name) ? (refusedAnswers[name] ?? null) : null
}

/** What was refused before a session that goes on: a person has looked at it, so that it may be refused as often again. */
export function refusedAtResume({ refusedAnswers, ended }: SessionState): SessionState['refusedAnswers'] {
  if (ended === null) return refusedAnswers
  const entries = Object.entries(refusedAnswers)
  return Object.fromEntries(entries.map(([name, { problem }]) => [name, { refusals: 0, problem }]))
}

/** An answer to a review counts among the reviews: a template may call one of its own the same. */
function isOfReview({ checking }: SessionState): boolean {
  return checking?.kind === 'review'
}

type Refused = Readonly<Record<string, RefusedAnswer>>

function withoutRefusal(refused: Refused, name: string): Refused {
  if (!Object.hasOwn(refused, name)) return refused
  const { [name]: _, ...others } = refused
  return others
}

function withRefusal(refused: Refused, { name, problem }: EventOf<'answer-refused'>): Refused {
  const before = refusedAnswer({ refusedAnswers: refused }, name)?.refusals ?? 0
  const others = Object.entries(withoutRefusal(refused, name)).slice(-MOST_REFUSED + 1)
  return Object.fromEntries([...others, [name, { refusals: before + 1, problem }]])
}
