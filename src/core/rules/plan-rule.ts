import { isSameJson } from '../../base/json.ts'
import type { EventOf } from '../events/events.ts'
import { type Gate, type GateResult, hasPassed } from '../events/outcome.ts'
import type { Task } from '../shapes/memory.ts'
import {
  countFailure,
  isHeldToAllGates,
  MOST_FAILURES,
  type PlanTask,
  type TaskPlan,
  type TaskVerdict,
} from '../state/plan.ts'

/** Judgement of one task. `detail`: why, a sentence; null: the verdict says it all. */
export type Judgement = Omit<EventOf<'task-judged'>, 'type' | 'round'>

/** Facts for the judgement of tasks. */
interface TaskFacts {
  /** Tasks in `tasks.json` now. */
  tasks: readonly Task[]
  /** The round that ended last. */
  round: number
  /** True if that round completed, so its unfinished tasks have failed. */
  hasWorked: boolean
  /** True if agents may have changed the plan since the last judgement; false: only a person, or by their order. */
  isAfterRound: boolean
  /** Gate results on this work tree. */
  results: readonly Pick<GateResult, 'gate' | 'status'>[]
}

/**
 * Returns tasks marked done that an agent worked on and that are not accepted yet. They get their new phase if it requires
 * more gates. Pure.
 */
export function claimedTasks(plan: TaskPlan, tasks: readonly Task[]): readonly PlanTask[] {
  const claimed = new Map(tasks.filter(({ done }) => done).map(task => [task.id, task]))
  return plan.tasks.flatMap(task => {
    const { phase = null } = claimed.get(task.id) ?? {}
    if (!claimed.has(task.id) || task.done || task.workedIn === 0 || task.parked !== null) return []
    return [isHeldToAllGates(phase) ? { ...task, phase } : task]
  })
}

/**
 * Judges the tasks after a round, in their order. Codemachine owns `done`: it accepts a task only if an agent worked on it
 * and no gate fails. Pure.
 */
export function judgeTasks(plan: TaskPlan, facts: TaskFacts): readonly Judgement[] {
  const { tasks, results, isAfterRound } = facts
  const known = new Map(plan.tasks.map(task => [task.id, task]))
  const judgements = tasks.flatMap(task => {
    const before = known.get(task.id)
    if (before === undefined) return judgeNew(task)
    const standing = results.filter(({ gate }) => countsFor(before, plan, gate))
    return judge(before, task, facts, standing)
  })
  const gone = goneTasks(plan, tasks)
  return [...judgements, ...gone.map(task => say(task, isAfterRound ? 'put-back' : 'removed', null))]
}

/** Returns the tasks that a round removed from the plan, to restore them. Pure. */
export function lostTasks(plan: TaskPlan, tasks: readonly Task[]): readonly Judgement[] {
  return goneTasks(plan, tasks).map(task => say(task, 'put-back', null))
}

function goneTasks(plan: TaskPlan, tasks: readonly Task[]): readonly PlanTask[] {
  const present = new Set(tasks.map(({ id }) => id))
  return plan.tasks.filter(({ id }) => !present.has(id))
}

function judge(
  before: PlanTask,
  now: Task,
  { round, hasWorked }: TaskFacts,
  results: TaskFacts['results'],
): Judgement[] {
  if (before.done) return now.done ? [] : [say(before, 'reopened', null)]
  if (now.done && before.parked !== null) return [say(before, 'refused', `It is parked: ${before.parked}`)]
  if (now.done && before.workedIn === 0) return [notDone(before, round, 'refused', NOBODY)]
  const inTheWay = now.done ? results.find(result => !hasPassed(result.status)) : undefined
  if (inTheWay !== undefined) return [notDone(before, round, 'refused', `The gate "${inTheWay.gate}" does not pass.`)]
  if (now.done) return [say(before, 'done', null)]
  if (before.workedIn !== round || before.failedIn === round || before.parked !== null || !hasWorked) return []
  return [notDone(before, round, 'failed', UNFINISHED)]
}

