import type { TaskMark } from './memory.ts'

/** A good text of `tasks.json` with what codemachine says of some tasks; the same text if it says that already. */
export function withMarks(text: string, marks: readonly TaskMark[]): string {
  const byId = new Map(marks.map(mark => [mark.id, mark]))
  const file = JSON.parse(text.replace(/^\uFEFF/, '')) as { tasks: readonly Readonly<Record<string, unknown>>[] }
  const tasks = file.tasks.map(task => marked(task, byId.get(String(task.id))))
  const there = new Set(file.tasks.map(({ id }) => String(id)))
  for (const { id, lost } of marks) if (lost !== undefined && !there.has(id)) tasks.push({ ...lost, id })
  if (tasks.length === file.tasks.length && tasks.every((task, index) => task === file.tasks[index])) return text
  return `${JSON.stringify({ ...file, tasks }, null, 2)}\n`
}

/** The tasks in a good text of `tasks.json` as they stand there, by their ids. */
export function tasksAsWritten(text: string): Map<string, Readonly<Record<string, unknown>>> {
  const { tasks } = JSON.parse(text.replace(/^\uFEFF/, '')) as { tasks: readonly Readonly<Record<string, unknown>>[] }
  return new Map(tasks.map(task => [String(task.id), task]))
}

function marked(
  task: Readonly<Record<string, unknown>>,
  mark: TaskMark | undefined,
): Readonly<Record<string, unknown>> {
  if (mark === undefined) return task
  const { done = task.done, parked } = mark
  const before = task.parked ?? null
  const after = parked === undefined ? before : parked
  if (task.done === done && before === after) return task
  const { parked: _, ...rest } = task
  return after === null ? { ...rest, done } : { ...rest, done, parked: after }
}
