import { type BuildTask, MOST_FAILURES } from './build-state.ts'
import type { AgentTask } from './run-agent-tool.ts'
import type { SessionLog } from './session-log.ts'
import { type NamedTask, tasksNamed } from './tasks-named.ts'

/**
 * Why an agent is not to be given the tasks that a request names, a sentence for whoever asked; null if it may be. A task
 * that has failed too often is parked with it.
 */
export function refuseTasks({ agent, task: request }: AgentTask, log: SessionLog): string | null {
  const { build, running } = log.state
  const refused = refusalOf(tasksNamed(request, build?.tasks ?? []), agent)
  if (refused === null) return null
  const { id, name, phase } = refused.task
  const round = running?.round ?? 0
  if (refused.parked !== null) {
    log.emit({ type: 'task-judged', round, task: id, name, phase, verdict: 'parked', detail: refused.parked })
  }
  return refused.problem
}

/** Why nobody is to work on a task; `parked`: why nobody will from now on, null if that is known already. */
interface TaskRefusal {
  task: BuildTask
  problem: string
  parked: string | null
}

/** The first of these tasks that this agent is not to be given: given it again in a round, it did not do it the time before. */
function refusalOf(tasks: readonly NamedTask[], agent: string): TaskRefusal | null {
  for (const { id, task } of tasks) {
    const known = task.parked === null ? null : `${task.id} is parked, and nobody works on it any more: ${task.parked}`
    if (known !== null) return { task, problem: `${known} ${GO_ON}`, parked: null }
    // The parts of a task are many, and none of them is the whole.
    const isAgain = id === task.id && (task.givenTo[agent] ?? 0) > 0
    if (task.done || !isAgain || task.failures + 1 < MOST_FAILURES) continue
    const parked = `It was worked on ${MOST_FAILURES} times and is not done; ${agent} was to try once more.`
    return { task, problem: `${task.id} is parked now: it failed ${MOST_FAILURES} times. ${GO_ON}`, parked }
  }
  return null
}

const GO_ON = 'Go on with the others.'
