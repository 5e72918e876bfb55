import { clipEnd } from '../../../base/text.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { OwnStep } from '../../../core/template.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { beforeTimeoutMs, nextBefore } from '../execution/before.ts'
import { attemptsOf, hasAttempts, nextAttempt, whyPlanner } from '../execution/fixing.ts'
import {
  EXECUTION_FOLDS,
  isVerified,
  LINES_LOOK,
  ROUND,
  SUMMARY_FILE,
  TASKS_FILE,
  withExecution,
  withoutTasks,
} from '../execution/fold.ts'
import {
  hasNoRounds,
  hasNoTasks,
  hasPassed,
  hasWorkLeft,
  isAllDone,
  isClaimGivenUp,
  isUncut,
  limitOf,
  MOST_REFUSALS,
  MOST_ROUNDS,
  needsPerson,
  needsRound,
  nextTask,
  outcomeOf,
  taskInHand,
  withReasons,
  withStatus,
  wordsForNoTasks,
  wordsForUnanswered,
} from '../execution/queue.ts'
import { decomposeRound, fixRound, howItEnded, summaryRound, type TaskPlanned, taskRound } from '../execution/rounds.ts'
import { summaryFacts, summaryText } from '../summary.ts'
import { nameOfTask, tasksFile } from '../tasks.ts'
import type { ChangeState, ChangeWork, Process, StateName, TaskRecord } from '../work.ts'

/** Cuts the accepted plan into tasks, and checks their commands before anything is changed. */
export const decomposition: ChangeState = {
  enter(own) {
    const { execution } = own
    const begun = {
      ...execution,
      at: null,
      fixing: null,
      byPlanner: null,
      problem: null,
      refusals: 0,
      lacksRoom: false,
      done: [],
    }
    if (!isUncut(own)) return withExecution(own, begun)
    // Finished tasks of an earlier plan stay; the claim needs a new proof.
    const tasks = execution.tasks.filter(({ status }) => status === 'COMPLETED')
    return withExecution(own, { ...begun, tasks, claim: { ...execution.claim, attempts: 0, refused: null } })
  },
  fold: EXECUTION_FOLDS.decomposition,
  process(known, session, parts) {
    const own = known.execution.isUnjudged ? withExecution(known, withoutTasks(known.execution)) : known
    const { execution } = own
    if (isUncut(own)) {
      if (hasNoTasks(execution)) return { to: QUEUE, why: wordsForUncuttable(execution) }
      if (execution.refusals >= MOST_REFUSALS) return end(needsPerson(wordsForUncut(own)))
      return { step: decomposeRound(own, session, parts) }
    }
    const run = nextBefore(own, session)
    if (run !== null) return { step: command(run, beforeTimeoutMs(own), session) }
    const isUnproved = !session.gates.some(({ required }) => required)
    if (isUnproved && !execution.done.includes('no-proof')) return note('no-proof', NO_PROOF)
    return written(own) ?? { to: QUEUE, why: `${formatCount(execution.tasks.length, 'task')} to do` }
  },
}

const QUEUE: StateName = 'EXECUTING_TASKS.queue'

const NO_PROOF =
  'No command of the project, and none of an accepted plan, can prove the result. So the session can only end as not verified.'

function wordsForUncuttable(execution: ChangeWork['execution']): string {
  return `${wordsForNoTasks(execution)} ${execution.lacksRoom ? 'the plan needs more than are left' : 'may make no more'}`
}

function wordsForUncut({ execution: { problem, refusals } }: ChangeWork): string {
  // List marks would disturb the sentence.
  const why = (problem ?? '').replace(/^- /gm, '').replaceAll('\n', ' ')
  return `The plan could not be cut into tasks, ${refusals} times in a row. ${why}`.trim()
}

