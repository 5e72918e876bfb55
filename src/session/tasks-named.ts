import type { BuildTask } from './build-state.ts'

/** A task of the plan that a request is about; `id`: as it was named, `T3.1` if only a part of it is meant. */
export interface NamedTask {
  id: string
  task: BuildTask
}

/** The most that one request may be about. */
const MOST_NAMED = 10

/**
 * The tasks of the plan that a request says at its beginning it is about, each id once: those before the first colon of
 * its first line (`T3: …`, `T3, T4.1: …`), or its first word where there is no colon. What is named later is only
 * mentioned. A subtask counts for its task.
 */
export function tasksNamed(request: string, tasks: readonly BuildTask[]): NamedTask[] {
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
export function taskOf<T extends Pick<BuildTask, 'id'>>(id: string, tasks: readonly T[]): T | null {
  const task = tasks.find(each => each.id === id)
  if (task !== undefined) return task
  const dot = id.lastIndexOf('.')
  return dot === -1 ? null : taskOf(id.slice(0, dot), tasks)
}
