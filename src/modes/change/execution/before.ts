import { hasPassed } from '../../../core/events/outcome.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { Plan } from '../plan.ts'
import type { ChangeWork, TaskRecord } from '../work.ts'

/** Begins the names of the answers that are lists of tasks. */
export const DECOMPOSITION = 'tasks'

/** How long each command may run before anything is changed, and all of them together, ms. */
const COMMAND_MS = 2 * 60_000
const TOGETHER_MS = 10 * 60_000

/** The plan that is carried out; null: none is accepted. */
export function acceptedPlan({ planning: { accepted, versions } }: ChangeWork): Plan | null {
  return versions.find(({ version }) => version === accepted?.version)?.plan ?? null
}

/**
 * The next command of which it is not known how it comes out before the tasks are worked on: those of the tasks, then
 * those of the plan; null: there is none, or their time is used up. Pure.
 */
export function nextBefore(own: ChangeWork, session: SessionState): string | null {
  const { execution } = own
  if (execution.beforeMs >= TOGETHER_MS) return null
  const runs = [
    ...openRuns(execution.tasks).map(({ spec }) => spec.run ?? ''),
    ...(acceptedPlan(own)?.verification ?? []).map(({ run }) => run),
  ]
  return runs.find(run => run !== '' && statusBefore(own, session, run) === null) ?? null
}

/** How long the next of them may run, ms. */
export function beforeTimeoutMs({ execution }: ChangeWork): number {
  return Math.max(1, Math.min(COMMAND_MS, TOGETHER_MS - execution.beforeMs))
}

/**
 * The verifications whose command passes before anything is done, and that is none of the project. Where a changed plan has
 * actions that are done, what comes before the next one verifies those, so that it may pass. Pure.
 */
export function passedBefore(own: ChangeWork, session: SessionState): readonly TaskRecord[] {
  const known = projectCommands(own, session)
  const { tasks } = own.execution
  const isDone = ({ spec, status }: TaskRecord) => spec.type === 'ACTION' && status === 'COMPLETED'
  const next = tasks.findIndex(record => record.spec.type === 'ACTION' && !isDone(record))
  const judged = tasks.some(isDone) ? (next === -1 ? [] : tasks.slice(next)) : tasks
  return openRuns(judged).filter(
    ({ spec: { run } }) => run !== null && !known.includes(run) && statusBefore(own, session, run) === 'passed',
  )
}

/** How a command came out before the tasks were worked on, also as a gate; null: it was not run. Pure. */
export function statusBefore(
  { execution }: ChangeWork,
  { gates, before }: SessionState,
  run: string,
): 'passed' | 'failed' | 'unknown' | null {
  const names = gates.filter(gate => gate.run === run).map(({ name }) => name)
  const ofGate = before.find(({ gate }) => names.includes(gate))
  if (ofGate !== undefined) return hasPassed(ofGate.status) ? 'passed' : statusOf(ofGate.status)
  return execution.before.find(each => each.run === run)?.status ?? null
}

/** What is known of a command that came out so. */
export function statusOf(status: string): 'passed' | 'failed' | 'unknown' {
  return status === 'passed' || status === 'failed' ? status : 'unknown'
}

/** The commands that are the project's or a person's, and so may pass at any time: those that were found, gates, and those of a plan that a person accepted. */
export function projectCommands(own: ChangeWork, { gates }: SessionState): readonly string[] {
  const { context, planning } = own
  const found = (context?.facts.commands ?? []).map(({ run }) => run)
  const accepted = planning.accepted?.by === 'person' ? (acceptedPlan(own)?.verification ?? []) : []
  return [...new Set([...found, ...gates.map(({ run }) => run), ...accepted.map(({ run }) => run)])]
}

function openRuns(tasks: readonly TaskRecord[]): readonly TaskRecord[] {
  return tasks.filter(({ spec, status }) => spec.run !== null && status !== 'COMPLETED')
}
