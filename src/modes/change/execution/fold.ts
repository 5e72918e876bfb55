import { lastLines } from '../../../base/text.ts'
import type { EventOf, SessionEvent } from '../../../core/events/events.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import { fromSource, type SessionState, sourceInUse } from '../../../core/state/state.ts'
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

/** Folds of a change's memory by kind of execution state; `session`: before the event. Pure. */
export const EXECUTION_FOLDS = {
  decomposition: foldOf(foldDecomposition),
  /** For states that only lead to others. */
  between: foldOf(({ execution }) => execution),
  task: foldOf(foldTask),
  verification: foldOf(foldVerification),
  fixing: foldOf(foldFixing),
  summary: foldSummary,
} satisfies Record<string, Fold<ChangeWork>>

/** Returns a state's fold: the common part, and its own. */
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

/** Returns the change with another execution. */
export function withExecution(own: ChangeWork, execution: ExecutionWork): ChangeWork {
  return execution === own.execution ? own : { ...own, execution }
}

/** Marks something done in the current state. Pure. */
function did(execution: ExecutionWork, what: string): ExecutionWork {
  return execution.done.includes(what) ? execution : { ...execution, done: [...execution.done, what] }
}

/**
 * Returns the execution of a resumed session. After a failure the person wants another try. After an interruption or a
 * limit, the earlier attempts still count. Pure.
 */
export function executionAtResume(own: ChangeWork, ended: SessionOutcome): ChangeWork {
  const { execution, state } = own
  const isBrokenOff = ended.kind === 'interrupted' || ended.kind === 'limit'
  const hasFailed = taskInHand(execution)?.status === 'FAILED'
  const { claim, fixing } = execution
  // The current task continues at once, unless its failure is already reported.
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

/** For a verification: nothing more to run. */
const OVER = 'over'

/** Returns whether the template uses the end of this round: it is then not retried by itself. */
function isOver({ outcome, counts }: EventOf<'round-ended'>): boolean {
  return ENDS.has(outcome.class) || (outcome.class === 'silent' && counts)
}

const ENDS: ReadonlySet<string> = new Set(['worked', 'interrupted', 'context-full', 'refused'])

function afterKept(execution: ExecutionWork, { file }: EventOf<'kept'>): ExecutionWork {
  return file === TASKS_FILE ? { ...execution, isWritten: true } : did(execution, file)
}

/** Names of the execution's files in the session's folder. */
export const TASKS_FILE = 'tasks.json'
export const SUMMARY_FILE = 'summary.md'
/** Name of the look that counts the lines changed by tasks. */
export const LINES_LOOK = 'lines'

function afterLook(execution: ExecutionWork, { what, result }: EventOf<'looked'>): ExecutionWork {
  if (what !== LINES_LOOK || typeof result !== 'object' || result === null) return execution
  return withLines(execution, result as Readonly<Record<string, Worked['lines']>>)
}

/** Returns the execution with these lines, by task id; an empty id is the fix of the claim. Pure. */
export function withLines(execution: ExecutionWork, found: Readonly<Record<string, Worked['lines']>>): ExecutionWork {
  const linesOf = (id: string) => (Object.hasOwn(found, id) ? (found[id] ?? null) : null)
  return {
    ...execution,
    tasks: execution.tasks.map(record => ({ ...record, lines: linesOf(record.spec.id) ?? record.lines })),
    claim: { ...execution.claim, work: { ...execution.claim.work, lines: linesOf('') ?? execution.claim.work.lines } },
  }
}

// Decomposition: cut the plan into tasks, and run the commands before any change.

function foldDecomposition(own: ChangeWork, event: SessionEvent, session: SessionState): ExecutionWork {
  const { execution } = own
  switch (event.type) {
    case 'round-started':
      // They are cut again: a version that judged while folding refused the earlier ones.
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

/** Kind of refusal: a changed plan needs more tasks than are left. */
export const NO_TASKS_LEFT = 'no-tasks-left'

function refuseTasks(execution: ExecutionWork, problem: string, lacksRoom = false): ExecutionWork {
  return { ...execution, problem, refusals: execution.refusals + 1, lacksRoom }
}

const TOO_LARGE = 'The list of tasks is longer than 64 KiB. Make its descriptions shorter.'

/** Returns the execution as before its list of tasks; finished tasks stay. Pure. */
export function withoutTasks(execution: ExecutionWork): ExecutionWork {
  const tasks = execution.tasks.filter(({ status }) => status === 'COMPLETED')
  const made = execution.made - (execution.tasks.length - tasks.length)
  return { ...execution, version: NO_EXECUTION.version, tasks, made, isUnjudged: false }
}

/** The answer is valid: it was judged before it was journaled. */
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

/** Handles the result of a command before any change. */
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

/** Once all have run: a check that already passes proves nothing, so the tasks are cut again. */
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

// A task for a round.

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

/** Handles a missing answer. The task fails after the last allowed try, because the session may end for that. */
function unanswered(execution: ExecutionWork, why: string): ExecutionWork {
  const after = withTask(execution, record => ({ ...record, refusals: record.refusals + 1, why }))
  const record = taskInHand(after)
  const isFailed = record !== null && record.refusals >= MOST_REFUSALS
  return isFailed ? withStatus(after, 'FAILED', wordsForUnanswered(record)) : after
}

/** Adds an ended round to the current task, or to the fix of the claim. */
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
  const model = session.modelInUse ?? 'codex'
  const who = [model, fromSource(model, sourceInUse(session))].filter(each => each !== null).join(' ')
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

// A command that checks the work, and the claim at the end.

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

/** For a verification: its command has failed once and runs again. */
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
    // The command's own changes count like those of its rounds.
    ...(event.changed.length === 0
      ? {}
      : { ...withChanged(record, event), treeBefore: record.treeBefore ?? tree, treeAfter }),
    // Both runs of a failure are one result.
    results: withResult(isSecond ? record.results.slice(0, -1) : record.results, result),
  }))
  if (isAgain) return did(ran, FAILED_ONCE)
  return did(status === 'passed' || status === 'flaky' ? withStatus(ran, 'COMPLETED') : ran, OVER)
}

