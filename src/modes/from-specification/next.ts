import { clipEnd } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import { MOST_ANSWER_REFUSALS, refusedAnswer } from '../../core/rules/answer.ts'
import type { Decision } from '../../core/rules/decision.ts'
import { followedMaterial } from '../../core/rules/outputs.ts'
import type { MemorySnapshot } from '../../core/shapes/memory.ts'
import { PLAN_ANSWER, PLAN_CHOICES, PLAN_DECISION, type PlanTask, type TaskPlan } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Template } from '../../core/template.ts'
import { replanInput, withNotices } from '../../session/round-input.ts'

/** Memory of a build, apart from its plan. */
export interface BuildWork {
  /** True after a refused claim that needs a fix, until an agent has worked on it. */
  mends: boolean
  /** The last summary; null before the first. */
  summary: string | null
}

/** Purposes of a build's rounds. */
export type BuildPart = 'team-building' | 'orchestration' | 'summary' | 'last-look'

/** Threads of a build's rounds, one per main agent, and one for a person's change of plan. */
interface BuildThreads {
  teamBuilder: ThreadSpec
  masterMind: ThreadSpec
  lastLook: ThreadSpec
  /** Writes nothing. */
  summarizer: ThreadSpec
  replan: ThreadSpec
}

/** Returns the master mind's input for a continuation; `lastTask`: the plan's last finished task, null: none. Pure. */
type RetryInput = (state: { lastTask: string | null; summary: string }) => string

type Step = ReturnType<Template['next']>

/**
 * The `build` template. A round builds the team and makes the plan. Then the master mind gets the tasks done; after each of
 * its stops a round writes a summary. When all tasks are done, a last look may claim *done*.
 */
export function nextOfBuild(threads: BuildThreads, retryInput: RetryInput): Pick<Template, 'next' | 'ahead'> {
  return {
    next(session, memory) {
      if (hasLostTasks(session, memory)) return { kind: 'check', check: 'tasks' }
      if (session.replan !== null) {
        return { kind: 'replan', round: { thread: threads.replan, input: replanInput(session.replan) } }
      }
      const { claim, taskPlan } = session
      if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
      if (taskPlan === null) throw new Error('A session that is no build cannot be carried out as one.')
      return taskPlan.state === 'ready'
        ? nextOfPlan(session, taskPlan, memory, threads, retryInput)
        : nextOfTeam(session, taskPlan, threads)
    },
    ahead({ replan, running, taskPlan, work }) {
      if (replan !== null && running === null) return threads.replan
      if (running === null && taskPlan?.state === 'ready') return taskPlan.isLetGo ? threads.masterMind : null
      if (running === null) return threads.teamBuilder
      if (running.part === 'orchestration' || running.part === 'last-look') return threads.summarizer
      // It is not known yet whether the team builder's files are a plan.
      if (running.part === 'team-building') return null
      return isAllDone(taskPlan, workOf({ work })) ? threads.lastLook : threads.masterMind
    },
  }
}

/** Returns whether an interrupted round, or one before a change of plan, removed tasks from the plan. */
function hasLostTasks({ taskPlan, last, replan }: SessionState, { tasks }: MemorySnapshot): boolean {
  if (taskPlan?.state !== 'ready') return false
  const isUnjudged = replan !== null && !taskPlan.judged && last !== null && last.part !== null
  if (!isUnjudged && !taskPlan.isCutOff) return false
  const present = new Set(tasks.map(({ id }) => id))
  return taskPlan.tasks.some(({ id }) => !present.has(id))
}

/** Returns the step before there is a plan. */
function nextOfTeam(session: SessionState, plan: TaskPlan, { teamBuilder }: BuildThreads): Step {
  const { last, notices } = session
  if (last?.part === 'team-building' && last.outcome.class === 'worked' && !plan.judged) {
    return { kind: 'check', check: 'plan' }
  }
  const { refusals, problem } = refusedAnswer(session, PLAN_ANSWER) ?? { refusals: 0, problem: null }
  if (refusals >= MOST_ANSWER_REFUSALS) return { kind: 'end', outcome: noPlan(problem) }
  const input = problem === null ? BUILD_TEAM : `${MEND_PLAN}\n\n${problem}`
  const round = { thread: teamBuilder, input: withNotices(input, notices), ...followedMaterial(session) }
  return { kind: 'round', round: { ...round, part: 'team-building' } }
}

const BUILD_TEAM =
  'Build the team and make the plan. If some files already exist, an earlier attempt was interrupted: look at them, and finish the work.'
const MEND_PLAN =
  'You have built the team and made the plan before, and a program has looked at the files. Fix what it found, and leave the rest as it is:'

