import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { EventOf, PlanEvent } from '../events/events.ts'
import { hasPassed } from '../events/outcome.ts'
import { type RefusedAnswers, withoutRefusal, withRefusal } from '../rules/answer.ts'
import { taskNotice } from '../rules/notices.ts'
import { withNotice } from '../rules/notices-after-round.ts'
import { withOutput } from '../rules/outputs.ts'
import {
  type AgentAtWork,
  countFailure,
  isHeldToAllGates,
  PLAN_ANSWER,
  type PlanTask,
  type TaskPlan,
  taskOf,
} from './plan.ts'
import { type FoldsOf, type PartOfRound, partOf, reachAfter, type SessionState } from './state.ts'

/** Limit of an agent's stored request, characters. */
const REQUEST_CHARACTERS = 200

/** Folds of events of a plan, and of agents with tasks. Pure. */
export const PLAN_FOLDS: FoldsOf<PlanEvent> = {
  // Written by version 0.1; later versions write `answer-refused`.
  'plan-refused': (state, event) => refusePlan(state, event.problem),
  'plan-ready': (state, event) => ({
    ...state,
    taskPlan: planReady(state.taskPlan, event),
    refusedAnswers: withoutRefusal(state.refusedAnswers, PLAN_ANSWER),
  }),
  'agent-started': (state, event, at) => ({
    ...state,
    agents: withAgent(state.agents, event, at),
    reachOfEngines: reachAfter(state, event),
    agentsOfEngines:
      event.engine === undefined
        ? state.agentsOfEngines
        : { ...state.agentsOfEngines, [event.engine]: (state.agentsOfEngines[event.engine] ?? 0) + 1 },
    running: state.running && {
      ...state.running,
      hasWorked: state.running.hasWorked || event.door !== 'template',
    },
  }),
  'agent-ended': (state, event) => {
    const { agents, taskPlan } = state
    const ended = agents.find(({ instance }) => instance === event.instance)
    return {
      ...state,
      agents: agents.filter(each => each !== ended),
      running: ended === undefined ? state.running : withEnded(state.running, ended, event),
      taskPlan: ended !== undefined && event.status === 'completed' ? workedOn(taskPlan, ended, event.round) : taskPlan,
    }
  },
  'task-judged': (state, event) => {
    const notice = taskNotice(event)
    const next = { ...state, taskPlan: taskJudged(state.taskPlan, event) }
    return notice === null ? next : withNotice(next, notice)
  },
  'tasks-judged': state => ({ ...state, taskPlan: state.taskPlan && { ...state.taskPlan, judged: true } }),
}

/** Returns the plan of a resumed session. After an end, a person has seen it, so parked tasks are retried. */
export function planAtResume(state: SessionState): TaskPlan | null {
  const plan = planAtCut(state)
  const { ended } = state
  if (plan === null || ended === null) return plan
  const tasks = plan.tasks.map(task => ({ ...task, failures: 0, failedIn: 0, parked: null, givenTo: {} }))
  // A plan that a person may have repaired by hand is checked first.
  return { ...plan, tasks, judged: plan.state === 'ready' && plan.judged }
}

/** Returns the plan after a running round was cut off. */
export function planAtCut(state: SessionState): TaskPlan | null {
  const { taskPlan, running } = state
  if (taskPlan === null || running === null || running.part === null || isFreePart(state, running)) return taskPlan
  return { ...taskPlan, isCutOff: true }
}

/** Returns the plan at the start of a round. A round that gives work to agents shows that the plan was accepted. */
export function planAtRound(state: SessionState, part: string | null): TaskPlan | null {
  const plan = state.taskPlan
  if (plan === null) return null
  const isLetGo = plan.isLetGo || (part !== null && partOf(state.kind, part).delegates)
  const tasks = plan.tasks.map(task => ({ ...task, givenTo: {} }))
  return { ...plan, isLetGo, isCutOff: false, broken: null, tasks }
}