/** Returns the end of the command's output, and its problem. */
function tailOf({ status, output, problem, durationMs }: EventOf<'command-ran'>): string {
  if (status === 'passed') return ''
  const ended = status === 'timed-out' ? `codemachine ended it after ${Math.round(durationMs / 1000)} s.` : ''
  return lastLines([output.trim(), problem ?? '', ended].filter(each => each !== '').join('\n'), TAIL_CHARACTERS)
}

/** Returns whether the current verification's command has run often enough. */
export function isVerified({ done }: ExecutionWork): boolean {
  return done.includes(OVER)
}

function foldFixing(own: ChangeWork, event: SessionEvent, session: SessionState): ExecutionWork {
  if (event.type !== 'round-ended') return own.execution
  const execution = counted(own.execution, event, session)
  const { fixing } = execution
  // A person's interruption is no attempt; it is made again.
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

/** For the summary and for a fix: its round is over. */
export const ROUND = 'round'

const SHARED_SUMMARY = foldOf(({ execution }) => execution)

/** The state keeps the planner's words too, for the file and the report. */
function foldSummary(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork {
  if (event.type === 'output-kept') return { ...own, summary: event.output }
  if (event.type !== 'round-ended') return SHARED_SUMMARY(own, event, session)
  const { class: end } = event.outcome
  // It uses up no round, so it never counts.
  if (!ENDS.has(end) && end !== 'silent') return own
  const words = end === 'worked' ? (session.running?.lastWords ?? null) : null
  return { ...withExecution(own, did(own.execution, ROUND)), words }
}
