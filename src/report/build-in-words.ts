import { formatCount } from '../ui/format-count.ts'
import { formatDuration } from '../ui/format-duration.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import type { ReportAgent, ReportBuild, ReportTask } from './build-data.ts'

/** What comes before the words of a summary. */
export const WHOSE_SUMMARY = 'As the agent that sums up says: a claim, and no proof.'

/** How a task stands: `done`, `parked: …`, `open, failed 2 times`. */
export function taskInWords({ state, reason, failures }: ReportTask): string {
  if (state === 'parked') return `parked: ${reason ?? ''}`
  const times = failures === 0 ? '' : `, after ${formatCount(failures, 'failure')}`
  return state === 'done' ? `done${times}` : `not done${times}`
}

/** How often an agent worked, and how that ended: `3 times, 1 failed`. */
export function instancesInWords({ instances, failed, terminated }: ReportAgent): string {
  const ends = [
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(terminated === 0 ? [] : [`${terminated} broken off`]),
  ]
  return [formatCount(instances, 'time'), ...ends].join(', ')
}

/** Who worked in a build, on one line; null if nobody did. */
export function agentsInWords({ agents }: ReportBuild): string | null {
  if (agents.length === 0) return null
  return agents
    .map(
      each =>
        `${each.agent} ${each.instances}× (${formatDuration(each.durationMs)}, ${shortNumber(each.tokens)} tokens)`,
    )
    .join(', ')
}

/** How many tasks the table of a report does not have; null if it has all. */
export function tasksLeftOut({ tasks, counts }: ReportBuild): string | null {
  const left = counts.tasks - tasks.length
  return left === 0 ? null : `… and ${left} more ${left === 1 ? 'task' : 'tasks'}`
}
