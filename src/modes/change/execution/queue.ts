import { clipEnd } from '../../../base/text.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { TaskSpec } from '../tasks.ts'
import type { ChangeWork, ExecutionWork, TaskRecord, Worked } from '../work.ts'

/** Most tasks of a session, those of a changed plan included. */
export const MOST_TASKS = 50
/** Most rounds for tasks and fixes before a person must look. */
export const MOST_ROUNDS = 200
/** How many unusable answers in a row fail a task, or stop a decomposition for a person. */
export const MOST_REFUSALS = 3

const NOT_WORKED: Worked = {
  who: null,
  rounds: 0,
  ms: 0,
  tokens: 0,
  treeBefore: null,
  treeAfter: null,
  changed: [],
  lines: null,
}

/** The execution before there are tasks. */
export const NO_EXECUTION: ExecutionWork = {
  version: 0,
  tasks: [],
  made: 0,
  at: null,
  problem: null,
  refusals: 0,
  lacksRoom: false,
  before: [],
  beforeMs: 0,
  fixing: null,
  byPlanner: null,
  limit: null,
  claim: { attempts: 0, refused: null, work: NOT_WORKED },
  rounds: 0,
  isWritten: true,
  isUnjudged: false,
  done: [],
}

/** A task before its first round. Pure. */
export function newRecord(spec: TaskSpec): TaskRecord {
  return {
    ...NOT_WORKED,
    spec,
    status: 'PENDING',
    why: null,
    attempts: 0,
    refusals: 0,
    outputs: null,
    results: [],
  }
}

/** Returns the current task; null: none, or the claim is current. */
export function taskInHand({ at, tasks }: ExecutionWork): TaskRecord | null {
  return at === null ? null : (tasks[at] ?? null)
}

/** Changes the current task; unchanged if there is none. Pure. */
export function withTask(execution: ExecutionWork, change: (record: TaskRecord) => TaskRecord): ExecutionWork {
  const { at, tasks } = execution
  const record = taskInHand(execution)
  return at === null || record === null ? execution : { ...execution, tasks: tasks.with(at, change(record)) }
}

/** Sets the task's status, for the next write of `tasks.json`. Pure. */
export function withStatus(
  execution: ExecutionWork,
  status: TaskRecord['status'],
  why: string | null = null,
): ExecutionWork {
  return { ...withTask(execution, record => ({ ...record, status, why })), isWritten: false }
}

/**
 * Returns the index of the next task: the first open one with all inputs, and for a check also its checked actions. Null:
 * none. Pure.
 */
export function nextTask({ tasks }: Pick<ExecutionWork, 'tasks'>): number | null {
  const at = tasks.findIndex(record => record.status === 'PENDING' && needsOf(record, tasks).every(isDone))
  return at === -1 ? null : at
}

function isDone({ task }: Need): boolean {
  return task?.status === 'COMPLETED'
}

/** A condition of a task, in words, and the task that meets it; undefined: none. */
interface Need {
  what: string
  task: TaskRecord | undefined
}

function needsOf(record: TaskRecord, tasks: readonly TaskRecord[]): readonly Need[] {
  const inputs = Object.values(record.spec.inputs).map(from => ({ what: `needs ${from}`, task: giverOf(from, tasks) }))
  const checked = actionsBefore(record, tasks).map(task => ({ what: `checks ${task.spec.id}`, task }))
  return [...inputs, ...checked]
}

/** Returns the actions that a check verifies: those between it and the check before. */
function actionsBefore(record: TaskRecord, tasks: readonly TaskRecord[]): readonly TaskRecord[] {
  if (record.spec.type !== 'VERIFICATION') return []
  const typeAt = (at: number) => tasks[at]?.spec.type
  let end = tasks.findIndex(({ spec }) => spec.id === record.spec.id)
  while (end > 0 && typeAt(end - 1) !== 'ACTION') end--
  let begin = end
  while (begin > 0 && typeAt(begin - 1) !== 'VERIFICATION') begin--
  return tasks.slice(begin, end).filter(({ spec }) => spec.type === 'ACTION')
}

/** Adds reasons to tasks that wait for a failed one. Pure. */
export function withReasons(tasks: readonly TaskRecord[]): readonly TaskRecord[] {
  const known: TaskRecord[] = []
  // Conditions come from earlier tasks, so their reasons are known by then.
  for (const record of tasks)
    known.push(record.status === 'PENDING' ? { ...record, why: whyStuck(record, known) ?? record.why } : record)
  return known
}

/** Returns a sentence why a condition will not be met; null: all may be. */
function whyStuck(record: TaskRecord, earlier: readonly TaskRecord[]): string | null {
  for (const { what, task } of needsOf(record, [...earlier, record])) {
    if (task === undefined) return `It ${what}, but there is no such task.`
    if (task.status === 'FAILED') return `It ${what}, and ${task.spec.id} failed.`
    if (task.status === 'PENDING' && task.why !== null) return `It ${what}, and ${task.spec.id} waits.`
  }
  return null
}

/** Returns the task that gives an input (`<task>.<output>`). */
export function giverOf(from: string, tasks: readonly TaskRecord[]): TaskRecord | undefined {
  return tasks.find(({ spec }) => from.startsWith(`${spec.id}.`) && Object.hasOwn(spec.outputs, outputOf(from, spec)))
}

/** Returns the output's name in `<task>.<output>`, of that task. */
export function outputOf(from: string, { id }: Pick<TaskSpec, 'id'>): string {
  return from.slice(id.length + 1)
}

