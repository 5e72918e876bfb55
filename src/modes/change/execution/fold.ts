import { lastLines } from '../../../base/text.ts'
import type { EventOf, SessionEvent } from '../../../core/events/events.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import { type SessionState, sourceInUse } from '../../../core/state/state.ts'
import { readTasks } from '../tasks.ts'
import type { ChangeWork, ExecutionWork, Worked } from '../work.ts'
import { DECOMPOSITION, nextBefore, passedBefore, statusOf } from './before.ts'
import { afterAttempt, TAIL_CHARACTERS, withResult } from './fixing.ts'
import {
  isUncut,
  MOST_REFUSALS,
  NO_EXECUTION,
  newRecord,
  taskInHand,
  withStatus,
  withTask,
  wordsForUnanswered,
} from './queue.ts'

type Fold<S> = (own: ChangeWork, event: SessionEvent, session: SessionState) => S

/** The memory of a change after one more event in a state of its execution; `session`: before the event. Pure. */
export const EXECUTION_FOLDS = {
  decomposition: foldOf(foldDecomposition),
  /** Of the states that only lead to others. */
  between: foldOf(({ execution }) => execution),
  task: foldOf(foldTask),
  verification: foldOf(foldVerification),
  fixing: foldOf(foldFixing),
  summary: foldSummary,
} satisfies Record<string, Fold<ChangeWork>>

/** The fold of a state: what all of them keep, and what this one does. */
function foldOf(inState: Fold<ExecutionWork>): Fold<ChangeWork> {
  return (own, event, session) => {
    switch (event.type) {
      case 'noted':
        return withExecution(own, did(own.execution, event.name))
      case 'looked':
        return withExecution(own, afterLook(did(own.execution, event.what), event))
      case 'kept':
        return withExecution(own, afterKept(own.execution, event))
      default:
        return withExecution(own, inState(own, event, session))
    }
  }
}

/** The change with another execution. */
export function withExecution(own: ChangeWork, execution: ExecutionWork): ChangeWork {
  return execution === own.execution ? own : { ...own, execution }
}

/** Something is done in the present state. Pure. */
function did(execution: ExecutionWork, what: string): ExecutionWork {
  return execution.done.includes(what) ? execution : { ...execution, done: [...execution.done, what] }
}

/**
 * A person who goes on with a session that has ended has looked at what failed, and wants it tried once more. What a person or
 * a limit broke off goes on with the attempts at mending that it has had. Pure.
 */
export function executionAtResume(own: ChangeWork, ended: SessionOutcome): ChangeWork {
  const { execution, state } = own
  const isBrokenOff = ended.kind === 'interrupted' || ended.kind === 'limit'
  const hasFailed = taskInHand(execution)?.status === 'FAILED'
  const { claim, fixing } = execution
  // The task in hand is worked on again at once, but where its failure is already said.
  const inHand = state === 'EXECUTING_TASKS.failure' ? null : execution.at
  const tasks = execution.tasks.map((record, at) => ({
    ...record,
    ...(record.status === 'FAILED'
      ? { status: at === inHand ? ('IN_PROGRESS' as const) : ('PENDING' as const), why: null }
      : {}),
    attempts: record.status === 'COMPLETED' || (isBrokenOff && record.status !== 'FAILED') ? record.attempts : 0,
    refusals: 0,
  }))
  return {
    ...own,
    execution: {
      ...execution,
      tasks,
      claim: isBrokenOff ? claim : { ...claim, attempts: 0, refused: null },
      fixing: fixing === null || (isBrokenOff && !hasFailed) ? fixing : { ...fixing, attempt: 1, sameFailures: 0 },
      refusals: 0,
      rounds: 0,
      limit: null,
      isWritten: false,
      done: [],
    },
    outcome: null,
  }
}

/** Of a verification: there is nothing more to run. */
const OVER = 'over'

/** Whether a round has come to an end of which the template makes something: it is not tried again by itself. */
function isOver({ outcome, counts }: EventOf<'round-ended'>): boolean {
  return ENDS.has(outcome.class) || (outcome.class === 'silent' && counts)
}

