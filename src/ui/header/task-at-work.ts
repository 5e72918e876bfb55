import type { TaskBoard } from '../task-board.ts'

/** How far the tasks of a session are. */
export interface TaskAtWork {
  /** The one at work; null if all are done. */
  task: TaskBoard['tasks'][number] | null
  /** Which of how many that is: `T2/T15`, where the ids say it, else `2/15`; `15/15` if all are done. */
  place: string
  /** The same in short: `T2/15`. */
  shortPlace: string
  done: number
  total: number
}

/** The task that is at work, and its place among all; null if there are none. */
export function taskAtWork({ tasks, current }: TaskBoard): TaskAtWork | null {
  const total = tasks.length
  const last = tasks.at(-1)
  if (last === undefined) return null
  const done = tasks.filter(task => task.done).length
  const at = tasks.findIndex(({ id }) => id === current)
  const task = tasks[at]
  if (task === undefined) return { task: null, place: `${done}/${total}`, shortPlace: `${done}/${total}`, done, total }
  const isShort = COUNTING_ID.test(task.id) && COUNTING_ID.test(last.id)
  return {
    task,
    place: isShort ? `${task.id}/${last.id}` : `${at + 1}/${total}`,
    shortPlace: isShort ? `${task.id}/${total}` : `${at + 1}/${total}`,
    done,
    total,
  }
}

/** Such as `T2`, `7` or `T2.1`: an id that counts, and takes little room. */
const COUNTING_ID = /^[A-Za-z]{0,3}\d[\d.]{0,4}$/