const NOBODY = 'No agent has finished any work on it.'
const UNFINISHED = 'An agent worked on it, but it does not meet its acceptance criteria yet.'

/** Fields that say what a task demands. */
const ASKS = ['name', 'details', 'acceptanceCriteria', 'phase'] as const

type Written = ReadonlyMap<string, Readonly<Record<string, unknown>>>

/**
 * Returns the tasks whose demands a round changed. Pure.
 * @param before tasks in `tasks.json` before the round; null: not known
 * @param now tasks in it now
 */
export function changedTasks(
  plan: TaskPlan,
  tasks: readonly Task[],
  { before, now }: { before: Written | null; now: Written },
): readonly Judgement[] {
  return withKnown(plan, tasks).flatMap(({ task, known }) => {
    const [was, is] = [before?.get(task.id), now.get(task.id)]
    const others = othersOf(known, task)
    const changed = ASKS.filter(field => {
      if (others.includes(field)) return true
      return was !== undefined && is !== undefined && !isSameJson(was[field], is[field])
    })
    return changed.length === 0 ? [] : [sayNow(task, 'changed', `A round changed its ${changed.join(' and ')}.`)]
  })
}

/** Returns tasks whose name or phase changed while no round worked: a person changed them. Pure. */
export function editedTasks(plan: TaskPlan, tasks: readonly Task[]): readonly Judgement[] {
  return withKnown(plan, tasks).flatMap(({ task, known }) => {
    const others = othersOf(known, task)
    return others.length === 0
      ? []
      : [sayNow(task, 'edited', `A person changed its ${others.join(' and ')}, or had it changed.`)]
  })
}

/** Returns the known tasks, as written now and as known. */
function withKnown({ tasks: all }: TaskPlan, tasks: readonly Task[]): { task: Task; known: PlanTask }[] {
  const byId = new Map(all.map(task => [task.id, task]))
  return tasks.flatMap(task => {
    const known = byId.get(task.id)
    return known === undefined ? [] : [{ task, known }]
  })
}

/** Returns the fields of a task that differ from the known ones. */
function othersOf(known: PlanTask, { name, phase }: Task): (typeof ASKS)[number][] {
  const isOther = { name: known.name !== name, phase: known.phase !== (phase ?? null) }
  return [...(isOther.name ? (['name'] as const) : []), ...(isOther.phase ? (['phase'] as const) : [])]
}

function sayNow({ id, name, phase }: Task, verdict: TaskVerdict, detail: string): Judgement {
  return { task: id, name, phase: phase ?? null, verdict, detail }
}

/** A new task cannot start as done. */
function judgeNew(task: Task): Judgement[] {
  const { id, name, phase = null } = task
  const added = { task: id, name, phase, verdict: 'added', detail: null } as const
  return task.done ? [added, { ...added, verdict: 'refused', detail: NOBODY }] : [added]
}

function notDone(task: PlanTask, round: number, verdict: 'refused' | 'failed', why: string): Judgement {
  const failures = countFailure(task, round)
  return failures < MOST_FAILURES ? say(task, verdict, why) : say(task, 'parked', parkedBecause(failures, why))
}

/** Returns why a task is parked, one or two sentences. */
function parkedBecause(failures: number, why: string): string {
  return `It failed ${failures} times. ${why}`
}

function say({ id, name, phase }: PlanTask, verdict: TaskVerdict, detail: string | null): Judgement {
  return { task: id, name, phase, verdict, detail }
}

/**
 * Returns the required gates of the claimed tasks. Before the test phase, gates that never passed do not count: a half-built
 * project cannot pass them. Pure.
 */
export function gatesForTasks(gates: readonly Gate[], plan: TaskPlan, claimed: readonly PlanTask[]): readonly Gate[] {
  return gates.filter(({ name, required }) => required && claimed.some(task => countsFor(task, plan, name)))
}

function countsFor({ phase, wasMovedFromGates }: PlanTask, { passedGates }: TaskPlan, gate: string): boolean {
  return wasMovedFromGates || isHeldToAllGates(phase) || passedGates.includes(gate)
}
