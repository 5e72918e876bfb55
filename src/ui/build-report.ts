import type { BuildState, BuildTask } from '../session/build-state.ts'
import type { SessionState } from '../session/state.ts'
import { isPlanShown } from './words-for-build.ts'

/** How far a build is. Times are ISO 8601 in UTC. */
export interface BuildReport {
  plan: BuildState['plan']
  /** Whether it is held so that the person looks at its plan. */
  waitsForPerson: boolean
  /** As codemachine believes them to stand. */
  tasks: readonly BuildTaskReport[]
  /** Those that work because they were given a task. */
  agents: readonly { instance: string; agent: string; tasks: readonly string[]; request: string; since: string }[]
}

type BuildTaskReport = Pick<BuildTask, 'id' | 'name' | 'phase' | 'done' | 'failures' | 'parked'>

/** That of a session, null if it is no build; `isRunning`: whether somebody runs it. Pure. */
export function buildReport(state: SessionState, isRunning: boolean): BuildReport | null {
  const { build, agents } = state
  if (build === null) return null
  return {
    plan: build.plan,
    waitsForPerson: isRunning && isPlanShown(state),
    tasks: build.tasks.map(({ id, name, phase, done, failures, parked }) => ({
      id,
      name,
      phase,
      done,
      failures,
      parked,
    })),
    agents: isRunning
      ? agents.map(({ instance, agent, tasks, request, since }) => ({
          instance,
          agent,
          tasks,
          request,
          since: new Date(since).toISOString(),
        }))
      : [],
  }
}
