import { formatDayAndTime } from './format-time.ts'
import { oneLine } from './safe-text.ts'

/** A question of an agent, as far as it is shown. */
export interface ShownQuestion {
  session: string
  question: string
  round: number
  /** ISO 8601. */
  at: string
  text: string
  options: readonly string[]
  assumption: string
  answer: { answer: string; at: string } | null
}

const TEXT_CHARS = 2100

/** Questions for a person to read, and how the last open one is answered. Pure. */
export function questionLines(questions: readonly ShownQuestion[]): string[] {
  const open = questions.findLast(({ answer }) => answer === null)
  const how = open && [
    '',
    `To answer: codemachine questions answer ${open.session}/${open.question} ${open.options.length > 0 ? '1' : '"…"'}`,
  ]
  return [...questions.flatMap((each, i) => (i === 0 ? linesOf(each) : ['', ...linesOf(each)])), ...(how ?? [])]
}

function linesOf({ session, question, round, at, text, options, assumption, answer }: ShownQuestion): string[] {
  return [
    `${session}/${question}  round ${round}, ${formatDayAndTime(Date.parse(at))}`,
    `  ${oneLine(text, TEXT_CHARS)}`,
    ...options.map((option, i) => `    ${i + 1}  ${oneLine(option, TEXT_CHARS)}`),
    `  It goes on with: ${oneLine(assumption, TEXT_CHARS)}`,
    ...(answer === null
      ? []
      : [`  Answered ${formatDayAndTime(Date.parse(answer.at))}: ${oneLine(answer.answer, TEXT_CHARS)}`]),
  ]
}
