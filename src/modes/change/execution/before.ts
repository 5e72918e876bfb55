import { hasPassed } from '../../../core/events/outcome.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { Plan } from '../plan.ts'
import type { ChangeWork, TaskRecord } from '../work.ts'

/** Prefix of answer names for lists of tasks. */
export const DECOMPOSITION = 'tasks'

/** How long each command, and all together, may run before anything is changed, in ms. */
const COMMAND_MS = 2 * 60_000
const TOGETHER_MS = 10 * 60_000

/** Returns the accepted plan; null: none. */
export function acceptedPlan({ planning: { accepted, versions } }: ChangeWork): Plan | null {
  return versions.find(({ version }) => version === accepted?.version)?.plan ?? null
}

/**
 * Returns the next command without a known result from before the tasks: those of the tasks, then those of the plan. Null:
 * none, or their time is used up. Pure.
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

/** Returns how long the next one may run, in ms. */
export function beforeTimeoutMs({ execution }: ChangeWork): number {
  return Math.max(1, Math.min(COMMAND_MS, TOGETHER_MS - execution.beforeMs))
}

/**
 * Returns the verifications whose command already passes before the work, and is not the project's. After a plan change, the
 * one before the next action verifies finished actions, so it may pass. Pure.
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

/** Returns a command's result from before the tasks, also as a gate; null: it did not run. Pure. */
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

/** Converts a command's result. */
export function statusOf(status: string): 'passed' | 'failed' | 'unknown' {
  return status === 'passed' || status === 'failed' ? status : 'unknown'
}

/** Returns commands that may pass at any time: the project's own, gates, and those of a plan that a person accepted. */
export function projectCommands(own: ChangeWork, { gates }: SessionState): readonly string[] {
  const { context, planning } = own
  const found = (context?.facts.commands ?? []).map(({ run }) => run)
  const accepted = planning.accepted?.by === 'person' ? (acceptedPlan(own)?.verification ?? []) : []
  return [...new Set([...found, ...gates.map(({ run }) => run), ...accepted.map(({ run }) => run)])]
}

function openRuns(tasks: readonly TaskRecord[]): readonly TaskRecord[] {
  return tasks.filter(({ spec, status }) => spec.run !== null && status !== 'COMPLETED')
}
