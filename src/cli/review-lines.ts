import type { ReviewAnswer } from '../session/review.ts'
import { findingLines } from '../ui/describe-review.ts'
import { formatCount } from '../ui/format-count.ts'
import { safeText } from '../ui/safe-text.ts'

/** What a reviewer answered, as `codemachine review` prints it. */
export function answerLines({ verdict, summary, findings }: ReviewAnswer): string[] {
  const count = formatCount(findings.length, 'finding')
  const agreed = findings.length === 0 ? 'The reviewer agrees.' : `The reviewer agrees, with ${count}.`
  return [
    verdict === 'agreed' ? agreed : `The reviewer does not agree: ${count}.`,
    ...(summary === '' ? [] : safeText(summary).split('\n')),
    ...findings.flatMap(finding => findingLines(finding, false)),
  ]
}
