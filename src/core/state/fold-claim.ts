import type { ClaimEvent, EventOf, FileEvent } from '../events/events.ts'
import { type Gate, type GateResult, hasPassed } from '../events/outcome.ts'
import {
  gateNotice,
  goalNotice,
  memoryNotice,
  protectedNotice,
  refusalNotice,
  restoredNotice,
} from '../rules/notices.ts'
import { withNotice } from '../rules/notices-after-round.ts'
import { findingKey, type Reviews } from '../rules/review.ts'
import { stallAfterRefusal } from '../rules/stall.ts'
import { planAfterBrokenMemory, planAfterGate } from './fold-plan.ts'
import {
  afterOtherTurn,
  type Claim,
  type FoldsOf,
  type GateFailure,
  gaveNoAnswer,
  reachAfter,
  type SessionState,
} from './state.ts'

/** Folds of events of a done claim. Pure. */
export const CLAIM_FOLDS: FoldsOf<ClaimEvent> = {
  'gate-started': (state, event, at) => ({
    ...state,
    checking: { kind: 'gate', gate: event.gate, when: event.when, since: at },
  }),
  'gate-ended': (state, event) =>
    endGate({ ...state, checking: null, taskPlan: planAfterGate(state.taskPlan, event) }, event),
  'counter-proof': (state, { type: _, round: __, scope: ___, ...proof }) => ({
    ...state,
    checking: null,
    counterProofs: [...state.counterProofs.filter(({ gate }) => gate !== proof.gate), proof],
  }),
  'done-nominated': (state, event) => ({
    ...state,
    ...(event.step === undefined ? {} : { step: null, steps: event.step }),
    claim: { state: 'nominated', by: event.by, tree: event.tree ?? null, results: [] },
  }),
  'review-started': (state, event, at) => ({
    ...state,
    providerInUse: event.provider ?? null,
    reachOfEngines: reachAfter(state, event),
    checking: {
      kind: 'review',
      review: event.review,
      since: at,
      heard: state.personSaid,
      configuration: state.gateConfiguration?.digest ?? null,
    },
  }),
  'review-ended': endReview,
  'done-refused': refuse,
  // A scope's accepted claim never counts for the session; `scope-left` follows it.
  'done-accepted': (state, event) =>
    state.scope === null && event.scope === undefined ? { ...state, claim: accepted(state.claim, event) } : state,
}

/** Folds of file events. Pure. */
export const FILE_FOLDS: FoldsOf<FileEvent> = {
  'memory-broken': (state, event) =>
    withNotice({ ...state, taskPlan: planAfterBrokenMemory(state.taskPlan, event) }, memoryNotice(event.problem)),
  'goal-restored': (state, event) => withNotice({ ...state, goalRestored: true }, goalNotice(event)),
  'repository-restored': (state, event) => withNotice(state, restoredNotice(event.paths)),
  savepoint: (state, event) => ({
    ...state,
    savepoint: savepointAfter(state, event),
    unkept: unkeptAfter(state.unkept, event),
  }),
  'settings-changed': state => state,
  'gate-configuration': (state, { files, count, digest, programs }) => ({
    ...state,
    gateConfiguration: { files, count, digest, programs: programs ?? state.gateConfiguration?.programs ?? null },
  }),
  'protected-changed': (state, event) =>
    withNotice({ ...state, protectedChanged: protectedChangedAfter(state, event.files) }, protectedNotice(event.files)),
}

/** A savepoint also contains earlier rounds, but not one that was later retried under the same number. */
function unkeptAfter(unkept: SessionState['unkept'], { round, tree }: EventOf<'savepoint'>): SessionState['unkept'] {
  const kept = unkept.findLastIndex(each => each.round === round && each.tree === tree)
  return kept === -1 ? unkept.filter(each => each.round > round) : unkept.slice(kept + 1)
}

function refuse(state: SessionState, event: EventOf<'done-refused'>): SessionState {
  const refused: SessionState = {
    ...state,
    claim: { state: 'refused', reason: event.reason, detail: event.detail },
    toldNothingDone: state.toldNothingDone || event.reason === 'nothing-done',
    stall:
      isJudged(state.last) && state.kind?.mendsClaims !== true
        ? stallAfterRefusal(state.stall, event.round, samenessOf(event, state.claim))
        : state.stall,
  }
  return withNotice(refused, refusalNotice(event.detail))
}

/** Returns true if a refused claim of this round counts: the round used up the limit, and was not interrupted. */
function isJudged(round: SessionState['last']): boolean {
  return round === null || (round.counts && round.outcome.class !== 'interrupted')
}

