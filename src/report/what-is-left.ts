import { hasPassed } from '../session/gate.ts'
import { placeOf, TONE_OF_SEVERITY } from '../ui/describe-review.ts'
import type { Tone } from '../ui/description.ts'
import { formatCount } from '../ui/format-count.ts'
import { wordsForGate } from '../ui/words-for-gate.ts'
import { taskInWords } from './build-in-words.ts'
import { headlineOf } from './headline.ts'
import { shortName } from './proof-in-words.ts'
import type { ReportData } from './report-data.ts'

/** Something that is left to do or to look at. Its text came from outside in part, and is not made safe. */
export interface LeftItem {
  text: string
  tone: Tone
}

/** What is left for a person, the most urgent first; none if all is done. */
export function whatIsLeft(data: ReportData): LeftItem[] {
  const { proof, tasks, questions, refusals, outcome, build } = data
  const { hint } = headlineOf(data)
  const parked = build?.counts.parked ?? 0
  const lastRefusal = refusals.entries.at(-1)
  // What gates and reviews say stands above.
  const isToldAbove = lastRefusal?.reason === 'gate-failed' || lastRefusal?.reason === 'review-findings'
  const isRefused = outcome?.kind !== 'done' && proof.claim === 'refused' && lastRefusal !== undefined && !isToldAbove
  return [
    ...(hint === null ? [] : [{ text: hint, tone: 'strong' as const }]),
    ...proof.gates.flatMap(({ name, last, required }) =>
      last !== null && !hasPassed(last.status)
        ? [
            {
              text: `gate ${shortName(name)}: ${wordsForGate(last)}`,
              tone: required ? ('bad' as const) : ('warning' as const),
            },
          ]
        : [],
    ),
    ...proof.findings.map(finding => {
      const { severity, problem, mend, repeated } = finding
      const place = placeOf(finding)
      const again = repeated ? ' (found before, and left to you)' : ''
      return {
        text: `${severity}: ${place === '' ? '' : `${place}: `}${asSentence(problem)} Mend: ${mend}${again}`,
        tone: TONE_OF_SEVERITY[severity],
      }
    }),
    ...(isRefused ? [{ text: `the last claim was refused: ${lastRefusal.detail}`, tone: 'warning' as const }] : []),
    ...(build?.tasks ?? []).flatMap(task =>
      task.state === 'parked'
        ? [{ text: `task ${task.id} ${task.name} is ${taskInWords(task)}`, tone: 'warning' as const }]
        : [],
    ),
    ...(tasks === null || tasks.done + parked >= tasks.total
      ? []
      : [{ text: tasksLeft({ ...tasks, total: tasks.total - parked }), tone: 'plain' as const }]),
    ...(questions.count === 0
      ? []
      : [
          {
            text: `${formatCount(questions.count, 'question')} went on with the agent's own assumptions: see whether they are yours`,
            tone: 'plain' as const,
          },
        ]),
  ]
}

/** A reviewer may leave out the full stop. */
function asSentence(text: string): string {
  const trimmed = text.trimEnd()
  return /[.!?:…]$/.test(trimmed) ? trimmed : `${trimmed}.`
}

function tasksLeft({ done, total, left }: NonNullable<ReportData['tasks']>): string {
  const count = `${formatCount(total - done, 'task')} not done`
  return left.length === 0 ? count : `${count}: ${left.join(' · ')}`
}
