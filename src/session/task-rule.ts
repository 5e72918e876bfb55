import { isDeepStrictEqual } from 'node:util'
import type { Task } from '../workspace/memory.ts'
import { type BuildState, type BuildTask, MOST_FAILURES, type TaskVerdict } from './build-state.ts'
import { type Gate, type GateResult, hasPassed } from './gate.ts'

/** What is made of one task of the plan. `detail`: why, a sentence. */
export interface Judgement {
  task: string
  name: string
  phase: string | null
  verdict: TaskVerdict
  detail: string | null
}

/** What a judgement of tasks goes by. */
export interface TaskFacts {
  /** What `tasks.json` says now. */
  tasks: readonly Task[]
  /** The round that has ended. */
  round: number
  /** Whether that came to its end, so that what it worked on and is not done has failed. */
  hasWorked: boolean
  /** Whether agents may have changed the plan since the tasks were judged last; else a person has, or had it changed. */
  isAfterRound: boolean
  /** What the gates came to on this work tree. */
  results: readonly Pick<GateResult, 'gate' | 'status'>[]
}

/** The tasks that are said to be done, on which an agent has worked, and that are not taken for done yet. Pure. */
export function claimedTasks(build: BuildState, tasks: readonly Task[]): readonly BuildTask[] {
  const claimed = new Set(tasks.filter(({ done }) => done).map(({ id }) => id))
  return build.tasks.filter(
    ({ id, done, workedIn, parked }) => claimed.has(id) && !done && workedIn > 0 && parked === null,
  )
}

/**
 * What codemachine makes of the tasks after a round, in their order: it owns `done`, and takes a task for done only if an
 * agent has worked on it and no gate stands in the way. Pure.
 */
export function judgeTasks(build: BuildState, facts: TaskFacts): readonly Judgement[] {
  const { tasks, results, isAfterRound } = facts
  const known = new Map(build.tasks.map(task => [task.id, task]))
  const present = new Set(tasks.map(({ id }) => id))
  const removed = build.tasks.filter(({ id }) => !present.has(id))
  const judgements = tasks.flatMap(task => {
    const before = known.get(task.id)
    if (before === undefined) return judgeNew(task)
    const standing = results.filter(({ gate }) => countsFor(before, build, gate))
    return judge(before, task, facts, standing)
  })
  return [...judgements, ...removed.map(task => say(task, isAfterRound ? 'put-back' : 'removed', null))]
}

function judge(
  before: BuildTask,
  now: Task,
  { round, hasWorked }: TaskFacts,
  results: TaskFacts['results'],
): Judgement[] {
  if (before.done) return now.done ? [] : [say(before, 'reopened', null)]
  if (now.done && before.parked !== null) return [say(before, 'refused', `It is parked: ${before.parked}`)]
  if (now.done && before.workedIn === 0) return [notDone(before, 'refused', NOBODY)]
  const inTheWay = now.done ? results.find(result => !hasPassed(result.status)) : undefined
  if (inTheWay !== undefined) return [notDone(before, 'refused', `The gate "${inTheWay.gate}" does not pass.`)]
  if (now.done) return [say(before, 'done', null)]
  if (before.workedIn !== round || before.parked !== null || !hasWorked) return []
  return [notDone(before, 'failed', UNFINISHED)]
}

const NOBODY = 'No agent has come to the end of any work on it.'
const UNFINISHED = 'It was worked on, and does not meet its acceptance criteria yet.'

/** What of a task says what is to be done. */
const ASKS = ['name', 'details', 'acceptanceCriteria', 'phase'] as const

type Written = ReadonlyMap<string, Readonly<Record<string, unknown>>>

/** The tasks of which a round changed what they ask for, as `tasks.json` had them before and has them now. Pure. */
export function changedTasks({ tasks }: BuildState, before: Written, now: Written): readonly Judgement[] {
  return tasks.flatMap(task => {
    const [was, is] = [before.get(task.id), now.get(task.id)]
    if (was === undefined || is === undefined) return []
    const changed = ASKS.filter(field => !isDeepStrictEqual(was[field], is[field]))
    return changed.length === 0 ? [] : [say(task, 'changed', `A round changed its ${changed.join(' and ')}.`)]
  })
}

/** A task that nobody planned is not done by being written down. */
function judgeNew(task: Task): Judgement[] {
  const { id, name, phase = null } = task
  const added = { task: id, name, phase, verdict: 'added', detail: null } as const
  return task.done ? [added, { ...added, verdict: 'refused', detail: NOBODY }] : [added]
}

function notDone(task: BuildTask, verdict: 'refused' | 'failed', why: string): Judgement {
  if (task.failures + 1 < MOST_FAILURES) return say(task, verdict, why)
  return say(task, 'parked', parkedBecause(task.failures + 1, why))
}

/** Why a task is parked, a sentence or two. */
function parkedBecause(failures: number, why: string): string {
  return `It failed ${failures} times. ${why}`
}

function say({ id, name, phase }: BuildTask, verdict: TaskVerdict, detail: string | null): Judgement {
  return { task: id, name, phase, verdict, detail }
}

/**
 * The gates that a task which is said to be done has to pass: those that are required. One that has never passed yet says
 * nothing while a project is only being planned and built: it holds up what is to test and to run it. Pure.
 */
export function gatesForTasks(
  gates: readonly Gate[],
  build: BuildState,
  claimed: readonly BuildTask[],
): readonly Gate[] {
  return gates.filter(({ name, required }) => required && claimed.some(task => countsFor(task, build, name)))
}

function countsFor({ phase }: BuildTask, { passedGates }: BuildState, gate: string): boolean {
  return phase === 'Testing' || phase === 'Runtime' || passedGates.includes(gate)
}
