import { unreachable } from '../base/errors.ts'
import type { RefusalReason } from '../session/claim-events.ts'
import type { RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { describeGate } from './describe-gate.ts'
import { describeReviewEnd, describeReviewStart } from './describe-review.ts'
import { type Description, describe } from './description.ts'
import { formatCount } from './format-count.ts'
import type { Hints } from './hints.ts'
import { oneLine } from './safe-text.ts'
import { gateName } from './words-for-gate.ts'
import { wordsForProof } from './words-for-proof.ts'

type ProofEvent = RecordedOf<
  | 'protected-changed'
  | 'gate-ended'
  | 'question-asked'
  | 'review-started'
  | 'review-ended'
  | 'done-nominated'
  | 'done-refused'
  | 'done-accepted'
>

const NAME_CHARS = 200
const TEXT_CHARS = 2000
const MOST_FILES = 20
const MOST_OPTIONS = 20

/** What a person is told of a claim, of what codemachine does to prove it, and of what is noted for them. Pure. */
export function describeProof(event: ProofEvent, state: SessionState, hints: Hints): Description {
  switch (event.type) {
    case 'protected-changed':
      return describeProtected(event)
    case 'gate-ended':
      return describeGate(event, state)
    case 'question-asked':
      return describeQuestion(event, hints)
    case 'review-started':
      return describeReviewStart(event)
    case 'review-ended':
      return describeReviewEnd(event)
    case 'done-nominated':
      return describe(`claimed done by ${event.by.map(name).join(' and ')}`)
    case 'done-refused':
      return describe(`claim refused (${name(event.reason)}): ${refusalInWords(event)}`, 'warning')
    case 'done-accepted':
      return describeAccepted(event, state)
    default:
      return unreachable(event)
  }
}

const TOUCHES: Readonly<Record<RecordedOf<'protected-changed'>['files'][number]['how'], string>> = {
  changed: 'changed',
  deleted: 'deleted',
  skipped: 'tests in it marked to be skipped',
}

function describeProtected({ round, files, count }: RecordedOf<'protected-changed'>): Description {
  const shown = files.slice(0, MOST_FILES).map(({ path, how, gates }) => {
    const of = gates.length === 0 ? '' : `  (gate ${gates.map(gateName).join(', ')})`
    return `${name(path)}: ${TOUCHES[how]}${of}`
  })
  const left = count - shown.length
  const lines = [
    `round ${round} touched ${formatCount(count, 'protected file')}: unless that is taken back, done needs a review that agrees`,
    ...shown,
    ...(left > 0 ? [`… and ${left} more`] : []),
  ]
  return describe(lines.join('\n'), 'warning')
}

function describeQuestion(
  { session, question, text, options, assumption }: RecordedOf<'question-asked'>,
  hints: Hints,
): Description {
  const shown = options.slice(0, MOST_OPTIONS).map((option, i) => `${i + 1}. ${line(option)}`)
  const left = options.length - shown.length
  const lines = [
    `question ${name(question)}: ${line(text)}`,
    ...shown,
    ...(left > 0 ? [`… and ${left} more`] : []),
    `until you answer, the agent assumes: ${line(assumption)}`,
    `${hints.answer(name(`${session}/${question}`))}${options.length > 0 ? '; the number of an option will do' : ''}`,
  ]
  return describe(lines.join('\n'), 'strong')
}

/** What these refusals are about has been told in full just before. */
const TOLD_BEFORE = new Set<string>(['gate-failed', 'review-findings'] satisfies RefusalReason[])

function refusalInWords({ reason, detail }: RecordedOf<'done-refused'>): string {
  const text = detail.trim()
  return line(TOLD_BEFORE.has(reason) ? (text.split('\n', 1)[0] ?? '') : text)
}

function describeAccepted({ tree, verified }: RecordedOf<'done-accepted'>, state: SessionState): Description {
  const proof = verified === undefined ? '' : `: ${wordsForProof(verified, state)}`
  return describe(`claim accepted for the files as they are now (tree ${name(tree.slice(0, 12))})${proof}`, 'good')
}

function name(value: string): string {
  return oneLine(value, NAME_CHARS)
}

function line(value: string): string {
  return oneLine(value, TEXT_CHARS)
}