/** Picks the next task, or finds that there is none. */
export const queue: ChangeState = {
  enter(own) {
    const { execution } = own
    const record = taskInHand(execution)
    const left = record?.status === 'IN_PROGRESS' ? withStatus(execution, 'PENDING', whyLeft(record)) : execution
    const tasks = withReasons(left.tasks)
    const isWritten = left.isWritten && tasks.every(({ why }, at) => why === left.tasks[at]?.why)
    return withExecution(own, { ...left, tasks, isWritten, at: null, fixing: null, byPlanner: null, done: [] })
  },
  fold: EXECUTION_FOLDS.between,
  process(own, session) {
    const { execution } = own
    const first = written(own)
    if (first !== null) return first
    if (isUncut(own)) return { to: SUMMARY, why: wordsForUncuttable(execution) }
    const at = nextTask(execution)
    const record = at === null ? undefined : execution.tasks[at]
    if (record !== undefined) {
      if (needsRound(record) && hasNoRounds(own, session)) return { to: SUMMARY, why: wordsForNoRounds(own) }
      return { to: STATE_OF[record.spec.type], why: titleOf(record, execution.tasks) }
    }
    if (!isAllDone(own)) return { to: SUMMARY, why: wordsForLeft(own) }
    if (session.claim.state === 'accepted')
      return { to: SUMMARY, why: 'all tasks are done, and codemachine accepted the claim' }
    if (isClaimGivenUp(own, session))
      return { to: SUMMARY, why: 'all tasks are done, but codemachine refused the claim' }
    if (limitOf(own, session) !== null) return { to: SUMMARY, why: wordsForNoRounds(own) }
    return { to: 'EXECUTING_TASKS.verification', why: 'all tasks are done; codemachine checks this claim' }
  },
}

const SUMMARY: StateName = 'GENERATING_SUMMARY'

/** Returns why a current task was left: a verification lacked rounds for a fix; any other is retried at once. */
function whyLeft({ spec }: TaskRecord): string | null {
  return spec.type === 'VERIFICATION' ? 'No rounds were left to fix it.' : null
}

const STATE_OF = {
  INFO_GATHERING: 'EXECUTING_TASKS.info-gathering',
  ACTION: 'EXECUTING_TASKS.action',
  VERIFICATION: 'EXECUTING_TASKS.verification',
} satisfies Record<TaskRecord['spec']['type'], StateName>

function wordsForNoRounds({ execution: { rounds } }: ChangeWork): string {
  return rounds >= MOST_ROUNDS ? `the limit of ${MOST_ROUNDS} rounds is reached` : 'the limit of rounds is reached'
}

function wordsForLeft({ execution: { tasks } }: ChangeWork): string {
  const failed = tasks.filter(({ status }) => status === 'FAILED').length
  const waiting = tasks.filter(({ status }) => status === 'PENDING').length
  const waits = waiting === 0 ? '' : `, and ${waiting === 1 ? '1 waits' : `${waiting} wait`} for what they give`
  return `nothing is left to do; ${formatCount(failed, 'task')} failed${waits}`
}

/** `T3 (3 of 9): …`. */
function titleOf({ spec }: TaskRecord, tasks: readonly TaskRecord[]): string {
  const at = tasks.findIndex(each => each.spec.id === spec.id)
  return `${spec.id} (${at + 1} of ${tasks.length}): ${nameOfTask(spec)}`
}

/** Does a task in a round, which answers with the promised outputs. */
const TASK: ChangeState = {
  enter: withNext,
  fold: EXECUTION_FOLDS.task,
  process(own, session, parts) {
    const record = taskInHand(own.execution)
    if (record === null) throw new Error('There is no task in hand.')
    if (record.status === 'COMPLETED') return { to: RESULT, why: `${record.spec.id} has answered` }
    if (record.refusals >= MOST_REFUSALS)
      return { to: RESULT, why: `${record.spec.id} gave no answer, ${record.refusals} times in a row` }
    return written(own) ?? planned(own, taskRound(own, session, parts))
  },
}

const RESULT: StateName = 'EXECUTING_TASKS.result'

/** Finds something out, in a round that can write nothing. */
export const infoGathering: ChangeState = TASK

/** Changes something. */
export const action: ChangeState = TASK

/** Makes the next task current; once all are done, the claim. */
function withNext(own: ChangeWork): ChangeWork {
  const at = nextTask(own.execution)
  const begun = { ...own.execution, at, fixing: null, byPlanner: null, done: [] }
  return withExecution(own, at === null ? begun : withStatus(begun, 'IN_PROGRESS'))
}

