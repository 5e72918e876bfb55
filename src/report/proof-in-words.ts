import { hasPassed } from '../session/gate.ts'
import { PROJECT_FILE } from '../session/project-file.ts'
import { wordsForReview } from '../ui/describe-review.ts'
import type { Tone } from '../ui/description.ts'
import { formatCount } from '../ui/format-count.ts'
import { formatDuration } from '../ui/format-duration.ts'
import { wordsForBefore, wordsForChangedByGate, wordsForFlaky, wordsForGate } from '../ui/words-for-gate.ts'
import type { ReportData, ReportGate, ReportReview } from './report-data.ts'

/** A sentence of the proof, and how it is meant. Its text came from outside in part, and is not made safe. */
export interface ProofLine {
  text: string
  tone: Tone
}

/** How a gate came out the last time, after its name: `failed (exit code 1), 41.2 s; it failed before round 1, too`. */
export function gateInWords(gate: ReportGate): string {
  const { last, before, required } = gate
  const optional = required ? [] : ['it is not required']
  if (last === null) {
    const first = before === null ? 'has not run' : `before round 1: ${wordsForGate(before)}; has not run since`
    return [first, ...optional].join('; ')
  }
  const since = before === null || hasPassed(last.status) ? null : wordsForBefore(before.status, last.status)
  const flaky = last.status === 'flaky' ? wordsForFlaky(last) : null
  const earlier = wasFlakyEarlier(gate) ? FLAKY_EARLIER : null
  const remarks = [since, flaky, earlier, ...optional].filter(remark => remark !== null)
  return [`${wordsForGate(last)}, ${formatDuration(last.durationMs)}`, ...remarks].join('; ')
}

/** How it had come out before round 1, where that is not said already; null if it is, or if it did not run then. */
export function beforeInWords({ last, before }: ReportGate): string | null {
  if (before === null || last === null) return null
  const isSaid = !hasPassed(last.status) && wordsForBefore(before.status, last.status) !== null
  return isSaid ? null : `before round 1: ${wordsForGate(before)}`
}

/** What a review came to, after the last of them that is told. */
export function reviewInWords(review: ReportReview): ProofLine {
  return { text: wordsForReview(review), tone: review.verdict === 'agreed' ? 'good' : 'warning' }
}

/** What a person has to know of the proof beside how gates and reviews came out. */
export function notesOnProof({ proof }: Pick<ReportData, 'proof'>): ProofLine[] {
  const { gates, protectedCount, settingsChangedIn } = proof
  const changedByGates = gates.flatMap(({ name, changed, changedCount }) => {
    const words = wordsForChangedByGate({ changed, changedCount })
    return words === null ? [] : [{ text: `gate ${shortName(name)}: ${words}`, tone: 'warning' as const }]
  })
  return [
    ...changedByGates,
    ...(protectedCount === 0
      ? []
      : [
          {
            text: `rounds changed ${formatCount(protectedCount, 'file')} that gates protect`,
            tone: 'warning' as const,
          },
        ]),
    ...(settingsChangedIn === null
      ? []
      : [
          {
            text: `round ${settingsChangedIn} changed ${PROJECT_FILE}; what it says now counts from the next run on`,
            tone: 'warning' as const,
          },
        ]),
    ...(gates.length === 0 || proof.protected ? [] : [{ text: UNPROTECTED, tone: 'quiet' as const }]),
  ]
}

const UNPROTECTED = 'no gate protects its files: nothing looks whether tests were weakened'

/** The name of a gate, which may be a whole command: what is long is cut in the middle. */
export function shortName(name: string): string {
  const characters = [...name]
  return characters.length <= 40 ? name : `${characters.slice(0, 26).join('')}…${characters.slice(-12).join('')}`
}

/** Whether a gate came out flaky before it ran the last time, and not again then. */
export function wasFlakyEarlier({ last, flaky }: ReportGate): boolean {
  return flaky > 0 && last?.status !== 'flaky'
}

const FLAKY_EARLIER = 'it was flaky earlier in the session'

/** How good it is that a gate came out so. */
export function toneOfGate(gate: ReportGate): Tone {
  const { last, required } = gate
  if (last === null) return 'quiet'
  if (last.status === 'passed') return wasFlakyEarlier(gate) ? 'warning' : 'good'
  return last.status === 'flaky' || !required ? 'warning' : 'bad'
}