function noPlan(problem: string | null): Extract<Step, { kind: 'end' }>['outcome'] {
  const [first = 'It could not be read.'] = (problem ?? '').split('\n')
  return {
    kind: 'needs-person',
    reason: `The team builder wrote no usable plan, ${MOST_ANSWER_REFUSALS} times in a row. ${first}`,
    hint: { do: 'mend-plan', ...filesIn(problem ?? '') },
    goalOnly: true,
  }
}

/** Returns the files of a plan's problems; each line begins with its file. `more`: the list is incomplete. */
function filesIn(problems: string): { files: string[]; more: boolean } {
  const named = problems.split('\n').flatMap(line => FILE.exec(line)?.[1] ?? [])
  const files = [...new Set(named)]
  return files.length === 0
    ? { files: [PLAN_FILE], more: false }
    : { files: files.slice(0, MOST_NAMED), more: files.length > MOST_NAMED }
}

const PLAN_FILE = '.codemachine/plan/tasks.json'
const FILE = /^(\.codemachine[\\/].+?)(?:: | is | has | cannot be used )/

/** Returns the step once there is a plan. */
function nextOfPlan(
  session: SessionState,
  plan: TaskPlan,
  memory: MemorySnapshot,
  threads: BuildThreads,
  retryInput: RetryInput,
): Step {
  const { last, claim, notices } = session
  const work = workOf(session)
  const lastLook = () => {
    const input = withNotices(`${LOOK}\n\n${clipEnd(session.goal, MOST_GOAL)}`, notices)
    return { kind: 'round', round: { thread: threads.lastLook, input, part: 'last-look', tellsGoal: true } } as const
  }
  if (last !== null && isOver(last) && !plan.judged) return { kind: 'check', check: 'tasks' }
  if (last?.part === 'last-look' && isOver(last) && claim.state === 'refused' && isAllDone(plan, work))
    return lastLook()
  if (last !== null && wantsSummary(last)) {
    return { kind: 'round', round: { thread: threads.summarizer, input: SUM_UP, part: 'summary' } }
  }
  // A person added tasks to the plan, or removed some.
  if (plan.judged && !isOfPlan(memory, plan)) return { kind: 'check', check: 'tasks' }
  if (!plan.isLetGo) {
    const isStopped = session.decided?.id === PLAN_DECISION && session.decided.choice === PLAN_CHOICES.stop
    if (isStopped) return { kind: 'end', outcome: { kind: 'interrupted', by: 'stop' } }
    return { kind: 'decide', decision: planDecision(plan) }
  }
  if (isAllDone(plan, work)) return lastLook()
  const end = work.mends ? null : endOfPlan(plan)
  if (end !== null) return { kind: 'end', outcome: end }
  const input = withNotices(inputOf(plan, work, retryInput), notices)
  return { kind: 'round', round: { thread: threads.masterMind, input, part: 'orchestration' } }
}

/** Returns the question to a person who wants to see the plan before it runs. */
function planDecision({ tasks }: TaskPlan): Decision {
  return {
    id: PLAN_DECISION,
    title: `The plan has ${tasks.length === 1 ? '1 task' : `${tasks.length} tasks`}. Start the build?`,
    body: '',
    choices: [
      { id: PLAN_CHOICES.accept, label: 'Start the build' },
      { id: PLAN_CHOICES.change, label: 'Change the plan', text: 'must' },
      { id: PLAN_CHOICES.stop, label: 'Stop', hint: 'codemachine resume continues from here' },
    ],
    default: null,
  }
}

/** Whether the state is to be summed up now: the master mind has stopped, or the summary did not come to its end. */
function wantsSummary(last: NonNullable<SessionState['last']>): boolean {
  if (last.part === 'summary') return !isOver(last)
  return (last.part === 'orchestration' || last.part === 'last-look') && isOver(last)
}

/** How a build ends on whose tasks nobody can work any more; null if somebody can. */
function endOfPlan(plan: TaskPlan): Extract<Step, { kind: 'end' }>['outcome'] | null {
  if (plan.tasks.length === 0) return EMPTY_PLAN
  return plan.tasks.every(({ done, parked }) => done || parked !== null) ? parkedOnly(plan) : null
}

const LOOK =
  'Every task of the plan is done. Look at the whole, and claim done if nothing needs to change. This is what the person asked for, word for word. If a file says something else, this counts:'
/** A specification is no longer than this. */
const MOST_GOAL = 600_000
const SUM_UP = 'Say how the build stands now.'
const BEGIN = 'The plan is made, and no task has been begun. Begin with the first.'

const EMPTY_PLAN: Extract<Step, { kind: 'end' }>['outcome'] = {
  kind: 'needs-person',
  reason: 'There is no task left in the plan.',
  hint: { do: 'add-tasks', file: PLAN_FILE },
  goalOnly: true,
}

