import { clipEnd } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { MemorySnapshot } from '../shapes/memory.ts'

/** The verdicts of codemachine on a task of the plan; docs/reference/events.md says what each means. */
export type TaskVerdict = EventOf<'task-judged'>['verdict']

/** The id of the decision on a plan that a person wants to see before it is carried out. */
export const PLAN_DECISION = 'plan'

/**
 * Its choices: carry the plan out, have it changed as the text says, end the session. What `unpause` and `replan` choose
 * where it is open.
 */
export const PLAN_CHOICES = { accept: 'accept', change: 'change', stop: 'stop' } as const

/** A task in the plan of a session, as codemachine has judged it. */
export interface PlanTask {
  id: string
  name: string
  phase: string | null
  /** True if a round moved it out of a phase that has to pass every gate; it still has to. */
  wasMovedFromGates: boolean
  done: boolean
  /** How often work on it did not make it done. */
  failures: number
  /** The last round after which it was judged not to be done; 0: none. */
  failedIn: number
  /** Why it is parked; null if it is not. */
  parked: string | null
  /** The last round in which an agent completed work on it; 0: none. */
  workedIn: number
  /** How often each agent has completed work on it in this round. */
  givenTo: Readonly<Record<string, number>>
}

/** The plan of a session whose template has one (`TemplateKind.hasPlan`); part of the fold of its journal. */
export interface TaskPlan {
  /** Whether a person wants to see the plan before it is carried out. */
  asksPerson: boolean
  state: 'none' | 'refused' | 'ready'
  /** True once the plan may be carried out: a person has let it go on, or none wants to see it. */
  isLetGo: boolean
  /** Why the plan that a round left could not be read at all, and was put back; null if it could. */
  broken: string | null
  tasks: readonly PlanTask[]
  /** Whether the plan, or its tasks, have been judged since the last round that may have changed them. */
  judged: boolean
  /** Whether a round that may have changed the plan was cut off, and none has begun since. */
  isCutOff: boolean
  /** The gates that have passed at some time. */
  passedGates: readonly string[]
}

/** An agent at work on a task that another agent, or a person, gave it. */
export interface AgentAtWork {
  /** `frontend-dev-20261122T004530123`. */
  instance: string
  agent: string
  /** Ids of the tasks of the plan that it is about, as they were named: `T3.1` for a part of `T3`. */
  tasks: readonly string[]
  /** What it was asked for, in a line. */
  request: string
  /** Unix time, ms. */
  since: number
  /** Its threads, as far as they have reported tokens; none in journals of versions that did not say whose they are. */
  threads: readonly string[]
}

/** How the work of an agent ended. */
export type AgentStatus = EventOf<'agent-ended'>['status']

/** An agent that has come to its end in the running round; `tokens`: of its threads, null if none were reported. */
export interface EndedAgent extends Pick<AgentAtWork, 'instance' | 'agent' | 'tasks' | 'request' | 'since'> {
  status: AgentStatus
  durationMs: number
  tokens: number | null
}

/** Whether tasks of this phase have to pass the gates that have never passed yet, too. Pure. */
export function isHeldToAllGates(phase: string | null): boolean {
  return phase === 'Testing' || phase === 'Runtime'
}

/** After so many failures a task is parked. */
export const MOST_FAILURES = 5

/** The failures of a task that is not done after this round; judged twice for one round, it is counted once. Pure. */
export function countFailure({ failures, failedIn }: PlanTask, round: number): number {
  return failedIn === round ? failures : failures + 1
}

/** The name of the answer that the files of a plan are: by that refusals of it are journaled and counted. */
export const PLAN_ANSWER = 'plan'

/** The plan of a session before its first round. */
export function emptyPlan(asksPerson: boolean): TaskPlan {
  return {
    asksPerson,
    state: 'none',
    isLetGo: !asksPerson,
    broken: null,
    tasks: [],
    judged: false,
    isCutOff: false,
    passedGates: [],
  }
}

/** A task of the plan that a request is about; `id`: as it was named, `T3.1` if only a part of it is meant. */
export interface NamedTask {
  id: string
  task: PlanTask
}

/** The most that one request may be about. */
const MOST_NAMED = 10

/**
 * The tasks of the plan that a request says at its beginning it is about, each id once: those before the first colon of
 * its first line (`T3: …`, `T3, T4.1: …`), or its first word where there is no colon. What is named later is only
 * mentioned. A subtask counts for its task.
 */
export function tasksNamed(request: string, tasks: readonly PlanTask[]): NamedTask[] {
  const [line = ''] = request.trimStart().split('\n', 1)
  const colon = line.indexOf(':')
  const head = colon === -1 ? (line.split(/\s/, 1)[0] ?? '') : line.slice(0, colon)
  const words = head.split(/[\s,;&+/*_`[\]()]+|\band\b/).map(word => word.replace(/\.+$/, ''))
  const ids = new Set(words.filter(word => word !== ''))
  const named = [...ids].map(id => ({ id, task: taskOf(id, tasks) }))
  // A sentence that happens to hold an id is not a list of them.
  if (named.length > MOST_NAMED || named.some(({ task }) => task === null)) return []
  return named.flatMap(({ id, task }) => (task === null ? [] : [{ id, task }]))
}

/** The task of the plan that an id stands for, of the task or of a part of it. */
export function taskOf<T extends Pick<PlanTask, 'id'>>(id: string, tasks: readonly T[]): T | null {
  const task = tasks.find(each => each.id === id)
  if (task !== undefined) return task
  const dot = id.lastIndexOf('.')
  return dot === -1 ? null : taskOf(id.slice(0, dot), tasks)
}

interface BoardTask {
  id: string
  name: string
  phase: string | null
  done: boolean
  /** Of a plan: whether it is said to be done, and codemachine has not taken it for that yet. */
  claimed?: boolean
  /** Of a plan: why nobody works on it any more. */
  parked?: string
}

/** What MAIN.md and tasks.json say of a session now. */
export interface TaskBoard {
  /** `short_title` of MAIN.md. */
  title: string | null
  tasks: readonly BoardTask[]
  /** Id of the task at work: the first in `## In progress` of MAIN.md that is a task, else the first not done. */
  current: string | null
}

const MOST_LEFT = 20
const NAME_CHARACTERS = 200

/** The `tasks` field of `round-ended`, by the memory files; empty if there are no tasks. Pure. */
export function countTasks({ tasks }: Pick<MemorySnapshot, 'tasks'>): Pick<EventOf<'round-ended'>, 'tasks'> {
  if (tasks.length === 0) return {}
  const left = tasks.filter(({ done }) => !done)
  const names = left.slice(0, MOST_LEFT).map(({ id, name }) => clipEnd(`${id} ${name}`, NAME_CHARACTERS))
  return { tasks: { done: tasks.length - left.length, total: tasks.length, left: names } }
}