/** Returns the plan after a resume from a pause that an earlier version made for it: a person has seen the plan. */
export function planAfterUnpause({ taskPlan, decided, running, replan, heldSince }: SessionState): TaskPlan | null {
  const wasHeldForIt = decided === null && running === null && replan === null && heldSince !== null
  return taskPlan?.state === 'ready' && wasHeldForIt ? { ...taskPlan, isLetGo: true } : taskPlan
}

/** Returns the plan after a memory file was unusable. */
export function planAfterBrokenMemory(plan: TaskPlan | null, { problem }: EventOf<'memory-broken'>): TaskPlan | null {
  return plan && problem.file === 'tasks.json' ? { ...plan, broken: problem.problem } : plan
}

/** Returns the plan at the end of a round. */
export function planAfterRound(state: SessionState): TaskPlan | null {
  const { taskPlan, running } = state
  if (taskPlan === null || running === null) return taskPlan
  return { ...taskPlan, judged: taskPlan.judged && isFreePart(state, running) }
}

/** Returns true if a round cannot change the plan: a free round only reads. */
function isFreePart({ kind }: SessionState, { part }: PartOfRound): boolean {
  return part !== null && partOf(kind, part).free
}

/** Returns the plan after a gate ran. */
export function planAfterGate(plan: TaskPlan | null, { gate, status }: EventOf<'gate-ended'>): TaskPlan | null {
  if (plan === null || !hasPassed(status) || plan.passedGates.includes(gate)) return plan
  return { ...plan, passedGates: [...plan.passedGates, gate] }
}

/** Returns the state after an agent wrote an invalid plan. */
function refusePlan(state: SessionState, problem: string): SessionState {
  const { taskPlan } = state
  return {
    ...state,
    taskPlan: taskPlan && { ...taskPlan, state: 'refused', judged: true },
    refusedAnswers: withRefusal(state.refusedAnswers, PLAN_ANSWER, problem),
  }
}

/** Returns the plan once it is ready. */
function planReady(plan: TaskPlan | null, { tasks }: EventOf<'plan-ready'>): TaskPlan | null {
  if (plan === null) return null
  const all = tasks.map(task => newTask(task.id, task.name, task.phase))
  return { ...plan, state: 'ready', tasks: all, judged: true }
}

/** Returns the plan after a task was judged. */
function taskJudged(plan: TaskPlan | null, event: EventOf<'task-judged'>): TaskPlan | null {
  if (plan === null) return null
  const { task: id, name, phase, verdict, detail, round } = event
  const failed = (task: PlanTask) => ({ ...task, failures: countFailure(task, round), failedIn: round })
  const change = (how: (task: PlanTask) => PlanTask) => ({
    ...plan,
    tasks: plan.tasks.map(task => (task.id === id ? how(task) : task)),
  })
  switch (verdict) {
    case 'done':
      return change(task => ({ ...task, done: true, parked: null }))
    case 'reopened':
      return change(task => ({ ...task, done: false }))
    case 'refused':
    case 'failed':
      return change(failed)
    case 'parked':
      return change(task => ({ ...failed(task), parked: detail ?? 'It failed too often.' }))
    case 'added':
      return { ...plan, tasks: [...plan.tasks, newTask(id, name, phase)] }
    case 'put-back':
      return plan
    case 'changed':
      return change(task => ({ ...task, name, phase, wasMovedFromGates: isMovedFromGates(task, phase) }))
    case 'edited':
      return change(task => ({ ...task, name, phase, wasMovedFromGates: false }))
    case 'removed':
      return { ...plan, tasks: plan.tasks.filter(task => task.id !== id) }
    default:
      return unreachable(verdict)
  }
}

function isMovedFromGates({ phase, wasMovedFromGates }: PlanTask, now: string | null): boolean {
  return (wasMovedFromGates || isHeldToAllGates(phase)) && !isHeldToAllGates(now)
}

/**
 * Returns the plan after an agent finished its tasks. A whole task given twice counts as a failure of the first time; parts
 * of a task may repeat.
 */