/** Returns the work by task id; the fix of the claim has an empty id. */
export function worksOf({ tasks, claim }: ExecutionWork): readonly (readonly [id: string, work: Worked])[] {
  return [...tasks.map(record => [record.spec.id, record] as const), ['', claim.work]]
}

/** Returns whether every task of the plan is done. */
export function isAllDone(own: ChangeWork): boolean {
  const { tasks } = own.execution
  return !isUncut(own) && tasks.length > 0 && tasks.every(({ status }) => status === 'COMPLETED')
}

/** Returns whether the accepted plan is not cut into tasks yet. */
export function isUncut({ planning: { accepted }, execution: { version } }: ChangeWork): boolean {
  return accepted !== null && accepted.version !== version
}

/** Returns whether the execution has no round left. */
export function hasNoRounds({ execution }: ChangeWork, { limits, roundsUsed }: SessionState): boolean {
  return execution.rounds >= MOST_ROUNDS || (limits.rounds !== null && roundsUsed >= limits.rounds)
}

/** Returns whether the task needs a round next: a command runs without one, and a round fixes its failure. */
export function needsRound({ spec, results }: TaskRecord): boolean {
  return spec.type !== 'VERIFICATION' || results.length > 0
}

/** Returns whether a command passed, perhaps at the second run. */
export function hasPassed({ status }: { status: string }): boolean {
  return status === 'passed' || status === 'flaky'
}

/** Returns whether the claim is still refused after all allowed fixes. */
export function isClaimGivenUp({ options, execution }: ChangeWork, { claim }: SessionState): boolean {
  return claim.state !== 'accepted' && execution.claim.attempts >= options.fixAttempts
}

/** Returns whether the plan cannot be cut any more: no tasks are left, or fewer than it needs. */
export function hasNoTasks({ made, lacksRoom, refusals }: ExecutionWork): boolean {
  return made >= MOST_TASKS || (lacksRoom && refusals >= MOST_REFUSALS)
}

/** Returns the beginning of a sentence on the reason. */
export function wordsForNoTasks({ made }: ExecutionWork): string {
  return made >= MOST_TASKS
    ? `The session has made ${MOST_TASKS} tasks, and`
    : `The session has made ${made} of at most ${MOST_TASKS} tasks, and`
}

/** Returns the limit that ends the execution with work left; null: none. Pure. */
export function limitOf(own: ChangeWork, session: SessionState): 'tasks' | 'rounds' | null {
  const { execution } = own
  if (isUncut(own)) return execution.made >= MOST_TASKS || execution.lacksRoom ? 'tasks' : null
  if (!hasNoRounds(own, session)) return null
  const at = nextTask(execution)
  const isMendLeft = isAllDone(own) && execution.claim.refused !== null && !isClaimGivenUp(own, session)
  return at !== null || isMendLeft ? 'rounds' : null
}

/** Returns whether work is left that no limit blocks: then the summary must wait. Pure. */
export function hasWorkLeft(own: ChangeWork, session: SessionState): boolean {
  if (own.execution.limit !== null || isUncut(own) || limitOf(own, session) !== null) return false
  if (nextTask(own.execution) !== null) return true
  return isAllDone(own) && session.claim.state !== 'accepted' && !isClaimGivenUp(own, session)
}

/** Returns the outcome of a change with nothing left to do. Pure. */
export function outcomeOf(own: ChangeWork, session: SessionState): SessionOutcome {
  const { execution } = own
  const { claim } = session
  if (isAllDone(own) && claim.state === 'accepted') return { kind: 'done', verified: claim.verified }
  if (execution.limit === 'rounds' && execution.rounds < MOST_ROUNDS) return { kind: 'limit', limit: 'rounds' }
  if (execution.limit === 'rounds')
    return needsPerson(
      `${MOST_ROUNDS} rounds worked on tasks, the most that one start allows, and some tasks are left. Continue with \`codemachine resume\`.`,
    )
  if (execution.limit === 'tasks')
    return needsPerson(
      `${wordsForNoTasks(execution)} the changed plan ${execution.lacksRoom ? 'needs more than are left' : 'cannot be carried out'}.`,
    )
  if (isAllDone(own))
    return needsPerson(
      `All tasks are done, but codemachine does not accept the change as done: ${execution.claim.refused ?? CHANGED}`,
    )
  return needsPerson(wordsForTasksLeft(own))
}

const CHANGED = 'each time after the proof, files changed again.'

function wordsForTasksLeft({ execution: { tasks } }: ChangeWork): string {
  const failed = tasks.filter(({ status }) => status === 'FAILED')
  const [first] = failed
  const others = tasks.filter(({ status }) => status !== 'COMPLETED' && status !== 'FAILED').length
  const more = failed.length - 1
  return [
    first === undefined ? 'Not all tasks are done.' : `${first.spec.id} failed. ${first.why ?? ''}`,
    ...(more > 0 ? [`${more === 1 ? 'One more task' : `${more} more tasks`} failed, too.`] : []),
    ...(others > 0 ? [`${others === 1 ? 'One task was' : `${others} tasks were`} not begun.`] : []),
  ].join(' ')
}

const MOST_REASON = 2_000

/** Returns why a task failed whose rounds gave no usable answer. */
export function wordsForUnanswered({ refusals, why }: TaskRecord): string {
  return clipEnd(`Its answer could not be used, ${refusals} times in a row. ${why ?? ''}`.trim(), MOST_REASON)
}

/** Returns an outcome that needs a person for this goal; the queue continues. */
export function needsPerson(reason: string): SessionOutcome {
  return { kind: 'needs-person', reason: clipEnd(reason, MOST_REASON), hint: null, goalOnly: true }
}
