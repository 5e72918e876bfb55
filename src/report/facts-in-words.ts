import { formatCount } from '../ui/format-count.ts'
import { formatDuration } from '../ui/format-duration.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import type { ReportData } from './report-data.ts'

/** What has changed since the session began: `12 files, +340 −22 lines, 3 commits (report.xml by a gate)`. */
export function changesInWords({ changes }: ReportData, { areSavepointsGone = false } = {}): string {
  const { files, added, removed, commits, from } = changes
  if (files === 0 && commits.count === 0) return 'nothing has changed'
  const lines = from === 'rounds' ? [] : [`+${added} −${removed} lines`]
  const made = commits.count === 0 ? [] : [formatCount(commits.count, 'commit')]
  const by = byGatesInWords(changes)
  const gone = areSavepointsGone ? '; its savepoints were pruned' : ''
  return `${[formatCount(files, 'file'), ...lines, ...made].join(', ')}${by === null ? '' : ` (${by})`}${gone}`
}

const MOST_NAMED = 3

/** Which of the changed files no round has changed, but a gate: `report.xml by a gate`; null if none. */
export function byGatesInWords({ byGates }: Pick<ReportData['changes'], 'byGates'>): string | null {
  if (byGates.length === 0) return null
  const left = byGates.length - MOST_NAMED
  const more = left > 0 ? ` and ${formatCount(left, 'more file')}` : ''
  return `${byGates.slice(0, MOST_NAMED).join(', ')}${more} by ${byGates.length === 1 ? 'a gate' : 'gates'}`
}

/** What it took: `7 rounds, 5 h 12 min, 1.3M tokens`. */
export function effortInWords({ totals }: ReportData): string {
  const again = totals.attempts > totals.rounds ? ` (${totals.attempts} started)` : ''
  const waited = totals.waitedMs < 1000 ? '' : `, ${formatDuration(totals.waitedMs)} of it waiting`
  return `${formatCount(totals.rounds, 'round')}${again}, ${formatDuration(totals.durationMs)}${waited}, ${shortNumber(totals.tokens)} tokens`
}

/** How far the tasks are; null if there are none. */
export function tasksInWords({ tasks, build }: ReportData): string | null {
  const parked = build?.counts.parked ?? 0
  if (tasks === null || tasks.total === 0) return null
  return `${tasks.done} of ${tasks.total} done${parked === 0 ? '' : `, ${parked} parked`}`
}