const ENDS: ReadonlySet<string> = new Set(['worked', 'interrupted', 'context-full', 'refused'])

function afterKept(execution: ExecutionWork, { file }: EventOf<'kept'>): ExecutionWork {
  return file === TASKS_FILE ? { ...execution, isWritten: true } : did(execution, file)
}

/** Names of the files of the session's folder that the execution writes. */
export const TASKS_FILE = 'tasks.json'
export const SUMMARY_FILE = 'summary.md'
/** Name of the look that counts the lines which the tasks changed. */
export const LINES_LOOK = 'lines'

function afterLook(execution: ExecutionWork, { what, result }: EventOf<'looked'>): ExecutionWork {
  if (what !== LINES_LOOK || typeof result !== 'object' || result === null) return execution
  return withLines(execution, result as Readonly<Record<string, Worked['lines']>>)
}

/** The work on the tasks with these lines, by the id of the task; an empty id is what mended the claim. Pure. */
export function withLines(execution: ExecutionWork, found: Readonly<Record<string, Worked['lines']>>): ExecutionWork {
  const linesOf = (id: string) => (Object.hasOwn(found, id) ? (found[id] ?? null) : null)
  return {
    ...execution,
    tasks: execution.tasks.map(record => ({ ...record, lines: linesOf(record.spec.id) ?? record.lines })),
    claim: { ...execution.claim, work: { ...execution.claim.work, lines: linesOf('') ?? execution.claim.work.lines } },
  }
}

// Cutting the plan into tasks, and the commands before anything is changed.

function foldDecomposition(own: ChangeWork, event: SessionEvent, session: SessionState): ExecutionWork {
  const { execution } = own
  switch (event.type) {
    case 'round-started':
      // They are cut again: a version that judged as it folded has refused those that came.
      return isUncut(own) ? execution : withoutTasks(execution)
    case 'answer-given':
      return event.name.startsWith(DECOMPOSITION) ? takeTasks(own, event, session) : execution
    case 'answer-refused':
      return event.name.startsWith(DECOMPOSITION)
        ? refuseTasks(execution, event.problem, event.kind === NO_TASKS_LEFT)
        : execution
    case 'round-ended': {
      const { outcome } = event
      const isLost = isOver(event) && outcome.class !== 'worked' && outcome.class !== 'interrupted'
      return isLost ? refuseTasks(execution, `The round ended without an answer (${outcome.class}).`) : execution
    }
    case 'command-ran':
      return afterBefore(own, event, session)
    default:
      return execution
  }
}

/** The kind of a refusal: a changed plan needs more tasks than may still be made. */
export const NO_TASKS_LEFT = 'no-tasks-left'

function refuseTasks(execution: ExecutionWork, problem: string, lacksRoom = false): ExecutionWork {
  return { ...execution, problem, refusals: execution.refusals + 1, lacksRoom }
}

const TOO_LARGE = 'The list of tasks is longer than 64 KiB. Make its descriptions shorter.'

/** The same as if its list of tasks had not been taken; what is done stays. Pure. */
export function withoutTasks(execution: ExecutionWork): ExecutionWork {
  const tasks = execution.tasks.filter(({ status }) => status === 'COMPLETED')
  const made = execution.made - (execution.tasks.length - tasks.length)
  return { ...execution, version: NO_EXECUTION.version, tasks, made, isUnjudged: false }
}

/** What the answer says is believed: it was judged before it was journaled. */
function takeTasks(own: ChangeWork, { value, judged }: EventOf<'answer-given'>, session: SessionState): ExecutionWork {
  const { execution } = own
  if (value === undefined) return refuseTasks(execution, TOO_LARGE)
  const kept = execution.tasks.filter(({ status }) => status === 'COMPLETED')
  const read = readTasks(value)
  if (!read.ok) return refuseTasks(execution, read.problem)
  const taken: ExecutionWork = {
    ...execution,
    version: own.planning.accepted?.version ?? 0,
    tasks: [...kept, ...read.value.map(newRecord)],
    made: execution.made + read.value.length,
    problem: null,
    lacksRoom: false,
    isWritten: false,
    isUnjudged: judged !== true,
  }
  return judgedBefore({ ...own, execution: taken }, session)
}

