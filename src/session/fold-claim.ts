import { unreachable } from '../base/errors.ts'
import type { ClaimEvent } from './claim-events.ts'
import type { EventOf } from './events.ts'
import { afterGateOfBuild, buildAfterRefusal } from './fold-build.ts'
import { accepted, endGate, endReview } from './fold-proof.ts'
import { hasPassed } from './gate.ts'
import { told } from './hand-over.ts'
import { refusalNotice } from './notices.ts'
import { stallAfterRefusal } from './stall.ts'
import type { SessionState } from './state.ts'

/** The state after one more event of a done claim. Pure. */
export function foldClaim(state: SessionState, event: ClaimEvent, at: number): SessionState {
  switch (event.type) {
    case 'gate-started':
      return { ...state, checking: { kind: 'gate', gate: event.gate, when: event.when, since: at } }
    case 'gate-ended':
      return endGate({ ...state, checking: null, build: afterGateOfBuild(state.build, event) }, event)
    case 'done-nominated':
      return { ...state, claim: { state: 'nominated', by: event.by, tree: event.tree ?? null, results: [] } }
    case 'review-started':
      return { ...state, checking: { kind: 'review', review: event.review, since: at, heard: state.personSaid } }
    case 'review-ended':
      return endReview(state, event, at)
    case 'done-refused':
      return refuse(state, event)
    case 'done-accepted':
      return { ...state, claim: accepted(state.claim, event) }
    default:
      return unreachable(event)
  }
}

function refuse(state: SessionState, event: EventOf<'done-refused'>): SessionState {
  const refused: SessionState = {
    ...state,
    claim: { state: 'refused', reason: event.reason, detail: event.detail },
    build: buildAfterRefusal(state.build, event),
    stall: isJudged(state.last)
      ? stallAfterRefusal(state.stall, event.round, samenessOf(event, state.claim))
      : state.stall,
  }
  return told(refused, refusalNotice(event.detail))
}

/** Whether a refused claim of this round says anything: not if it used up none of the limit, or was broken off. */
function isJudged(round: SessionState['last']): boolean {
  return round === null || (round.counts && round.outcome.class !== 'interrupted')
}

/** By what the same refusal is known: what gates print may differ from run to run, though nothing has got better. */
function samenessOf({ reason, detail }: EventOf<'done-refused'>, claim: SessionState['claim']): string {
  if (reason !== 'gate-failed' || claim.state !== 'nominated') return `${reason} ${detail}`
  const failed = claim.results.filter(({ status }) => !hasPassed(status))
  return `${reason} ${failed.map(({ gate, status, exitCode }) => `${gate} ${status} ${exitCode}`).join(' ')}`
}
