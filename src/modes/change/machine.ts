import type { Step, Template } from '../../core/template.ts'
import {
  action,
  decomposition,
  failure,
  fixing,
  generatingSummary,
  infoGathering,
  queue,
  result,
  verification,
} from './states/executing-tasks.ts'
import { gatheringContext, generatingPlan, MOST_VERSIONS, waitingForInput } from './states/planning.ts'
import { accepted, autoAccepted, manualReview, refinement, rejected, userReview } from './states/reviewing-plan.ts'
import { type ChangeParts, type ChangeState, type ChangeWork, type Process, type StateName, workOf } from './work.ts'

/**
 * The table: each state, and the states that may follow. A person who interrupts for another plan leads to `refinement` from
 * every state with a plan.
 */
export const STATES: Readonly<Record<StateName, { state: ChangeState; next: readonly StateName[] }>> = {
  // Second: a session that ended with open tasks is resumed. Third: a person interrupts just before its end.
  WAITING_FOR_INPUT: {
    state: waitingForInput,
    next: ['GATHERING_CONTEXT', 'EXECUTING_TASKS.queue', 'REVIEWING_PLAN.refinement'],
  },
  GATHERING_CONTEXT: { state: gatheringContext, next: ['GENERATING_PLAN'] },
  GENERATING_PLAN: {
    state: generatingPlan,
    next: ['GENERATING_PLAN', 'REVIEWING_PLAN.user-review', 'REVIEWING_PLAN.refinement'],
  },
  'REVIEWING_PLAN.user-review': {
    state: userReview,
    next: ['REVIEWING_PLAN.auto-accepted', 'REVIEWING_PLAN.manual-review', 'REVIEWING_PLAN.refinement'],
  },
  'REVIEWING_PLAN.auto-accepted': {
    state: autoAccepted,
    next: ['EXECUTING_TASKS.decomposition', 'REVIEWING_PLAN.refinement'],
  },
  'REVIEWING_PLAN.manual-review': {
    state: manualReview,
    next: ['REVIEWING_PLAN.accepted', 'REVIEWING_PLAN.rejected', 'REVIEWING_PLAN.refinement'],
  },
  'REVIEWING_PLAN.accepted': { state: accepted, next: ['EXECUTING_TASKS.decomposition', 'REVIEWING_PLAN.refinement'] },
  'REVIEWING_PLAN.rejected': { state: rejected, next: ['REVIEWING_PLAN.refinement'] },
  'REVIEWING_PLAN.refinement': { state: refinement, next: ['REVIEWING_PLAN.user-review', 'REVIEWING_PLAN.refinement'] },
  'EXECUTING_TASKS.decomposition': {
    state: decomposition,
    next: ['EXECUTING_TASKS.queue', 'REVIEWING_PLAN.refinement'],
  },
  'EXECUTING_TASKS.queue': {
    state: queue,
    next: [
      'EXECUTING_TASKS.info-gathering',
      'EXECUTING_TASKS.action',
      'EXECUTING_TASKS.verification',
      'GENERATING_SUMMARY',
      'REVIEWING_PLAN.refinement',
    ],
  },
  'EXECUTING_TASKS.info-gathering': {
    state: infoGathering,
    next: ['EXECUTING_TASKS.result', 'REVIEWING_PLAN.refinement'],
  },
  'EXECUTING_TASKS.action': { state: action, next: ['EXECUTING_TASKS.result', 'REVIEWING_PLAN.refinement'] },
  'EXECUTING_TASKS.verification': {
    state: verification,
    next: ['EXECUTING_TASKS.result', 'REVIEWING_PLAN.refinement'],
  },
  'EXECUTING_TASKS.result': {
    state: result,
    next: ['EXECUTING_TASKS.queue', 'EXECUTING_TASKS.fixing', 'EXECUTING_TASKS.failure', 'REVIEWING_PLAN.refinement'],
  },
  'EXECUTING_TASKS.fixing': { state: fixing, next: ['EXECUTING_TASKS.verification', 'REVIEWING_PLAN.refinement'] },
  'EXECUTING_TASKS.failure': { state: failure, next: ['EXECUTING_TASKS.queue', 'REVIEWING_PLAN.refinement'] },
  // Second: the accepted files have changed since.
  GENERATING_SUMMARY: {
    state: generatingSummary,
    next: ['WAITING_FOR_INPUT', 'EXECUTING_TASKS.queue', 'REVIEWING_PLAN.refinement'],
  },
}

/** Returns the next step of a change: that of its state, or the next state by the table. */
export function nextOfChange(partsOf: (own: ChangeWork) => ChangeParts): Pick<Template, 'next' | 'ahead'> {
  return {
    next(session) {
      const own = workOf(session)
      const came = brokenInto(own) ?? STATES[own.state].state.process(own, session, partsOf(own))
      return 'step' in came ? came.step : stepTo(own.state, came.to, came.why)
    },
    ahead(session) {
      const own = workOf(session)
      return STATES[own.state].state.ahead?.(own, session, partsOf(own)) ?? null
    },
  }
}

/** Returns the reaction to a person's request for another plan; null: none, or the state itself handles it. */
function brokenInto({ state, planning: { wanted, versions } }: ChangeWork): Process | null {
  const isBefore = state === 'GATHERING_CONTEXT' || (state === 'WAITING_FOR_INPUT' && versions.length === 0)
  if (wanted === null || isBefore) return null
  if (versions.length === 0) return { to: 'GENERATING_PLAN', why: 'the person adds to the request' }
  if (versions.length >= MOST_VERSIONS) return { step: { kind: 'note', name: NO_ROOM, text: NO_ROOM_TEXT } }
  return { to: 'REVIEWING_PLAN.refinement', why: 'the person changes the plan' }
}

/** Name and words of the note that a requested change of the plan is not made. */
export const NO_ROOM = 'plan-not-changed'
export const NO_ROOM_TEXT = `The plan has ${MOST_VERSIONS} versions, the most it may have, so it stays as it is. To change it, stop this session and begin another change.`

/** Enters the next state. Throws for one that may not follow. */
export function stepTo(from: StateName, to: StateName, why: string): Step {
  if (!STATES[from].next.includes(to))
    throw new Error(`The state ${from} is to be followed by ${to} (${why}), which is no edge of the table.`)
  return { kind: 'enter', state: to, why }
}