/** Runs a task's command, and once more if it fails; or claims that all is done. */
export const verification: ChangeState = {
  enter(own) {
    const next = own.execution.fixing === null ? withNext(own).execution : { ...own.execution, done: [] }
    return withExecution(own, next.at === null ? { ...next, claim: { ...next.claim, refused: null } } : next)
  },
  fold: EXECUTION_FOLDS.verification,
  process(own, session) {
    const { execution } = own
    const record = taskInHand(execution)
    if (record === null) {
      if (execution.claim.refused !== null) return { to: RESULT, why: 'the claim was refused' }
      if (session.claim.state === 'accepted') return { to: RESULT, why: 'the claim was accepted' }
      return { step: { kind: 'claim' } }
    }
    const { spec, results } = record
    if (isVerified(execution)) return { to: RESULT, why: `the command of ${spec.id} ${howItEnded(results.at(-1))}` }
    const first = written(own)
    if (first !== null) return first
    const run = spec.run ?? ''
    const gate = session.gates.find(each => each.run === run)
    return { step: command(run, gate?.timeoutMs ?? COMMAND_MS, session, gate?.network) }
  },
}

/** As long as a gate without a timeout, ms. */
const COMMAND_MS = 10 * 60_000

function command(run: string, timeoutMs: number, session: SessionState, network = session.network): OwnStep {
  return { kind: 'command', name: run, run, timeoutMs, network: network && session.network }
}

/** Decides after a task: the next one, a fix, or failure. */
export const result: ChangeState = {
  enter: own => withExecution(own, { ...own.execution, done: [] }),
  fold: EXECUTION_FOLDS.between,
  process(own, session) {
    const first = written(own)
    if (first !== null) return first
    const record = taskInHand(own.execution)
    if (record === null) {
      if (own.execution.claim.refused === null) return { to: QUEUE, why: 'all is done' }
      return afterFailure(own, session, 'the claim')
    }
    const { spec, status, results, refusals } = record
    if (status === 'COMPLETED') {
      const last = results.at(-1)
      const how = last !== undefined && hasPassed(last) ? `: its command ${howItEnded(last)}` : ''
      return { to: QUEUE, why: `${spec.id} is done${how}` }
    }
    if (spec.type === 'VERIFICATION') return afterFailure(own, session, spec.id)
    if (refusals < MOST_REFUSALS) return { to: QUEUE, why: AGAIN }
    return { to: FAILURE, why: `${spec.id} gave no answer that can be used` }
  },
}

const FAILURE: StateName = 'EXECUTING_TASKS.failure'
const AGAIN = 'it is tried again in the resumed session'

function afterFailure(own: ChangeWork, session: SessionState, what: string): Process {
  const attempts = attemptsOf(own.execution)
  const { fixAttempts } = own.options
  if (!hasAttempts(own))
    return { to: FAILURE, why: `${what} still fails after ${formatCount(attempts, 'attempt')} to fix it` }
  if (hasNoRounds(own, session)) return { to: QUEUE, why: wordsForNoRounds(own) }
  return { to: 'EXECUTING_TASKS.fixing', why: `${what} fails: attempt ${attempts + 1} of ${fixAttempts} to fix it` }
}

/** Fixes in a round what a verification, or the claim, found. */
export const fixing: ChangeState = {
  enter: own => withExecution(own, { ...own.execution, fixing: nextAttempt(own), done: [] }),
  fold: EXECUTION_FOLDS.fixing,
  process(own, session, parts) {
    const { execution } = own
    const { fixing } = execution
    if (fixing === null) throw new Error('Nothing is fixed.')
    if (execution.done.includes(ROUND))
      return {
        to: 'EXECUTING_TASKS.verification',
        why: `attempt ${fixing.attempt} is over; the verification runs again`,
      }
    if (fixing.by === 'planner' && !execution.done.includes('planner')) return note('planner', whyPlanner(own, fixing))
    return planned(own, fixRound(own, session, parts))
  },
}

