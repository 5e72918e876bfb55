import type { EventOf, RefusalReason } from '../events/events.ts'
import { blocksDone, type GateResult, hasPassed, type SessionOutcome } from '../events/outcome.ts'
import { claimsDone, type MemorySnapshot } from '../shapes/memory.ts'
import type { EndedRound, SessionState } from '../state/state.ts'
import {
  type ContractProof,
  type ContractState,
  nextClaimCheck,
  nextControl,
  wordsForFailedSentences,
} from './contract.ts'
import { describeGate } from './notices.ts'
import type { CounterProof } from './proof/counter-proof.ts'
import { refusalForAgent } from './refusals.ts'
import { type Finding, findingKey, type ReviewCause } from './review.ts'

/** The verdict on the memory files after a round (docs/inside/design.md, "When is a session done", parts 1 to 5). */
export type Verdict =
  | { kind: 'none' }
  | { kind: 'refused'; by: Nominators; reason: RefusalReason; detail: string }
  /** `whyNothing`: the reason in `MAIN.md` why nothing needed doing; null: something was done. */
  | { kind: 'nominated'; by: Nominators; tree: string; whyNothing: string | null }

type Nominators = EventOf<'done-nominated'>['by']

/** The facts that show whether a session has achieved anything. */
export type WorkSoFar = Pick<SessionState, 'savepoint' | 'hasChangedFiles' | 'toldNothingDone'> &
  Partial<Pick<SessionState, 'scope' | 'goalRestored'>>

/** Judges the done claim in the memory files after `round`, if there is one. Pure. */
export function judgeDone(memory: MemorySnapshot, round: EndedRound, work: WorkSoFar): Verdict {
  const by = nominators(memory, round, work)
  if (by.length === 0) return { kind: 'none' }
  const refused = (reason: RefusalReason, fact: string): Verdict => {
    return { kind: 'refused', by, reason, detail: refusalForAgent(reason, fact) }
  }

  if (round.outcome.class !== 'worked') {
    return refused('round-not-completed', 'the round that claimed it was cut off.')
  }
  if (memory.problems.length > 0) {
    const files = memory.problems.map(problem => problem.file).join(' and ')
    return refused('memory-broken', `${files} could not be read.`)
  }
  if (work.goalRestored === true) return refused('goal-changed', GOAL_CHANGED)
  const left = memory.tasks.filter(task => !task.done)
  if (left.length > 0) {
    return refused(
      'tasks-left',
      `tasks.json still has ${count(left.length, 'task')} that ${left.length === 1 ? 'is' : 'are'} not done: ${some(left.map(task => `${task.id} ${task.name}`))}.`,
    )
  }
  if (memory.main.open.length > 0) {
    return refused('progress-left', `MAIN.md still lists open work: ${some(memory.main.open)}.`)
  }
  if (round.treeBefore !== round.treeAfter) {
    return refused(
      'tree-changed',
      `the round that claimed it also changed ${count(round.changedCount, 'file')} (${some(round.changed)}).`,
    )
  }
  if (!isNothingDone(memory, round, work)) return { kind: 'nominated', by, tree: round.treeAfter, whyNothing: null }
  const { whyNothing = null } = memory.main
  if (!work.toldNothingDone) return refused('nothing-done', NOTHING_DONE)
  if (whyNothing === null) return { kind: 'refused', by, reason: 'nothing-done', detail: NO_REASON }
  return { kind: 'nominated', by, tree: round.treeAfter, whyNothing }
}

/** The flag alone proves nothing: no task was ever written, and all files are as at the start. */
function isNothingDone(
  { tasks }: MemorySnapshot,
  { treeAfter }: EndedRound,
  { savepoint, hasChangedFiles, scope }: WorkSoFar,
): boolean {
  const start = scope?.tree ?? savepoint?.start ?? null
  return tasks.length === 0 && (!hasChangedFiles || treeAfter === start)
}

const GOAL_CHANGED = "this round changed the person's words; codemachine restored them."
const NOTHING_DONE =
  'nothing has been done: tasks.json has no task, and no file has changed since the start of this goal.'
const NO_REASON =
  'nothing has been done, and MAIN.md does not say why nothing is needed. Write the reason under the heading ## Why nothing is needed, or do what the goal asks for.'

