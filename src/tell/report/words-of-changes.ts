import { formatCount } from '../words/numbers.ts'
import type { ReportData } from './report-data.ts'
import { capital } from './words.ts'

/** What has changed since the session began: `12 files, +340 −22 lines, 3 commits (report.xml by a gate)`. */
export function changesInWords(data: ReportData, { areSavepointsGone = false } = {}): string {
  const { changes } = data
  const { files, commits, from } = changes
  const unkept = unkeptInWords(data)
  if (from === 'none') return 'changes not checked yet'
  if (files === 0 && commits.count === 0) return unkept ?? 'nothing has changed'
  const by = byGatesInWords(changes)
  const gone = areSavepointsGone ? '; its savepoints were pruned' : ''
  const since = unkept === null ? '' : `; ${unkept}`
  return `${[formatCount(files, 'file'), ...sizeOf(changes)].join(', ')}${by === null ? '' : ` (${by})`}${gone}${since}`
}

/** The same without the number of files, which stands above it; null if there is no more to say. */
export function moreOnChanges(data: ReportData): string | null {
  const { changes } = data
  const more = [...sizeOf(changes), byGatesInWords(changes), unkeptInWords(data)].filter(each => each !== null)
  return more.join(', ') || null
}

function sizeOf({ from, added, removed, commits }: ReportData['changes']): string[] {
  const lines = from === 'rounds' ? [] : [`+${added} −${removed} lines`]
  return commits.count === 0 ? lines : [...lines, formatCount(commits.count, 'commit')]
}

/** Which rounds or steps left something that no savepoint has, and who makes it: `what round 3 left (2 files) is in no savepoint yet`; null if none. */
function unkeptInWords({ changes, outcome, standing }: ReportData): string | null {
  const { unkept, unkeptSteps = 0 } = changes
  const last = unkept.at(-1)
  const rounds = [...new Set(unkept.map(({ round }) => round))]
  const lefts = [
    ...(last === undefined
      ? []
      : [
          `round${rounds.length === 1 ? '' : 's'} ${rounds.join(' and ')} left (${[...unkept.slice(0, -1).map(each => String(each.files)), formatCount(last.files, 'file')].join(' and ')})`,
        ]),
    ...(unkeptSteps === 0 ? [] : [`steps changed (${formatCount(unkeptSteps, 'file')})`]),
  ]
  if (lefts.length === 0) return null
  const which = `what ${lefts.join(' and ')} is in no savepoint`
  if (outcome !== null) return which
  return standing === 'running' ? `${which} yet` : `${which} yet: codemachine resume makes it`
}

const MOST_NAMED = 3

/** Which of the changed files no round has changed, but a gate: `report.xml by a gate`; null if none. */
function byGatesInWords({ byGates }: Pick<ReportData['changes'], 'byGates'>): string | null {
  if (byGates.length === 0) return null
  return `${firstOf(byGates, byGates.length)} by ${byGates.length === 1 ? 'a gate' : 'gates'}`
}

/** Which files are in no commit, beside commits: `not committed: notes.md, draft.md`; null without either. */
export function uncommittedInWords({ uncommitted, commits }: ReportData['changes']): string | null {
  if (commits.count === 0 || uncommitted.count === 0) return null
  return `not committed: ${firstOf(uncommitted.paths, uncommitted.count)}`
}

function firstOf(paths: readonly string[], count: number): string {
  const left = count - MOST_NAMED
  const more = left > 0 ? ` and ${formatCount(left, 'more file')}` : ''
  return `${paths.slice(0, MOST_NAMED).join(', ')}${more}`
}

/** What the last savepoint does not hold, in sentences: `Not looked at, and not kept: node_modules/, .env.`; null if that is nothing. */
export function notKeptInWords(data: ReportData): string | null {
  const unkept = unkeptInWords(data)
  const sentences = [unkept === null ? null : `${capital(unkept)}.`, notLookedAtInWords(data.changes)]
  return sentences.filter(each => each !== null).join(' ') || null
}

/** What is said in the place of the changed files where none is known. */
export function noPathsInWords({ from, unkept, unkeptSteps = 0 }: ReportData['changes']): string {
  if (from === 'none') return 'Changes are not checked yet.'
  const of = unkept.length + unkeptSteps === 0 ? 'No file' : 'In the last savepoint no file'
  return `${of} is different from what it was.`
}

/** Which files are in no savepoint because nobody looks at them: `Not checked and not saved: node_modules/.`; null if none. */
export function notLookedAtInWords({ notLookedAt }: Pick<ReportData['changes'], 'notLookedAt'>): string | null {
  const { paths, count } = notLookedAt
  if (count === 0) return null
  const shown = paths.slice(0, MOST_NOT_LOOKED_AT)
  const more = count > shown.length ? ` and ${count - shown.length} more` : ''
  return `Not checked and not saved: ${shown.join(', ')}${more}.`
}

const MOST_NOT_LOOKED_AT = 12
