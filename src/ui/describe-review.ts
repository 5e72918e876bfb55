import type { RecordedOf } from '../session/events.ts'
import { type Finding, keyOf, type ReviewAnswer } from '../session/review.ts'
import { clipLines } from './clip-lines.ts'
import { type Description, describe, type Tone } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatTokens } from './format-tokens.ts'
import { oneLine } from './safe-text.ts'
import { wordsForCause } from './words-for-cause.ts'

type ReviewEnded = RecordedOf<'review-ended'>

const NAME_CHARS = 200
const TEXT_CHARS = 2000
const SUMMARY_LINES = 10
const MOST_FINDINGS = 20

const CAUSES: Readonly<Record<string, string>> = {
  asked: 'a review is wanted before done',
  protected: 'protected files are not what they were',
}

/** How a finding is meant, by its severity. */
export const TONE_OF_SEVERITY: Readonly<Record<Finding['severity'], Tone>> = {
  critical: 'bad',
  major: 'warning',
  minor: 'quiet',
}

/** A review that begins, why, and with what. */
export function describeReviewStart({ review, causes, model, effort }: RecordedOf<'review-started'>): Description {
  const why = causes.map(cause => (Object.hasOwn(CAUSES, cause) ? CAUSES[cause] : oneLine(cause, NAME_CHARS)))
  const terms = [model, effort].filter(term => term !== null).map(term => oneLine(term, NAME_CHARS))
  const reasons = why.length === 0 ? '' : `: ${why.join(', and ')}`
  return describe(`review ${review} starts${reasons}${terms.length === 0 ? '' : `  (${terms.join(' ')})`}`, 'strong')
}

/** What a review came to, with each finding on lines of its own. */
export function describeReviewEnd(event: ReviewEnded): Description {
  const { answer } = event
  const tone = answer?.verdict === 'agreed' ? 'good' : 'warning'
  if (answer === null) return describe(reviewEndInWords(event), tone)
  const shown = answer.findings.slice(0, MOST_FINDINGS)
  const left = answer.findings.length - shown.length
  const rest = `all of it: codemachine logs ${event.session} --json`
  const lines = [
    reviewEndInWords(event),
    ...(answer.summary.trim() === '' ? [] : [clipLines(answer.summary, SUMMARY_LINES, rest)]),
    ...shown.flatMap(finding => findingLines(finding, isRepeated(finding, event))),
    ...(left > 0 ? [`[… ${formatCount(left, 'more finding')}; ${rest}]`] : []),
  ]
  return describe(lines.join('\n'), tone)
}

/** `review 2: 3 findings, 1 of them found before and left to you, 1m02s, 9.1k tokens`. */
export function reviewEndInWords(event: ReviewEnded): string {
  const { review, tokens, durationMs, answer, outcome, repeated } = event
  const facts = [formatDuration(durationMs), ...(tokens === null ? [] : [formatTokens(tokens.total)])]
  const why = outcome.class === 'worked' ? ' that can be read' : `: ${wordsForCause(outcome)}`
  const verdict =
    answer === null
      ? `review ${review} gave no answer${why}`
      : wordsForReview({ review, ...answer, findings: answer.findings.length, repeated: repeated.length })
  return [verdict, ...facts].join(', ')
}

/** What a review came to; `findings` and `repeated`: how many. `verdict` null: it gave no answer. */
export interface ReviewFacts {
  review: number
  verdict: ReviewAnswer['verdict'] | null
  findings: number
  repeated: number
}

/** In words: `review 2: 3 findings, 1 of them found before and left to you`, `review 3: agreed`. */
export function wordsForReview({ review, verdict, findings, repeated }: ReviewFacts): string {
  if (verdict === null) return `review ${review} gave no answer`
  const count = formatCount(findings, 'finding')
  if (verdict === 'agreed') return `review ${review}: agreed${findings === 0 ? '' : `, with ${count}`}`
  if (repeated === 0) return `review ${review}: ${count}`
  const which = repeated === findings ? (repeated === 1 ? '' : 'all ') : `${repeated} of them `
  return `review ${review}: ${count}, ${which}found before and left to you`
}

/** Whether a review before this one had found it, too. */
export function isRepeated(finding: Finding, { repeated }: ReviewEnded): boolean {
  return repeated.some(other => keyOf(other) === keyOf(finding))
}

/** Where a finding is: `src/a.ts:3`; empty if it is about no file. */
export function placeOf({ file, line }: Pick<Finding, 'file' | 'line'>): string {
  return file === null ? '' : `${oneLine(file, NAME_CHARS)}${line === null ? '' : `:${line}`}`
}

/** A finding on a line, with what would mend it below. */
export function findingLines(finding: Finding, isAgain: boolean): string[] {
  const { severity, problem, mend } = finding
  const place = placeOf(finding)
  return [
    `- ${severity}${place === '' ? '' : `  ${place}`}  ${oneLine(problem, TEXT_CHARS)}${isAgain ? '  (found before: left to you)' : ''}`,
    ...(mend.trim() === '' ? [] : [`  mend: ${oneLine(mend, TEXT_CHARS)}`]),
  ]
}