/** Returns a key of equal refusals. It leaves out the gates' output, which may differ between equal failures. */
function samenessOf({ reason, detail }: EventOf<'done-refused'>, claim: SessionState['claim']): string {
  if (reason !== 'gate-failed' || claim.state !== 'nominated') return `${reason} ${detail}`
  const failed = claim.results.filter(({ status }) => !hasPassed(status))
  return `${reason} ${failed.map(({ gate, status, exitCode }) => `${gate} ${status} ${exitCode}`).join(' ')}`
}

// Below: the state of a claim's proof (savepoints, gates, reviews). Pure, as part of the fold.

/** The first savepoint is the session's start, unless a round has ended before it. */
function savepointAfter(
  { savepoint, last }: SessionState,
  { round, commit, tree }: EventOf<'savepoint'>,
): SessionState['savepoint'] {
  const start = savepoint === null ? (last === null ? tree : null) : savepoint.start
  return { round, commit, tree, start }
}

const MOST_PROTECTED = 50

/** Returns the protected files that rounds changed, with these added. */
function protectedChangedAfter(
  { protectedChanged }: SessionState,
  files: EventOf<'protected-changed'>['files'],
): readonly string[] {
  return [...new Set([...protectedChanged, ...files.map(({ path }) => path)])].slice(-MOST_PROTECTED)
}

/** Returns the state after a gate ran. A stopped gate proves nothing, and runs again. */
function endGate(state: SessionState, event: EventOf<'gate-ended'>): SessionState {
  const { type: _, round: __, when, treeAfter, scope: ___, ...result } = event
  if (result.status === 'broken-off') return state
  const isBad = result.status !== 'passed'
  const ran = {
    ...state,
    gateRuns: withRun(state.gateRuns, event),
    gateFailures: gateFailuresAfter(state.gateFailures, event, state.gates),
    flakyGates: result.status === 'flaky' ? withName(state.flakyGates, result.gate) : state.flakyGates,
    testCounts: testCountsAfter(state.testCounts, result),
  }
  switch (when) {
    case 'before': {
      const before = withResult(state.before, result)
      return isBad
        ? withNotice({ ...ran, before }, gateNotice(when, result, state.hasChangedFiles))
        : { ...ran, before }
    }
    case 'counter-proof':
    case 'tasks':
    case 'after-round':
    case 'limit':
      return isBad ? withNotice(ran, gateNotice(when, result)) : ran
    case 'claim':
      if (state.claim.state !== 'nominated') return ran
      return { ...ran, claim: afterGate(state.claim, result, treeAfter) }
  }
}