function workedOn(plan: TaskPlan | null, { agent, tasks: ids }: AgentAtWork, round: number): TaskPlan | null {
  if (plan === null) return null
  const whole = new Set(ids)
  const about = new Set(ids.map(id => taskOf(id, plan.tasks)?.id))
  const tasks = plan.tasks.map(task => {
    if (!about.has(task.id)) return task
    if (!whole.has(task.id)) return { ...task, workedIn: round }
    const times = task.givenTo[agent] ?? 0
    return {
      ...task,
      workedIn: round,
      givenTo: { ...task.givenTo, [agent]: times + 1 },
      failures: times === 0 ? task.failures : task.failures + 1,
    }
  })
  return { ...plan, tasks }
}

/** Returns the working agents with one more. */
function withAgent(agents: readonly AgentAtWork[], event: EventOf<'agent-started'>, at: number): AgentAtWork[] {
  const { instance, agent, tasks } = event
  const request = clipEnd(event.request.replace(/\s+/g, ' ').trim(), REQUEST_CHARACTERS)
  return [...agents, { instance, agent, tasks, request, since: at, threads: [] }]
}

const MOST_ENDED = 50

function withEnded(
  running: SessionState['running'],
  { threads: _, ...agent }: AgentAtWork,
  { status, durationMs, tokens }: EventOf<'agent-ended'>,
): SessionState['running'] {
  if (running === null) return null
  const ended = { ...agent, status, durationMs, tokens: tokens?.total ?? null }
  return { ...running, agentsEnded: [...running.agentsEnded, ended].slice(-MOST_ENDED) }
}

/** Returns the working agents after a thread reported tokens; the same array if the thread is known. */
export function withThread(
  agents: readonly AgentAtWork[],
  { instance, thread }: EventOf<'usage'>,
): readonly AgentAtWork[] {
  if (instance === undefined || !agents.some(each => each.instance === instance && !each.threads.includes(thread)))
    return agents
  return agents.map(each => (each.instance === instance ? { ...each, threads: [...each.threads, thread] } : each))
}

function newTask(id: string, name: string, phase: string | null): PlanTask {
  const begun = { done: false, failures: 0, parked: null, workedIn: 0, failedIn: 0, givenTo: {} }
  return { id, name, phase, wasMovedFromGates: false, ...begun }
}

/** Events of a round's result in words: an answer, or another output. */
export type AnswerEvent = EventOf<'answer-given' | 'answer-refused' | 'output-kept'>

/** Folds of these events. Pure. */
export const ANSWER_FOLDS: FoldsOf<AnswerEvent> = {
  'answer-given': (state, event) => {
    const next = { ...state, outputs: withOutput(state.outputs, event.output) }
    return isOfReview(state)
      ? { ...next, reviews: { ...state.reviews, problem: null } }
      : { ...next, refusedAnswers: withoutRefusal(state.refusedAnswers, event.name) }
  },
  'answer-refused': (state, { name, problem }) => {
    if (isOfReview(state)) return { ...state, reviews: { ...state.reviews, problem } }
    if (name === PLAN_ANSWER) return refusePlan(state, problem)
    return { ...state, refusedAnswers: withRefusal(state.refusedAnswers, name, problem) }
  },
  'output-kept': (state, event) => ({ ...state, outputs: withOutput(state.outputs, event.output) }),
}

/** Returns refused answers at a resume. After an end, a person has seen them, so their counts restart. */
export function refusedAtResume({ refusedAnswers, ended }: SessionState): RefusedAnswers {
  if (ended === null) return refusedAnswers
  const entries = Object.entries(refusedAnswers)
  return Object.fromEntries(entries.map(([name, { problem }]) => [name, { refusals: 0, problem }]))
}

/** Answers to a review count as reviews; a template may use the same answer name. */
function isOfReview({ checking }: SessionState): boolean {
  return checking?.kind === 'review'
}
