import { clipEnd } from '../../base/text.ts'
import type { ShownPlan } from '../../core/view.ts'
import { planDiff, planMarkdown } from './plan-text.ts'
import { nameOfTask } from './tasks.ts'
import type { ChangeWork, TaskRecord } from './work.ts'

const MOST_FILES = 500
// The data together is bounded, and left out if it is too large.
const MOST_REQUEST = 64 * 1024
const MOST_FILES_EACH = 50

/** Returns a change's own fields of `work` in `status --json`. Pure. */
export function changeData({ state, request, context, planning, execution }: ChangeWork): Record<string, unknown> {
  const [name, within = null] = state.split('.')
  const { accepted, versions } = planning
  const plan = versions.find(({ version }) => version === accepted?.version) ?? versions.at(-1)
  const { tasks, fixing } = execution
  const ofPlan = plan !== undefined && execution.version === plan.version ? tasks : []
  return {
    state: name,
    within,
    userInput: clipEnd(request, MOST_REQUEST),
    projectContext: context === null ? null : { file: `outputs/${context.output.file}`, ...context.facts },
    currentPlan:
      plan === undefined
        ? null
        : {
            description: plan.plan.description,
            version: plan.version,
            userFeedback: plan.feedback,
            tasks: ofPlan.map(({ spec }) => spec),
          },
    tasks: tasks.map(taskData),
    changedFiles: [...new Set(tasks.flatMap(({ changed }) => changed))].slice(0, MOST_FILES),
    retryCount: fixing?.attempt ?? 0,
  }
}

/** Returns a task as in `tasks.json`, with its model and result. */
function taskData({ spec, status, why, attempts, who, changed, rounds, ms, tokens, results }: TaskRecord) {
  const last = results.at(-1)
  return {
    ...spec,
    name: nameOfTask(spec),
    done: status === 'COMPLETED',
    status,
    why,
    attempts,
    who,
    changed: changed.slice(0, MOST_FILES_EACH),
    rounds,
    ms,
    tokens,
    last: last === undefined ? null : { status: last.status, exitCode: last.exitCode },
  }
}

/** Returns the versions of the plan for a person. Pure. */
export function shownPlans({ planning: { versions, accepted } }: ChangeWork): readonly ShownPlan[] {
  return versions.map(({ version, author, feedback, sha256, plan }, at) => {
    const before = versions[at - 1]
    return {
      version,
      author,
      feedback,
      sha256,
      text: planMarkdown(plan),
      diff: before === undefined ? null : planDiff(before.plan, plan),
      accepted: accepted?.version === version ? { by: accepted.by, remark: accepted.remark } : null,
    }
  })
}