function testCountsAfter(counts: SessionState['testCounts'], { gate, tests }: GateResult): SessionState['testCounts'] {
  const known = counts.find(each => each.gate === gate)
  if (tests === undefined || (known !== undefined && known.most >= tests)) return counts
  return [...counts.filter(each => each.gate !== gate), { gate, most: tests }]
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

/** Changes that a gate itself makes do not change the claim. */
function afterGate(
  claim: Extract<Claim, { state: 'nominated' }>,
  result: GateResult,
  treeAfter: string | undefined,
): Claim {
  return { ...claim, tree: treeAfter ?? claim.tree, results: withResult(claim.results, result) }
}

/** Returns the last result of each gate. */
function withResult(results: readonly GateResult[], result: GateResult): readonly GateResult[] {
  return [...results.filter(({ gate }) => gate !== result.gate), result]
}

/** Returns the state after a review; its turn fails and retries like a round. */
function endReview(state: SessionState, event: EventOf<'review-ended'>, at: number): SessionState {
  const configuration = state.checking?.kind === 'review' ? state.checking.configuration : null
  const reviews = reviewsAfter(state.reviews, event, configuration)
  return {
    ...afterOtherTurn(state, event.outcome, at),
    checking: null,
    reviews: hasHeardAll(state) ? reviews : withoutAgreement(reviews),
  }
}

/** Returns true if the reviewer knew all that the person has said. */
function hasHeardAll({ checking, personSaid }: SessionState): boolean {
  if (checking?.kind !== 'review') return true
  const { heard } = checking
  return heard.length === personSaid.length && heard.every((text, at) => text === personSaid[at])
}

function reviewsAfter(
  before: Reviews,
  { round, outcome, answer, repeated, tree }: EventOf<'review-ended'>,
  configuration: string | null,
): Reviews {
  if (answer !== null) {
    return {
      answered: before.answered + 1,
      withoutAnswer: 0,
      of: { round, tree },
      agreedTo: answer.verdict === 'agreed' ? tree : null,
      agreedConfiguration: answer.verdict === 'agreed' ? configuration : before.agreedConfiguration,
      last: answer,
      repeated,
      seen: [...new Set([...before.seen, ...answer.findings.map(findingKey)])],
      problem: null,
    }
  }
  return gaveNoAnswer(outcome) ? { ...before, withoutAnswer: before.withoutAnswer + 1 } : before
}

/** Returns the accepted claim. */
function accepted(claim: Claim, { tree, verified = false }: EventOf<'done-accepted'>): Claim {
  const { by, results } = claim.state === 'nominated' ? claim : { by: [], results: [] }
  return { state: 'accepted', by, tree, verified, results }
}

/** Returns the tree of a nominated or accepted claim; null: none. */
function claimedTree(claim: Claim): string | null {
  return claim.state === 'nominated' || claim.state === 'accepted' ? claim.tree : null
}

/** Returns the claim of a resumed session. Its proof starts again, for the files may have changed. */
export function claimAtResume({ claim, ended }: SessionState): Claim {
  const tree = claimedTree(claim)
  // The claim is over, unless the session was cut off during its proof, or could not write its certificate.
  const lacksCertificate = claim.state === 'accepted' && ended?.outcome.kind === 'needs-person'
  if (tree === null || (ended !== null && !lacksCertificate)) return { state: 'none' }
  const by = claim.state === 'nominated' || claim.state === 'accepted' ? claim.by : []
  return { state: 'nominated', by, tree, results: [] }
}

/** Returns the reviews of a resumed session. After an end, a person has seen the findings, so new reviews are allowed. */
export function reviewsAtResume({ reviews, ended }: SessionState): Reviews {
  return ended === null ? reviews : { ...reviews, answered: 0, withoutAnswer: 0, seen: [], repeated: [] }
}

/** Returns the reviews without agreement, for no reviewer has seen the person's new message. */
function withoutAgreement(reviews: Reviews): Reviews {
  return { ...reviews, agreedTo: null, agreedConfiguration: null, of: null }
}

const MOST_SAID = 100
const MOST_SAID_CHARACTERS = 250_000

/** Returns the session after a new message of a person about the goal; no review has seen it. */
export function withPersonSaid(state: SessionState, text: string): SessionState {
  return {
    ...state,
    personSaid: lastSaid([...state.personSaid, text]),
    reviews: withoutAgreement(state.reviews),
  }
}

/** Returns the last texts that fit, at least one. */
function lastSaid(said: readonly string[]): readonly string[] {
  let [room, first] = [MOST_SAID_CHARACTERS, Math.max(0, said.length - 1)]
  for (let at = first; at >= 0 && said.length - at <= MOST_SAID; at--) {
    room -= said[at]?.length ?? 0
    if (room < 0) break
    first = at
  }
  return said.slice(first)
}

const MOST_FAILURES = 100

/** Returns the gate's result, as flaky if it passed on a tree where the same command failed before. Pure. */
export function markFlaky(result: GateResult, { name, run }: Gate, failures: readonly GateFailure[]): GateResult {
  if (result.status !== 'passed') return result
  const failed = failureOn(result.tree, { name, run }, failures)
  // The failure's output was reported then; the output of a pass shows nothing of it.
  return failed === undefined ? result : { ...result, status: 'flaky', exitCode: failed.exitCode, output: '' }
}

/** Returns the failed run of a gate's command on a tree; undefined: none. Pure. */
export function failureOn(
  tree: string,
  { name, run }: Pick<Gate, 'name' | 'run'>,
  failures: readonly GateFailure[],
): GateFailure | undefined {
  return failures.find(each => each.gate === name && each.run === run && each.tree === tree)
}

/** Returns the last 100 failures after one more gate run. Timeouts and failed starts do not count. Pure. */
function gateFailuresAfter(
  failures: readonly GateFailure[],
  { gate, status, exitCode, tree }: EventOf<'gate-ended'>,
  gates: readonly Gate[],
): readonly GateFailure[] {
  const run = gates.find(({ name }) => name === gate)?.run
  if (run === undefined || (status !== 'failed' && status !== 'flaky')) return failures
  const others = failures.filter(each => each.gate !== gate || each.run !== run || each.tree !== tree)
  return [...others, { gate, run, tree, exitCode }].slice(-MOST_FAILURES)
}

/** Drops an accepted claim, for files may differ from the proved ones. */
export function withoutAccepted(state: SessionState): SessionState {
  return state.claim.state === 'accepted' ? { ...state, claim: { state: 'none' } } : state
}