/** Gives up a task, or the claim, and reports it; the others continue. */
export const failure: ChangeState = {
  enter(own) {
    const { execution } = own
    const record = taskInHand(execution)
    const isKnown = record === null || record.status === 'FAILED'
    const failed = isKnown ? execution : withStatus(execution, 'FAILED', wordsForFailed(record))
    return withExecution(own, { ...failed, done: [] })
  },
  fold: EXECUTION_FOLDS.between,
  process(own) {
    const { execution } = own
    const record = taskInHand(execution)
    const isFailed = record === null ? execution.claim.refused !== null : record.status === 'FAILED'
    if (!isFailed) return written(own) ?? { to: QUEUE, why: AGAIN }
    const title =
      record === null ? 'The claim that everything is done' : `${record.spec.id} (${nameOfTask(record.spec)})`
    const why = record === null ? wordsForClaim(own) : (record.why ?? '')
    if (!execution.done.includes('failed')) return note('failed', `${title} failed. ${why}`)
    return { to: QUEUE, why: 'the other tasks continue' }
  },
}

const MOST_WHY = 2_000

function wordsForFailed(record: TaskRecord): string {
  const { spec, attempts, results } = record
  if (spec.type !== 'VERIFICATION') return wordsForUnanswered(record)
  const how = howItEnded(results.at(-1))
  return `\`${spec.run}\` ${how}, after ${formatCount(attempts, 'attempt')} to fix it.`
}

function wordsForClaim({ execution: { claim } }: ChangeWork): string {
  return clipEnd(
    `codemachine refused the claim again after ${formatCount(claim.attempts, 'attempt')} to fix it: ${claim.refused ?? ''}`,
    MOST_WHY,
  )
}

/** Sums up the change: codemachine's facts, and the planner's words below them. */
export const generatingSummary: ChangeState = {
  enter(own, session) {
    const begun = { ...own.execution, limit: limitOf(own, session), at: null, fixing: null, done: [] }
    // An earlier outcome is not the final one.
    return { ...withExecution(own, begun), summary: null, words: null, outcome: null }
  },
  exit(own, session) {
    if (!hasWorkLeft(own, session)) return { ...own, outcome: outcomeOf(own, session) }
    const { execution } = own
    const { claim } = execution
    // Proof, summary and new changes must not repeat without end.
    const attempts = isAllDone(own) ? claim.attempts + 1 : claim.attempts
    return withExecution(own, { ...execution, claim: { ...claim, attempts } })
  },
  fold: EXECUTION_FOLDS.summary,
  process(own, session, parts) {
    const { done, tasks, claim } = own.execution
    // After a resume, or if the accepted files have changed since.
    if (hasWorkLeft(own, session)) return { to: 'EXECUTING_TASKS.queue', why: 'there is work left' }
    const hasChanged = [...tasks, claim.work].some(({ treeBefore, treeAfter }) => treeBefore !== treeAfter)
    if (hasChanged && !done.includes(LINES_LOOK)) return { step: { kind: 'look', what: LINES_LOOK } }
    if (!done.includes(ROUND)) return { step: summaryRound(own, summaryFacts(own, session), parts) }
    if (!done.includes(SUMMARY_FILE))
      return { step: { kind: 'keep', file: SUMMARY_FILE, text: summaryText(own, session) } }
    return { to: 'WAITING_FOR_INPUT', why: 'the result is shown' }
  },
}

function end(outcome: SessionOutcome): Process {
  return { step: { kind: 'end', outcome } }
}

function note(name: string, text: string): Process {
  return { step: { kind: 'note', name, text } }
}

/** Writes `tasks.json` if it is out of date; null: it is not. */
function written({ execution: { isWritten, tasks } }: ChangeWork): Process | null {
  return isWritten ? null : { step: { kind: 'keep', file: TASKS_FILE, text: tasksFile(tasks) } }
}

/** Returns the round, after its note for the person. */
function planned({ execution: { done } }: ChangeWork, { note: said, step }: TaskPlanned): Process {
  return said === null || done.includes('model') ? { step } : note('model', said)
}
