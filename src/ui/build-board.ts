import type { BuildTask } from '../session/build-state.ts'
import type { SessionState } from '../session/state.ts'
import { taskOf } from '../session/tasks-named.ts'
import type { TaskBoard } from './task-board.ts'

/**
 * The tasks of a session as they are shown: of a build, done is what codemachine has taken for it, whatever the file
 * says, and at work is what agents have been given, else what comes next. Of any other session `board` as it is. Pure.
 */
export function boardNow(
  board: TaskBoard | null,
  state: Pick<SessionState, 'build' | 'agents' | 'running' | 'last'>,
): TaskBoard | null {
  const { build } = state
  if (build === null || (build.tasks.length === 0 && board === null)) return board
  const known = new Map(build.tasks.map(task => [task.id, task]))
  const listed = board === null || board.tasks.length === 0 ? build.tasks : board.tasks
  const tasks = listed.map(task => believed(task, known.get(task.id)))
  return { title: board?.title ?? null, tasks, current: currentOf(tasks, board?.current ?? null, state) }
}

type Task = TaskBoard['tasks'][number]

/**
 * What agents have been given; else what comes next of what nobody has worked on in this round, for the leader looks at
 * what has been made before it says that it is done.
 */
function currentOf(
  tasks: readonly Task[],
  named: string | null,
  { build, agents, running, last }: Pick<SessionState, 'build' | 'agents' | 'running' | 'last'>,
): string | null {
  const round = running?.round ?? last?.round ?? 0
  const worked = new Set(build?.tasks.filter(({ workedIn }) => workedIn > 0 && workedIn === round).map(({ id }) => id))
  const given = new Set(agents.flatMap(agent => agent.tasks.map(id => taskOf(id, tasks)?.id)))
  const open = tasks.filter(({ done, parked }) => !done && parked === undefined)
  const ahead = open.filter(({ id, claimed }) => !claimed && !worked.has(id))
  const current =
    open.find(({ id }) => given.has(id)) ?? ahead.find(({ id }) => id === named) ?? ahead[0] ?? open.at(-1)
  return current?.id ?? null
}

/** @param known null-ish: codemachine has not seen it yet */
function believed(
  { id, name, phase, done }: Pick<Task, 'id' | 'name' | 'phase' | 'done'>,
  known: BuildTask | undefined,
): Task {
  if (known?.done) return { id, name, phase, done: true }
  const task = { id, name, phase, done: false, claimed: done }
  return known === undefined || known.parked === null ? task : { ...task, claimed: false, parked: known.parked }
}