/** Whether the file has the same tasks as the plan that is known. */
function isOfPlan({ tasks }: MemorySnapshot, plan: TaskPlan): boolean {
  const known = new Set(plan.tasks.map(({ id }) => id))
  return tasks.length === known.size && tasks.every(({ id }) => known.has(id))
}

function isAllDone(plan: TaskPlan | null, { mends }: BuildWork): boolean {
  return plan !== null && !mends && plan.tasks.length > 0 && plan.tasks.every(({ done }) => done)
}

const GO_ON =
  'The plan is made, and the work on it was interrupted. Look at the existing work, then continue with the first task that is not done.'

/** Whether a round has done its part, well or not; else the same one is tried again. */
function isOver({ outcome }: NonNullable<SessionState['last']>): boolean {
  return OVER.has(outcome.class)
}

const OVER = new Set<string>(['worked', 'interrupted', 'context-full', 'refused', 'silent'])

function inputOf({ tasks }: TaskPlan, { summary }: BuildWork, retryInput: RetryInput): string {
  if (summary === null) return tasks.some(({ workedIn }) => workedIn > 0) ? GO_ON : BEGIN
  const lastDone = tasks.findLast(({ done }) => done)
  return retryInput({ lastTask: lastDone === undefined ? null : `${lastDone.id} ${lastDone.name}`, summary })
}

function parkedOnly({ tasks }: TaskPlan): Extract<Step, { kind: 'end' }>['outcome'] {
  const left = tasks.filter(task => task.parked !== null)
  const first = left.slice(0, MOST_NAMED).map(nameOf).join('; ')
  const more = left.length > MOST_NAMED ? `; and ${left.length - MOST_NAMED} more` : ''
  const what = left.length === 1 ? 'One task is parked' : `${left.length} tasks are parked`
  return {
    kind: 'needs-person',
    reason: `${what}; all other tasks are done: ${first}${more}.`,
    hint: { do: 'mend-parked-tasks', file: PLAN_FILE },
    goalOnly: true,
  }
}

const MOST_NAMED = 5

function nameOf({ id, name, parked }: PlanTask): string {
  return `${id} ${name} (${parked?.replace(/\.$/, '')})`
}

/** How a build stands that has ended, as Markdown: what codemachine itself knows, and below it the last summary. Pure. */
export function summaryOfEnd(session: SessionState): string {
  const { taskPlan, ended, last, claim } = session
  const { summary } = workOf(session)
  const tasks = taskPlan?.state === 'ready' ? taskPlan.tasks : null
  const hasWorkedSince = last?.part !== 'summary' && claim.state !== 'accepted'
  return [
    '# How the build stands',
    ...(ended === null ? [] : ['', wordsForEnd(ended.outcome)]),
    ...(tasks === null ? ['', 'There is no usable plan yet.'] : taskLists(tasks)),
    ...(summary === null ? [] : ['', '## What was summed up last', '']),
    ...(summary !== null && hasWorkedSince ? ['Rounds after it are not in it.', ''] : []),
    ...(summary === null ? [] : [summary]),
  ].join('\n')
}

function taskLists(tasks: TaskPlan['tasks']): string[] {
  const list = (title: string, of: TaskPlan['tasks']) => {
    const lines = of.map(
      ({ id, name, parked }) => `- ${oneLine(`${id} ${name}${parked === null ? '' : `: ${parked}`}`)}`,
    )
    return lines.length === 0 ? [] : ['', `## ${title}`, '', ...lines]
  }
  return [
    ...list(
      'Done',
      tasks.filter(({ done }) => done).map(task => ({ ...task, parked: null })),
    ),
    ...list(
      'Left',
      tasks.filter(({ done, parked }) => !done && parked === null),
    ),
    ...list(
      'Parked',
      tasks.filter(({ done, parked }) => !done && parked !== null),
    ),
  ]
}

/** How it ended, in a sentence. */
function wordsForEnd(outcome: SessionOutcome): string {
  switch (outcome.kind) {
    case 'done':
      return `The build is done${outcome.verified ? ', and verified: its gates pass' : ', but no gate proved it'}.`
    case 'limit':
      return `The build is not done: its limit of ${outcome.limit} was reached.`
    case 'needs-person':
      return `The build is not done, and needs a person: ${oneLine(outcome.reason)}`
    case 'stalled':
      return 'The build is not done: its last rounds made no progress.'
    case 'interrupted':
      return 'The build is not done: it was stopped.'
    case 'replayed':
      return 'Some rounds were replayed, so the build does not count as done.'
    default:
      return `The build has ended: ${outcome.kind}.`
  }
}

const MOST_LINE = 1000

function oneLine(text: string): string {
  return clipEnd(text.replace(/\s+/g, ' ').trim(), MOST_LINE)
}

/** Of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): BuildWork {
  return work as BuildWork
}
