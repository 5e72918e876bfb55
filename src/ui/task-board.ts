interface BoardTask {
  id: string
  name: string
  phase: string | null
  done: boolean
  /** Of a build: whether it is said to be done, and codemachine has not taken it for that yet. */
  claimed?: boolean
  /** Of a build: why nobody works on it any more. */
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