/** One more command has run before anything is changed. */
function afterBefore(own: ChangeWork, event: EventOf<'command-ran'>, session: SessionState): ExecutionWork {
  const { execution } = own
  const run = nextBefore(own, session)
  if (run === null) return execution
  const ran: ExecutionWork = {
    ...execution,
    before: [...execution.before, { run, status: statusOf(event.status) }],
    beforeMs: execution.beforeMs + event.durationMs,
  }
  return judgedBefore({ ...own, execution: ran }, session)
}

/** Once all have run: what passes already shows nothing of a task, so that the tasks are cut again. */
function judgedBefore(own: ChangeWork, session: SessionState): ExecutionWork {
  const { execution } = own
  if (isUncut(own) || nextBefore(own, session) !== null) return execution
  const passed = passedBefore(own, session)
  if (passed.length === 0) return execution
  const lines = passed.map(
    ({ spec }) =>
      `- ${spec.id}: \`${spec.run}\` passes already, before anything is changed, so that it shows nothing of the task. Have it run something that fails until the task is done.`,
  )
  return withoutTasks(refuseTasks(execution, lines.join('\n')))
}

// A task that a round does.

function foldTask(own: ChangeWork, event: SessionEvent, session: SessionState): ExecutionWork {
  const { execution } = own
  switch (event.type) {
    case 'round-started':
      return withTask(execution, record => ({ ...record, outputs: null }))
    case 'answer-given':
      return withTask(execution, record => ({ ...record, outputs: event.output }))
    case 'answer-refused':
      return withTask(execution, record => ({ ...record, refusals: record.refusals + 1, why: event.problem }))
    case 'round-ended':
      return afterTaskRound(counted(execution, event, session), event)
    default:
      return execution
  }
}

function afterTaskRound(execution: ExecutionWork, { outcome }: EventOf<'round-ended'>): ExecutionWork {
  const why = outcome.message ?? `The round ended: ${outcome.class}.`
  switch (outcome.class) {
    case 'worked':
      return taskInHand(execution)?.outputs == null ? execution : withStatus(execution, 'COMPLETED')
    case 'context-full':
      return { ...unanswered(execution, why), byPlanner: 'its context was full before it answered' }
    case 'refused':
    case 'silent':
      return unanswered(execution, why)
    default:
      return execution
  }
}

/** The task in hand has no answer; it has failed where that was so as often as it may: the session may end for the same. */
function unanswered(execution: ExecutionWork, why: string): ExecutionWork {
  const after = withTask(execution, record => ({ ...record, refusals: record.refusals + 1, why }))
  const record = taskInHand(after)
  const isFailed = record !== null && record.refusals >= MOST_REFUSALS
  return isFailed ? withStatus(after, 'FAILED', wordsForUnanswered(record)) : after
}

/** The task in hand, or what mends the claim, with one more round that has ended. */
function counted(execution: ExecutionWork, event: EventOf<'round-ended'>, session: SessionState): ExecutionWork {
  const rounds = execution.rounds + (event.counts ? 1 : 0)
  const after = { ...execution, rounds }
  if (taskInHand(execution) !== null)
    return withTask(after, record => ({ ...record, ...workedOn(record, event, session) }))
  const { claim } = execution
  return { ...after, claim: { ...claim, work: workedOn(claim.work, event, session) } }
}

const MOST_CHANGED = 200
const MOST_NAMES = 3

function workedOn(
  work: Worked,
  { counts, durationMs, tokens, treeBefore, treeAfter, changed }: EventOf<'round-ended'>,
  session: SessionState,
): Worked {
  const source = sourceInUse(session)
  const who = [session.modelInUse ?? 'codex', ...(source === null ? [] : [`of ${source}`])].join(' ')
  const names = work.who === null ? [] : work.who.split(', ')
  return {
    who: [...names.filter(each => each !== who), who].slice(-MOST_NAMES).join(', '),
    rounds: work.rounds + (counts ? 1 : 0),
    ms: work.ms + durationMs,
    tokens: work.tokens + (tokens?.total ?? 0),
    treeBefore: work.treeBefore ?? treeBefore,
    treeAfter,
    ...withChanged(work, { changed }),
  }
}

