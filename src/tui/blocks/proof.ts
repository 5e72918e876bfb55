import type { RecordedOf } from '../../core/events/events.ts'
import type { Item } from '../../core/events/items.ts'
import type { Finding } from '../../core/rules/review.ts'
import type { SessionState } from '../../core/state/state.ts'
import { cutLine, oneLine, safeText, wrapLine } from '../../words/cells.ts'
import { describeAgentItem } from '../../words/item.ts'
import { formatCount } from '../../words/numbers.ts'
import { agentEndInWords, agentFacts, agentLabel, agentOf, requestInWords } from '../../words/plan.ts'
import { gateInWords, isRepeated, placeOf, reviewEndInWords, SEVERITY_TONES } from '../../words/proof.ts'
import type { Role, Theme } from '../terminal/cells.ts'
import { type BlockOptions, clipText, firstRows, roleOf, underPrefix } from './frame.ts'
import { itemLines, outputTail } from './item.ts'
import { markdownLines } from './markdown.ts'

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
 * A gate that has run, on a line; below it what is to be said of how it ended, and the last lines that it printed if
 * that is not good; in full all that is kept of them.
 */
export function gateLines(event: GateEnded, state: SessionState, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { name, end, time, remarks, notes, isOutputShown, tone } = gateInWords(event, state)
  const paint = (text: string) => theme.paint(roleOf(tone), text)
  const ending = [...(theme.symbols ? besideSign(event, end) : [end]), time].join(', ')
  const line = [ending, ...remarks].join('; ')
  const head = `${signOf(event, theme, paint)}${theme.paint('strong', safeText(name))}${paint(`  ${safeText(line)}`)}`
  return [
    ...wrapLine(head, columns),
    ...underPrefix({ first: '  ', columns }, inner => notes.flatMap(note => wrapLine(paint(safeText(note)), inner))),
    ...(isOutputShown || full ? outputTail(event.output, OUTPUT_LINES, options) : []),
  ]
}

/** How it ended, as far as its sign does not say it. */
function besideSign({ status, exitCode }: GateEnded, end: string): string[] {
  if (status === 'passed') return []
  return [status === 'failed' && exitCode !== null ? `exit ${exitCode}` : end]
}

function signOf({ status }: GateEnded, theme: Theme, paint: (text: string) => string): string {
  return theme.symbols ? paint(SIGNS[status]) : ''
}

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
    theme.paint(roleOf(SEVERITY_TONES[severity]), severity),
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

/** What a reviewer did, told apart from what the agent does: behind a line at its side, or for a reader below a word. */
export function reviewerLines(
  { columns, theme }: { columns: number; theme: Theme },
  draw: (columns: number) => string[],
): string[] {
  if (theme.symbols) return underPrefix({ first: theme.paint('dim', '┃ '), repeats: true, columns }, draw)
  const lines = draw(columns)
  return lines.length === 0 ? [] : [...wrapLine('reviewer:', columns), ...lines]
}

const NAME_CHARS = 300
const CLIPPED_CHARS = 1500
const RESULT_ROWS = 12
const REQUEST_ROWS = 2

/** An agent that was given a task: who, and what; in full all that it was asked for. */
export function agentStartLines(event: RecordedOf<'agent-started'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const label = full ? oneLine(event.instance, NAME_CHARS) : agentOf(event.instance)
  const first = theme.symbols ? theme.paint('accent', '▸ ') : ''
  const words = `${theme.paint('strong', label)}${theme.symbols ? '  ' : ' starts: '}`
  const request = full ? safeText(event.request).split('\n') : [requestInWords(event.tasks, event.request)]
  return underPrefix({ first, columns }, inner => {
    const rows = request.flatMap((line, i) => wrapLine(i === 0 ? words + line : line, inner))
    if (!full) return firstRows(rows, REQUEST_ROWS, inner)
    const facts = agentFacts(event)
    return facts === '' ? rows : [...rows, ...wrapLine(theme.paint('dim', facts), inner)]
  })
}

const SIGNS_OF_AGENT_BLOCKS: Readonly<Record<RecordedOf<'agent-ended'>['status'], { sign: string; role: Role }>> = {
  completed: { sign: '✔ ', role: 'good' },
  error: { sign: '✘ ', role: 'bad' },
  terminated: { sign: '– ', role: 'warning' },
}

/** The end of an agent's work, and below it its result: the beginning of it, in full all. */
export function agentEndLines(event: RecordedOf<'agent-ended'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { sign, role } = SIGNS_OF_AGENT_BLOCKS[event.status]
  const label = theme.paint('strong', full ? oneLine(event.instance, NAME_CHARS) : agentOf(event.instance))
  const heading = `${theme.symbols ? theme.paint(role, sign) : ''}${label}  ${theme.paint(role, agentEndInWords(event))}`
  const result = full ? event.result.trim() : clipText(event.result.trim(), CLIPPED_CHARS)
  return [
    ...wrapLine(heading, columns),
    ...underPrefix({ first: '  ', columns }, inner => {
      const rows = result === '' ? [] : markdownLines(result, { columns: inner, theme, first: true })
      return full ? rows : firstRows(rows, RESULT_ROWS, inner)
    }),
  ]
}

/** What such an agent did, on one line behind its name; in full as what any agent did, below it. */
export function agentItemLines(
  { item, session }: { item: Item; session: string },
  instance: string,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const place = { session, directory: state.directory }
  if (full) {
    const lines = underPrefix({ first: theme.symbols ? theme.paint('dim', '┃ ') : '', repeats: true, columns }, inner =>
      itemLines(item, place, { ...options, columns: inner }),
    )
    return lines.length === 0 ? [] : [...wrapLine(theme.paint('dim', oneLine(instance, NAME_CHARS)), columns), ...lines]
  }
  const told = describeAgentItem(item, place)
  if (told === null) return []
  return [
    cutLine(
      `${theme.paint('dim', agentLabel(instance, state))}  ${theme.paint(roleOf(told.tone), told.text)}`,
      columns,
    ),
  ]
}
