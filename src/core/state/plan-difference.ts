import { isSameJson } from '../../base/json.ts'
import type { EventOf } from '../events/events.ts'

/** Change of one task between two versions of a plan. */
export type TaskChange = NonNullable<EventOf<'replanned'>['tasks']>['changes'][number]

/** Tasks in a `tasks.json`, by id, in their order. */
export type RawTasks = ReadonlyMap<string, Readonly<Record<string, unknown>>>

/** Fields that codemachine writes itself, or that are compared separately. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['id', 'name', 'done', 'parked'])

/**
 * Returns the differences of two plans, in the later plan's order; removed tasks come last. File formatting and field order
 * do not matter. Pure.
 */
export function compareTasks(before: RawTasks, after: RawTasks): TaskChange[] {
  const moved = movedTasks(before, after)
  const changes: TaskChange[] = []
  let behind: string | null = null
  for (const [id, task] of after) {
    const old = before.get(id)
    const change =
      old === undefined ? added(id, task) : changed({ id, old, task, behind: moved.has(id) ? behind : undefined })
    if (change !== null) changes.push(change)
    behind = id
  }
  for (const [id, task] of before) if (!after.has(id)) changes.push({ id, name: nameOf(task), how: ['removed'] })
  return changes
}

/** Returns true if the plans differ only in fields that codemachine writes: done, or parked. Pure. */
export function isSamePlan(before: RawTasks, after: RawTasks): boolean {
  return compareTasks(before, after).every(({ how }) => how.every(each => each === 'done' || each === 'reopened'))
}

function added(id: string, task: RawTask): TaskChange {
  return { id, name: nameOf(task), how: task.done === true ? ['added', 'done'] : ['added'] }
}

/** @param behind the task before it now, null: none; undefined: it did not move */
function changed({ id, old, task, behind }: Comparison): TaskChange | null {
  const [was, name] = [nameOf(old), nameOf(task)]
  const fields = fieldsChanged(old, task)
  const how: TaskChange['how'][number][] = [
    ...(was === name ? [] : (['renamed'] as const)),
    ...(fields.length === 0 ? [] : (['rewritten'] as const)),
    ...(behind === undefined ? [] : (['moved'] as const)),
    ...(old.done === task.done ? [] : [task.done === true ? ('done' as const) : ('reopened' as const)]),
  ]
  if (how.length === 0) return null
  return {
    id,
    name,
    how,
    ...(was === name ? {} : { was }),
    ...(fields.length === 0 ? {} : { fields }),
    ...(behind === undefined ? {} : { behind }),
  }
}

interface Comparison {
  id: string
  old: RawTask
  task: RawTask
  behind: string | null | undefined
}

type RawTask = Readonly<Record<string, unknown>>

function nameOf({ name }: RawTask): string {
  return typeof name === 'string' ? name : ''
}

function fieldsChanged(old: RawTask, task: RawTask): string[] {
  const names = new Set([...Object.keys(old), ...Object.keys(task)])
  return [...names].filter(field => !OWN_FIELDS.has(field) && !isSameJson(old[field], task[field])).sort()
}

/** Returns the smallest set of common tasks whose move explains the new order. */
function movedTasks(before: RawTasks, after: RawTasks): ReadonlySet<string> {
  const places = new Map([...before.keys()].map((id, place) => [id, place]))
  const common = [...after.keys()].filter(id => places.has(id))
  const kept = longestRise(common.map(id => places.get(id) ?? 0))
  return new Set(common.filter((_, index) => !kept.has(index)))
}

/** Returns the indexes of a longest increasing subsequence of distinct numbers, in n log n steps. */
function longestRise(numbers: readonly number[]): ReadonlySet<number> {
  /** Index of the lowest number that can end a subsequence of this length. */
  const ends: number[] = []
  const previous: (number | undefined)[] = []
  for (const [index, number] of numbers.entries()) {
    let [from, to] = [0, ends.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((numbers[ends[middle] ?? 0] ?? 0) < number) from = middle + 1
      else to = middle
    }
    previous[index] = ends[from - 1]
    ends[from] = index
  }
  const rise = new Set<number>()
  for (let at = ends.at(-1); at !== undefined; at = previous[at]) rise.add(at)
  return rise
}