function withChanged(work: Worked, { changed }: { changed: readonly string[] }): Pick<Worked, 'changed' | 'lines'> {
  return { changed: [...new Set([...work.changed, ...changed])].slice(0, MOST_CHANGED), lines: null }
}

// A command that shows whether what was done is right, and the claim at the end.

function foldVerification(own: ChangeWork, event: SessionEvent): ExecutionWork {
  const { execution } = own
  switch (event.type) {
    case 'done-refused':
      return { ...execution, claim: { ...execution.claim, refused: event.detail } }
    case 'command-ran':
      return taskInHand(execution) === null ? execution : afterVerification(execution, event)
    default:
      return execution
  }
}

/** Of a verification: its command has failed once and is run again. */
const FAILED_ONCE = 'failed-once'

function afterVerification(execution: ExecutionWork, event: EventOf<'command-ran'>): ExecutionWork {
  const { exitCode, tree, treeAfter, durationMs } = event
  const isSecond = execution.done.includes(FAILED_ONCE)
  const status = event.status === 'passed' && isSecond ? 'flaky' : event.status
  const isAgain = status === 'failed' && !isSecond
  const result = { status, exitCode, tree, tail: tailOf(event) }
  const ran = withTask(execution, record => ({
    ...record,
    ms: record.ms + durationMs,
    // What the command itself changes is told as what its rounds do.
    ...(event.changed.length === 0
      ? {}
      : { ...withChanged(record, event), treeBefore: record.treeBefore ?? tree, treeAfter }),
    // Both runs of a failure are one result.
    results: withResult(isSecond ? record.results.slice(0, -1) : record.results, result),
  }))
  if (isAgain) return did(ran, FAILED_ONCE)
  return did(status === 'passed' || status === 'flaky' ? withStatus(ran, 'COMPLETED') : ran, OVER)
}

/** What the command printed last, and what stood in its way. */
function tailOf({ status, output, problem, durationMs }: EventOf<'command-ran'>): string {
  if (status === 'passed') return ''
  const ended = status === 'timed-out' ? `codemachine ended it after ${Math.round(durationMs / 1000)} s.` : ''
  return lastLines([output.trim(), problem ?? '', ended].filter(each => each !== '').join('\n'), TAIL_CHARACTERS)
}

/** Whether the command of the verification in hand has run as often as it is run. */
export function isVerified({ done }: ExecutionWork): boolean {
  return done.includes(OVER)
}

function foldFixing(own: ChangeWork, event: SessionEvent, session: SessionState): ExecutionWork {
  if (event.type !== 'round-ended') return own.execution
  const execution = counted(own.execution, event, session)
  const { fixing } = execution
  // What a person broke off is no attempt, and is made again.
  if (fixing === null || !isOver(event) || event.outcome.class === 'interrupted') return execution
  const tried = { ...execution, fixing: afterAttempt(fixing, event, session.running?.lastWords ?? null) }
  const attempts = fixing.attempt
  return did(
    taskInHand(tried) === null
      ? { ...tried, claim: { ...tried.claim, attempts } }
      : withTask(tried, record => ({ ...record, attempts })),
    ROUND,
  )
}

/** In the state of the summary, and while something is mended: its round is over. */
export const ROUND = 'round'

const SHARED_SUMMARY = foldOf(({ execution }) => execution)

/** The planner's words are kept in the state, too, for the file and for the report. */
function foldSummary(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork {
  if (event.type === 'output-kept') return { ...own, summary: event.output }
  if (event.type !== 'round-ended') return SHARED_SUMMARY(own, event, session)
  const { class: end } = event.outcome
  // It uses up no round, so that it never counts.
  if (!ENDS.has(end) && end !== 'silent') return own
  const words = end === 'worked' ? (session.running?.lastWords ?? null) : null
  return { ...withExecution(own, did(own.execution, ROUND)), words }
}
