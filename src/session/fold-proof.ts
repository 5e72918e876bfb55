import type { EventOf } from './events.ts'
import { failuresAfter } from './failures.ts'
import { failuresOfGates } from './flaky-gate.ts'
import type { GateResult } from './gate.ts'
import { told } from './hand-over.ts'
import { gateNotice } from './notices.ts'
import { keyOf, type Reviews } from './review.ts'
import { sessionTokens } from './session-tokens.ts'
import type { Claim, SessionState } from './state.ts'

// What the state keeps of the proof of a claim: savepoints, gates, reviews. Pure, as the fold that it is a part of.

/** The first one says what the session began with, unless a round has changed that already. */
export function savepointAfter(
  { savepoint, last }: SessionState,
  { round, commit, tree }: EventOf<'savepoint'>,
): SessionState['savepoint'] {
  const start = savepoint === null ? (last === null ? tree : null) : savepoint.start
  return { round, commit, tree, start }
}

const MOST_PROTECTED = 50

/** The protected files that rounds have changed, after one more. */
export function alsoChanged(
  { protectedChanged }: SessionState,
  files: EventOf<'protected-changed'>['files'],
): readonly string[] {
  return [...new Set([...protectedChanged, ...files.map(({ path }) => path)])].slice(-MOST_PROTECTED)
}

/** The state after a gate has run. One that was broken off says nothing, and runs again. */
export function endGate(state: SessionState, event: EventOf<'gate-ended'>): SessionState {
  const { type: _, round: __, when, treeAfter, ...result } = event
  if (result.status === 'broken-off') return state
  const isBad = result.status !== 'passed'
  const ran = {
    ...state,
    gateRuns: withRun(state.gateRuns, event),
    gateFailures: failuresOfGates(state.gateFailures, event, state.gates),
    flakyGates: result.status === 'flaky' ? withName(state.flakyGates, result.gate) : state.flakyGates,
  }
  switch (when) {
    case 'before': {
      const before = withResult(state.before, result)
      return isBad ? told({ ...ran, before }, gateNotice(when, result)) : { ...ran, before }
    }
    case 'tasks':
    case 'after-round':
      return isBad ? told(ran, gateNotice(when, result)) : ran
    case 'claim':
      if (state.claim.state !== 'nominated') return ran
      return { ...ran, claim: afterGate(state.claim, result, treeAfter) }
  }
}

const MOST_FLAKY = 100

function withName(names: readonly string[], name: string): readonly string[] {
  return [...names.filter(each => each !== name), name].slice(-MOST_FLAKY)
}

function withRun(
  runs: SessionState['gateRuns'],
  { gate, when, round, status, exitCode, durationMs }: EventOf<'gate-ended'>,
): SessionState['gateRuns'] {
  return [...runs.filter(run => run.gate !== gate), { gate, when, round, status, exitCode, durationMs }]
}

/** What a gate itself changes in the files does not change what is claimed of them. */
function afterGate(
  claim: Extract<Claim, { state: 'nominated' }>,
  result: GateResult,
  treeAfter: string | undefined,
): Claim {
  return { ...claim, tree: treeAfter ?? claim.tree, results: withResult(claim.results, result) }
}

/** The last result of each gate. */
function withResult(results: readonly GateResult[], result: GateResult): readonly GateResult[] {
  return [...results.filter(({ gate }) => gate !== result.gate), result]
}

/** The state after a review: its turn fails and is tried again as that of a round is. */
export function endReview(state: SessionState, event: EventOf<'review-ended'>, at: number): SessionState {
  const { outcome } = event
  const reviews = reviewsAfter(state.reviews, event)
  return {
    ...state,
    checking: null,
    heldSince: state.pausedAt === null ? null : at,
    offlineSince: null,
    windingDown: null,
    tokensBefore: sessionTokens(state),
    threadTokens: {},
    failures: failuresAfter(state.failures, { outcome, counts: outcome.class === 'worked' }, true, at),
    reviews: hasHeardAll(state) ? reviews : withoutAgreement(reviews),
  }
}

/** Whether a person has said nothing that the reviewer had not been told. */
function hasHeardAll({ checking, personSaid }: SessionState): boolean {
  return checking?.kind !== 'review' || checking.heard === personSaid
}

function reviewsAfter(before: Reviews, { round, outcome, answer, repeated, tree }: EventOf<'review-ended'>): Reviews {
  if (answer !== null) {
    return {
      answered: before.answered + 1,
      withoutAnswer: 0,
      of: { round, tree },
      agreedTo: answer.verdict === 'agreed' ? tree : null,
      last: answer,
      repeated,
      seen: [...new Set([...before.seen, ...answer.findings.map(keyOf)])],
    }
  }
  return GAVE_NONE.has(outcome.class) ? { ...before, withoutAnswer: before.withoutAnswer + 1 } : before
}

/** Ends of a review's turn which show that it does not come to an answer, and not that something was in its way. */
const GAVE_NONE = new Set<string>(['worked', 'context-full', 'refused', 'silent'])

/** The claim once it has been accepted. */
export function accepted(claim: Claim, { tree, verified = false }: EventOf<'done-accepted'>): Claim {
  return { state: 'accepted', tree, verified, results: claim.state === 'nominated' ? claim.results : [] }
}

/** The tree of which it is claimed that the goal is reached; null if it is not, or not any more. */
function claimedTree(claim: Claim): string | null {
  return claim.state === 'nominated' || claim.state === 'accepted' ? claim.tree : null
}

/** The claim that a session goes on with, to be proved from the beginning: what holds may have changed meanwhile. */
export function claimAtResume({ claim, ended }: SessionState): Claim {
  const tree = claimedTree(claim)
  // It is gone by, unless the session was cut off while it was looked at.
  if (ended !== null || tree === null) return { state: 'none' }
  return { state: 'nominated', by: claim.state === 'nominated' ? claim.by : [], tree, results: [] }
}

/** The reviews of a session that goes on: a person who has looked at what they found may have new ones made. */
export function reviewsAtResume({ reviews, ended }: SessionState): Reviews {
  return ended === null ? reviews : { ...reviews, answered: 0, withoutAnswer: 0, seen: [], repeated: [] }
}

/** The reviews once a person has said more: none of them has seen that. */
export function withoutAgreement(reviews: Reviews): Reviews {
  return { ...reviews, agreedTo: null, of: null }
}
