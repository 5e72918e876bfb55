import { withoutAgreement } from './fold-proof.ts'
import type { SessionState } from './state.ts'

const MOST_SAID = 20

/** The session after a person has said more of the goal: no review has seen that. */
export function alsoSaid(state: SessionState, text: string): SessionState {
  return {
    ...state,
    personSaid: [...state.personSaid, text].slice(-MOST_SAID),
    reviews: withoutAgreement(state.reviews),
  }
}
