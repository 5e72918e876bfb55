import type { RecordedOf } from '../../../core/events/events.ts'
import type { Finding } from '../../../core/rules/review.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { cutLine, wrapLine } from '../../../tell/words/cells.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { gateInWords, isRepeated, placeOf, reviewEndInWords, SEVERITY_TONES } from '../../../tell/words/proof.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import { outputTail } from './item-lines.ts'
import {
  type BlockOptions,
  behindBar,
  clipText,
  firstRows,
  type LineOptions,
  MOST_TEXT,
  roleOf,
  underPrefix,
} from './layout.ts'

type GateEnded = RecordedOf<'gate-ended'>

const OUTPUT_LINES = 12

const SIGNS: Readonly<Record<GateEnded['status'], string>> = {
  passed: '✔ ',
  flaky: '! ',
  failed: '✘ ',
  'timed-out': '✘ ',
  'not-started': '✘ ',
  'broken-off': '– ',
}

/**
 * A gate that has run: its name, end and time on one line, remarks on how it ended below, and the last lines of its output
 * if it did not pass; in full all of the output that is kept.
 */
export function gateLines(event: GateEnded, state: SessionState, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { name, end, time, remarks, notes, isOutputShown, tone } = gateInWords(event, state)
  const paint = (text: string) => theme.paint(roleOf(tone), text)
  const ending = [...(theme.symbols ? endBesideSign(event, end) : [end]), time].join(', ')
  const line = [ending, ...remarks].join('; ')
  const sign = theme.symbols ? paint(SIGNS[event.status]) : ''
  const head = `${sign}${theme.paint('strong', safeText(name))}${paint(`  ${safeText(line)}`)}`
  return [
    ...wrapLine(head, columns),
    ...underPrefix({ first: '  ', columns }, inner => notes.flatMap(note => wrapLine(paint(safeText(note)), inner))),
    ...(isOutputShown || full ? outputTail(event.output, OUTPUT_LINES, options) : []),
  ]
}

/** The part of the ending that the sign does not say already. */
function endBesideSign({ status, exitCode }: GateEnded, end: string): string[] {
  if (status === 'passed') return []
  return [status === 'failed' && exitCode !== null ? `exit ${exitCode}` : end]
}

type ReviewEnded = RecordedOf<'review-ended'>

const TEXT_CHARS = 2000
const SUMMARY_ROWS = 6
const MOST_FINDINGS = 10

/** The end of a review: its verdict, its summary, and each finding with its place and how to mend it. */
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
  const text = safeText(clipText(summary.trim(), full ? MOST_TEXT : TEXT_CHARS))
  const rows = text === '' ? [] : text.split('\n').flatMap(line => wrapLine(line, columns))
  return firstRows(rows, full ? rows.length : SUMMARY_ROWS, columns)
}

function findingLines(finding: Finding, isRepeat: boolean, { columns, theme, full }: BlockOptions): string[] {
  const { severity, problem, mend } = finding
  const most = full ? MOST_TEXT : TEXT_CHARS
  const place = placeOf(finding)
  const head = [
    theme.paint(roleOf(SEVERITY_TONES[severity]), severity),
    ...(place === '' ? [] : [theme.paint('strong', place)]),
    ...(isRepeat ? [theme.paint('warning', 'found again: you decide')] : []),
  ]
  return [
    ...wrapLine(`${theme.symbols ? theme.paint('accent', '▸ ') : ''}${head.join('  ')}`, columns),
    ...underPrefix({ first: '  ', columns }, inner => [
      ...wrapLine(oneLine(problem, most), inner),
      ...(mend.trim() === '' ? [] : wrapLine(theme.paint('dim', `fix: ${oneLine(mend, most)}`), inner)),
    ]),
  ]
}

/** Lines of a reviewer's work: behind a vertical bar; for a screen reader below the word `reviewer:`. */
export function reviewerLines(options: LineOptions, draw: (columns: number) => string[]): string[] {
  const lines = behindBar(options, draw)
  return options.theme.symbols || lines.length === 0 ? lines : [...wrapLine('reviewer:', options.columns), ...lines]
}
