import type { Gate, GateResult } from '../session/gate.ts'
import type { ReviewTerms } from '../session/review.ts'
import type { Claim, SessionState } from '../session/state.ts'
import { formatCount } from './format-count.ts'
import { oneLine } from './safe-text.ts'
import { gateName } from './words-for-gate.ts'

const MOST_GATES = 8
const NAME_CHARS = 120

/** What tells by what a claim is proved; as in SessionState. */
export interface ProvedState {
  claim:
    | Exclude<Claim, { state: 'accepted' }>
    | { state: 'accepted'; tree: string; results: readonly Pick<GateResult, 'gate' | 'status'>[] }
  gates: { readonly length: number }
  reviews: Pick<SessionState['reviews'], 'agreedTo'>
}

/**
 * How far what is done is proved: `verified by 2 gates, reviewed`.
 * @param state the session after its claim was accepted; left out: not known
 */
export function wordsForProof(verified: boolean, state?: ProvedState): string {
  const claim = state?.claim.state === 'accepted' ? state.claim : null
  const named = (...status: GateResult['status'][]) =>
    (claim?.results ?? []).filter(result => status.includes(result.status)).map(({ gate }) => gateName(gate))
  const [passed, flaky] = [named('passed', 'flaky'), named('flaky')]
  const failed = named('failed', 'timed-out', 'not-started')
  const isReviewed = claim !== null && claim.tree === state?.reviews.agreedTo
  const why = state?.gates.length ? 'no gate is required' : 'no gates are configured'
  const proved = verified ? `${verifiedBy(passed.length)}${isReviewed ? ', reviewed' : ''}` : null
  return [
    proved ?? (isReviewed ? `unverified: a review agreed, but ${why}` : `unverified, for ${why}`),
    ...(flaky.length === 0 ? [] : [`flaky: ${flaky.join(', ')}`]),
    ...(failed.length === 0 ? [] : [`not required, and not passed: ${failed.join(', ')}`]),
  ].join('; ')
}

function verifiedBy(passed: number): string {
  return passed === 0 ? 'verified' : `verified by ${formatCount(passed, 'gate')}`
}

/** The gates of a session: `gates tests, lint (not required)`; null if they are not known, `no gates` if there are none. */
export function wordsForGates(gates: readonly Gate[] | undefined): string | null {
  if (gates === undefined) return null
  if (gates.length === 0) return 'no gates'
  const shown = gates.slice(0, MOST_GATES).map(gate => `${gateName(gate.name)}${remarkOn(gate)}`)
  const left = gates.length - shown.length
  return `gates ${[...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join(', ')}`
}

function remarkOn({ required, everyRound }: Gate): string {
  const remarks = [...(required ? [] : ['not required']), ...(everyRound ? ['after every round'] : [])]
  return remarks.length === 0 ? '' : ` (${remarks.join(', ')})`
}

/** That a review has to agree before done, and with what it is made; null if none is asked for. */
export function wordsForReviewTerms(review: ReviewTerms | null | undefined): string | null {
  if (review === undefined || review === null) return null
  const terms = [review.model, review.effort].filter(term => term !== null).map(term => oneLine(term, NAME_CHARS))
  return `a review before done${terms.length === 0 ? '' : ` (${terms.join(' ')})`}`
}

/** Questions that the agent would have asked: `2 questions were asked; codemachine questions shows them`; null if none. */
export function wordsForQuestions(questions: number): string | null {
  if (questions === 0) return null
  const were =
    questions === 1 ? 'was asked; codemachine questions shows it' : 'were asked; codemachine questions shows them'
  return `${formatCount(questions, 'question')} ${were}`
}
