import type { SessionReport } from './status-report.ts'
import type { TaskBoard } from './task-board.ts'

/** How far the tasks of a board are, null if there are none; `isRunning`: whether somebody works on one. Pure. */
export function tasksOfBoard({ tasks, current }: TaskBoard, isRunning: boolean): SessionReport['tasks'] {
  if (tasks.length === 0) return null
  const at = isRunning ? tasks.find(({ id }) => id === current) : undefined
  return {
    done: tasks.filter(task => task.done).length,
    total: tasks.length,
    current: at === undefined ? null : { id: at.id, name: at.name, phase: at.phase },
  }
}
