import type { RecordedOf } from '../../session/events.ts'
import type { Finding } from '../../session/review.ts'
import { cutLine, wrapLine } from '../cells.ts'
import { isRepeated, placeOf, reviewEndInWords, TONE_OF_SEVERITY } from '../describe-review.ts'
import { formatCount } from '../format-count.ts'
import { oneLine, safeText } from '../safe-text.ts'
import type { BlockOptions } from './block-options.ts'
import { clipText } from './clip-text.ts'
import { roleOf } from './described-lines.ts'
import { firstRows } from './first-rows.ts'
import { underPrefix } from './under-prefix.ts'

type ReviewEnded = RecordedOf<'review-ended'>

const TEXT_CHARS = 2000
const ALL_CHARS = 72 * 1024
const SUMMARY_ROWS = 6
const MOST_FINDINGS = 10

/** What a review came to: its verdict, its summary, and each finding with its place and its mend. */
export function reviewLines(event: ReviewEnded, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { answer } = event
  const isGood = answer?.verdict === 'agreed'
  const sign = theme.symbols ? (isGood ? '✔ ' : '✘ ') : ''
  const head = wrapLine(theme.paint(isGood ? 'good' : 'warning', `${sign}${reviewEndInWords(event)}`), columns)
  if (answer === null) return head
  const shown = full ? answer.findings : answer.findings.slice(0, MOST_FINDINGS)
  const left = answer.findings.length - shown.length
  return [
    ...head,
    ...underPrefix({ first: '  ', columns }, inner => [
      ...summaryLines(answer.summary, { ...options, columns: inner }),
      ...shown.flatMap(finding => findingLines(finding, isRepeated(finding, event), { ...options, columns: inner })),
      ...(left > 0 ? [theme.paint('dim', cutLine(`… and ${formatCount(left, 'more finding')}`, inner))] : []),
    ]),
  ]
}

function summaryLines(summary: string, { columns, full }: BlockOptions): string[] {
  const text = safeText(clipText(summary.trim(), full ? ALL_CHARS : TEXT_CHARS))
  const rows = text === '' ? [] : text.split('\n').flatMap(line => wrapLine(line, columns))
  return firstRows(rows, full ? rows.length : SUMMARY_ROWS, columns)
}

function findingLines(finding: Finding, isAgain: boolean, { columns, theme, full }: BlockOptions): string[] {
  const { severity, problem, mend } = finding
  const most = full ? ALL_CHARS : TEXT_CHARS
  const place = placeOf(finding)
  const head = [
    theme.paint(roleOf(TONE_OF_SEVERITY[severity]), severity),
    ...(place === '' ? [] : [theme.paint('strong', place)]),
    ...(isAgain ? [theme.paint('warning', 'found before: left to you')] : []),
  ]
  return [
    ...wrapLine(`${theme.symbols ? theme.paint('accent', '▸ ') : ''}${head.join('  ')}`, columns),
    ...underPrefix({ first: '  ', columns }, inner => [
      ...wrapLine(oneLine(problem, most), inner),
      ...(mend.trim() === '' ? [] : wrapLine(theme.paint('dim', `mend: ${oneLine(mend, most)}`), inner)),
    ]),
  ]
}