/** With a plan, all tasks are done before a round may claim, so only `MAIN.md` counts as its claim. */
function nominators(memory: MemorySnapshot, { part }: EndedRound, { scope = null }: WorkSoFar): Nominators {
  const by: ('MAIN.md' | 'tasks.json')[] = []
  if (claimsDone(memory.main)) by.push('MAIN.md')
  const isAllDone = memory.tasks.length > 0 && memory.tasks.every(task => task.done)
  if (isAllDone && (part === null || scope !== null || by.length > 0)) by.push('tasks.json')
  return by
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** Joins at most five entries into part of a sentence. */
function some(entries: readonly string[]): string {
  const shown = entries.slice(0, 5).map(entry => entry.slice(0, 120))
  const more = entries.length - shown.length
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ')
}

/** The next step in the proof of a claim, or its result. */
export type ProofStep =
  | { kind: 'gate'; gate: SessionState['gates'][number] }
  | { kind: 'again' }
  | { kind: 'counter-proof'; gate: SessionState['gates'][number] }
  | { kind: 'hook' }
  | { kind: 'review'; causes: readonly ReviewCause[] }
  | { kind: 'refuse'; reason: RefusalReason; detail: string }
  | { kind: 'contract'; step: Exclude<ContractProof, { kind: 'refuse' }> }
  | { kind: 'accept'; verified: boolean }
  | { kind: 'end'; outcome: SessionOutcome }

/** The most answered reviews of a session, and the most consecutive reviews without an answer. */
const MOST_REVIEWS = 3
const MOST_WITHOUT_ANSWER = 3

/** The work tree while a claim is proved. */
interface ProofNow {
  tree: string
  /** True if protected files differ from the session's start, or if that is not known. */
  isProtectedChanged: boolean
  /** Gates that have run in this pass. The second pass runs on the tree that the first one left. */
  ran: ReadonlySet<string>
  pass: 1 | 2
  /** True if hooks must still check the claim. */
  hasHook: boolean
  /** The tree at the start of the pass. */
  from: string
  /** Claimed files that gates changed, although these gates did not change them before any work. */
  strayed: readonly string[]
}

/**
 * Returns the next step in the proof of a claim (docs/inside/design.md, "When is a session done", part 6). First every gate
 * runs; all run once more if they changed the tree. Then come the counter-proof of each required gate, the contract's checks
 * and the hooks. Reasons for a review: a person wants one, protected files or gate configuration changed, or a counter-proof
 * left doubts. Pure.
 */
export function nextProof(state: SessionState, now: ProofNow): ProofStep {
  const { gates, reviews, review, notices } = state
  const next = gates.find(({ name }) => !now.ran.has(name))
  if (next !== undefined) return { kind: 'gate', gate: next }

  const results = state.claim.state === 'nominated' ? state.claim.results : []
  const failed = results.filter(result => gates.some(gate => gate.name === result.gate && blocksDone(gate, result)))
  if (failed.length > 0)
    return { kind: 'refuse', reason: 'gate-failed', detail: wordsForFailed(failed, beforeWork(state)) }
  if (now.tree !== now.from && now.pass === 1) return { kind: 'again' }
  if (now.tree !== now.from && now.strayed.length > 0) {
    return { kind: 'refuse', reason: 'tree-changed', detail: wordsForStrayed(now.strayed) }
  }
  if (notices.some(({ from }) => from === 'person'))
    return { kind: 'refuse', reason: 'person-said-more', detail: SAID_MORE }

  const uncountered = gates.find(({ name, required }) => required && counterProofOf(state, name, now.tree) === null)
  if (uncountered !== undefined) return { kind: 'counter-proof', gate: uncountered }

  const check = byContract(state, contract => nextClaimCheck(contract, now.tree, state.last?.round ?? 0))
  if (check !== null) return check

  if (now.hasHook) return { kind: 'hook' }

  const configuration = state.gateConfiguration?.digest ?? null
  const isDoubted = gates.some(({ name }) => (counterProofOf(state, name, now.tree)?.doubts.length ?? 0) > 0)
  const causes: ReviewCause[] = [
    ...(reviews.agreedTo === now.tree ? [] : causesOfTree(review !== null, now.isProtectedChanged)),
    // A review that agreed once is not repeated, whatever else changes.
    ...(configuration === null || reviews.agreedConfiguration === configuration ? [] : ['configuration' as const]),
    ...(!isDoubted || reviews.agreedTo === now.tree ? [] : ['counter-proof' as const]),
  ]
  if (causes.length > 0) return afterReviews(state, now.tree, causes)
  const control = byContract(state, contract => nextControl(contract, now.tree))
  if (control !== null) return control
  return { kind: 'accept', verified: gates.some(({ required }) => required) }
}

/** Returns the contract's next step or refusal; null: nothing to do. */
function byContract(
  { contract, scope }: SessionState,
  nextOf: (contract: ContractState) => ContractProof | null,
): ProofStep | null {
  const next = contract === null || scope !== null ? null : nextOf(contract)
  if (contract === null || next === null) return null
  if (next.kind !== 'refuse') return { kind: 'contract', step: next }
  return { kind: 'refuse', reason: 'contract-failed', detail: wordsForFailedSentences(contract, next.failed) }
}

/** Returns the counter-proof of a gate on this tree; null: none yet. */
function counterProofOf({ counterProofs }: SessionState, name: string, tree: string): CounterProof | null {
  return counterProofs.find(proof => proof.gate === name && proof.tree === tree) ?? null
}

/** Returns the reasons for a review of a tree that no review has agreed to. */
function causesOfTree(isAsked: boolean, isProtectedChanged: boolean): ReviewCause[] {
  return [...(isAsked ? ['asked' as const] : []), ...(isProtectedChanged ? ['protected' as const] : [])]
}

const SAID_MORE = 'a person sent a message that no round has read yet.'

/** Returns the step after the review of this claim, or asks for a review if one is missing and allowed. */
function afterReviews(state: SessionState, tree: string, causes: readonly ReviewCause[]): ProofStep {
  const { reviews, last: round } = state
  const { last, answered, withoutAnswer } = reviews
  const isOfThis = reviews.of?.round === (round?.round ?? 0) && reviews.of?.tree === tree
  if (last === null || !isOfThis || last.verdict === 'agreed') {
    if (withoutAnswer >= MOST_WITHOUT_ANSWER) {
      return end(state, `The reviewer gave no answer, ${withoutAnswer} times in a row.`)
    }
    if (answered < MOST_REVIEWS) return { kind: 'review', causes }
    return end(state, last?.verdict === 'agreed' ? CHANGED_AFTER : disagrees(answered, last?.findings ?? []))
  }
  const repeated = new Set(reviews.repeated.map(findingKey))
  const fresh = last.findings.filter(finding => !repeated.has(findingKey(finding)))
  if (answered >= MOST_REVIEWS || (fresh.length === 0 && last.findings.length > 0)) {
    return end(state, disagrees(answered, last.findings))
  }
  return { kind: 'refuse', reason: 'review-findings', detail: wordsForFindings(last.summary, fresh) }
}

const CHANGED_AFTER = `The reviewer agreed, but then files changed or a person sent a message. A session has at most ${MOST_REVIEWS} reviews.`

/** Returns an end that needs a person. Only this goal ends (`goalOnly`); queued sessions still run. */
function end({ gates }: SessionState, reason: string): ProofStep {
  const gatesPass = gates.some(({ required }) => required)
  const hint = { do: 'read-reviews', gatesPass } as const
  return { kind: 'end', outcome: { kind: 'needs-person', reason, hint, goalOnly: true } }
}

function disagrees(reviews: number, findings: readonly Finding[]): string {
  const open = findings.length === 1 ? 'one finding is' : `${findings.length} findings are`
  return `The reviewer does not agree that it is done (${reviews === 1 ? 'one review' : `${reviews} reviews`}); ${open} left to you.`
}

/** Returns gate results from before any work. For gates added later: results of when they were added. */
function beforeWork({ before, addedGates, savepoint }: SessionState): readonly GateResult[] {
  const isLate = (name: string) => addedGates.some(gate => gate.name === name)
  return before.filter(({ gate, tree }) => !isLate(gate) || tree === savepoint?.start)
}

function wordsForFailed(failed: readonly GateResult[], before: readonly GateResult[]): string {
  const told = failed.map(result => {
    const wasBad = before.some(({ gate, status }) => gate === result.gate && !hasPassed(status))
    return describeGate(result) + (wasBad ? ' It was the same before any work was done.' : '')
  })
  return told.join('\n')
}

function wordsForFindings(summary: string, findings: readonly Finding[]): string {
  const list = findings.map(({ severity, file, line, problem, mend }) => {
    const place = file === null ? '' : ` ${file}${line === null ? '' : `:${line}`}:`
    return `\n- ${severity}:${place} ${problem} Fix: ${mend}`
  })
  return `an independent reviewer does not agree. ${summary}${list.join('')}`
}

const MOST_STRAYED = 10

function wordsForStrayed(paths: readonly string[]): string {
  const shown = paths.slice(0, MOST_STRAYED).join('; ')
  const more = paths.length > MOST_STRAYED ? `; and ${paths.length - MOST_STRAYED} more` : ''
  return `files change whenever the checks run (${shown}${more}). So nothing shows that all checks pass on the same files. Have the checks write to paths that git ignores.`
}
