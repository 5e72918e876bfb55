import { clipEnd } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { MemorySnapshot } from '../shapes/memory.ts'

/** Codemachine's verdicts on a task, explained in docs/reference/events.md. */
export type TaskVerdict = EventOf<'task-judged'>['verdict']

/** The id of a person's decision to accept a plan. */
export const PLAN_DECISION = 'plan'

/** Its choices: run the plan, change it as the text says, end the session. `unpause` and `replan` make the first two. */
export const PLAN_CHOICES = { accept: 'accept', change: 'change', stop: 'stop' } as const

/** A task of a plan, as judged by codemachine. */
export interface PlanTask {
  id: string
  name: string
  phase: string | null
  /** True if a round moved it out of a phase that requires all gates; it must still pass them. */
  wasMovedFromGates: boolean
  done: boolean
  /** Number of failed attempts. */
  failures: number
  /** The last round that failed on it; 0: none. */
  failedIn: number
  /** Reason why it is parked; null: it is not. */
  parked: string | null
  /** The last round in which an agent completed work on it; 0: none. */
  workedIn: number
  /** Completed attempts of each agent in this round. */
  givenTo: Readonly<Record<string, number>>
}

/** The plan of a session whose template has one (`TemplateKind.hasPlan`); part of the fold of its journal. */
export interface TaskPlan {
  /** True if a person must accept the plan first. */
  asksPerson: boolean
  state: 'none' | 'refused' | 'ready'
  /** True once the plan may run: a person accepted it, or nobody has to. */
  isLetGo: boolean
  /** Why a round's plan was unreadable and the old one restored; null: it was readable. */
  broken: string | null
  tasks: readonly PlanTask[]
  /** True if the plan or its tasks were judged since the last round that may have changed them. */
  judged: boolean
  /** True if a round that may have changed the plan was cut off, and none has begun since. */
  isCutOff: boolean
  /** Gates that have ever passed. */
  passedGates: readonly string[]
}

/** An agent that works on a task from another agent or a person. */
export interface AgentAtWork {
  /** `frontend-dev-20261122T004530123`. */
  instance: string
  agent: string
  /** Ids of its tasks as named: `T3.1` for a part of `T3`. */
  tasks: readonly string[]
  /** Its request in one line. */
  request: string
  /** Unix time, ms. */
  since: number
  /** Its threads that reported tokens; empty in old journals that did not record the owner. */
  threads: readonly string[]
}

/** How an agent ended. */
export type AgentStatus = EventOf<'agent-ended'>['status']

/** An agent that ended in the running round; `tokens`: of its threads, null: none reported. */
export interface EndedAgent extends Pick<AgentAtWork, 'instance' | 'agent' | 'tasks' | 'request' | 'since'> {
  status: AgentStatus
  durationMs: number
  tokens: number | null
}

/** Returns true if tasks of this phase must pass all gates, even those that never passed. Pure. */
export function isHeldToAllGates(phase: string | null): boolean {
  return phase === 'Testing' || phase === 'Runtime'
}

/** Failures after which a task is parked. */
export const MOST_FAILURES = 5

/** Returns the failures of a task after a failed round; two judgements of one round count once. Pure. */
export function countFailure({ failures, failedIn }: PlanTask, round: number): number {
  return failedIn === round ? failures : failures + 1
}

/** Answer name of a plan's files; refusals are journaled and counted under it. */
export const PLAN_ANSWER = 'plan'

/** Returns the plan before round 1. */
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

/** A task that a request names; `id`: as named, `T3.1` for a part. */
export interface NamedTask {
  id: string
  task: PlanTask
}

/** Limit of tasks in one request. */
const MOST_NAMED = 10

/**
 * Returns the tasks that a request names at its start, each once: before the first colon of line 1 (`T3: …`, `T3, T4.1: …`),
 * or its first word if there is no colon. Later names do not count. A subtask counts for its task.
 */
export function tasksNamed(request: string, tasks: readonly PlanTask[]): NamedTask[] {
  const [line = ''] = request.trimStart().split('\n', 1)
  const colon = line.indexOf(':')
  const head = colon === -1 ? (line.split(/\s/, 1)[0] ?? '') : line.slice(0, colon)
  const words = head.split(/[\s,;&+/*_`[\]()]+|\band\b/).map(word => word.replace(/\.+$/, ''))
  const ids = new Set(words.filter(word => word !== ''))
  const named = [...ids].map(id => ({ id, task: taskOf(id, tasks) }))
  // A sentence that contains an id is not a list of ids.
  if (named.length > MOST_NAMED || named.some(({ task }) => task === null)) return []
  return named.flatMap(({ id, task }) => (task === null ? [] : [{ id, task }]))
}

/** Returns the task of an id, or of the part of a task; null: none. */
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
  /** In a plan: true if marked done, but not accepted yet. */
  claimed?: boolean
  /** In a plan: why nobody works on it any more. */
  parked?: string
}

/** The session's current MAIN.md and tasks.json. */
export interface TaskBoard {
  /** `short_title` of MAIN.md. */
  title: string | null
  tasks: readonly BoardTask[]
  /** Id of the current task: the first in `## In progress` of MAIN.md that is a task, else the first not done. */
  current: string | null
}

const MOST_LEFT = 20
const NAME_CHARACTERS = 200

/** Returns the `tasks` field of `round-ended` from the memory files; empty: no tasks. Pure. */
export function countTasks({ tasks }: Pick<MemorySnapshot, 'tasks'>): Pick<EventOf<'round-ended'>, 'tasks'> {
  if (tasks.length === 0) return {}
  const left = tasks.filter(({ done }) => !done)
  const names = left.slice(0, MOST_LEFT).map(({ id, name }) => clipEnd(`${id} ${name}`, NAME_CHARACTERS))
  return { tasks: { done: tasks.length - left.length, total: tasks.length, left: names } }
}
