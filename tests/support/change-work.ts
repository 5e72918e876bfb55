import { changeKind } from '../../src/modes/change/change.ts'
import { NO_EXECUTION, newRecord } from '../../src/modes/change/execution/queue.ts'
import { hashOfPlan, type Plan } from '../../src/modes/change/plan.ts'
import type { TaskSpec } from '../../src/modes/change/tasks.ts'
import type { ChangeWork, ExecutionWork, TaskRecord } from '../../src/modes/change/work.ts'
import { created } from './session-events.ts'

/** A task, of which all that is not said is as little as it can be. */
export function task(id: string, said: Partial<TaskSpec> = {}): TaskSpec {
  return { id, type: 'ACTION', description: `Do ${id}.`, inputs: {}, outputs: {}, files: [], run: null, ...said }
}

/** A task that runs this. */
export function check(id: string, run: string, said: Partial<TaskSpec> = {}): TaskSpec {
  return task(id, { type: 'VERIFICATION', description: `Check with ${run}.`, run, ...said })
}

/** What is known of a task. */
export function record(spec: TaskSpec, known: Partial<TaskRecord> = {}): TaskRecord {
  return { ...newRecord(spec), ...known }
}

export const PLAN: Plan = {
  description: 'Limit the rate of the API.',
  files: [{ path: 'src/api.js', change: 'counts requests' }],
  risks: [],
  verification: [{ run: 'npm test', why: 'the tests' }],
  questions: [],
}

/** A change whose plan a person has accepted, with these tasks. */
export function changeWith(execution: Partial<ExecutionWork>, more: Partial<ChangeWork> = {}): ChangeWork {
  const work = changeKind.first({
    ...created(),
    template: 'change',
    goal: 'Add rate limiting to the API.',
    options: {},
  })
  const version = {
    version: 1,
    author: 'planner',
    feedback: null,
    plan: PLAN,
    sha256: hashOfPlan(PLAN),
    files: {},
  } as const
  const accepted = { version: 1, sha256: version.sha256, by: 'person', remark: null, hasGates: true } as const
  return {
    ...work,
    planning: { ...work.planning, versions: [version], accepted },
    execution: { ...NO_EXECUTION, version: 1, ...execution },
    ...more,
  }
}
