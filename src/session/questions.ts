import { UserError } from '../base/errors.ts'
import type { EventOf } from './events.ts'
import { readJournal } from './journal.ts'
import { type QuestionAnswer, readAnswer } from './question-answers.ts'
import type { Records } from './records.ts'

/** A question that an agent has asked, and what a person has answered. */
export interface AskedQuestion extends Omit<EventOf<'question-asked'>, 'type'> {
  session: string
  /** ISO 8601 in UTC. */
  at: string
  answer: QuestionAnswer | null
}

/** How a person names a question: `20261120_1/Q1`. */
export function questionId({ session, question }: Pick<AskedQuestion, 'session' | 'question'>): string {
  return `${session}/${question}`
}

/**
 * The questions of a session, in their order.
 * @param onProblem told a sentence for each answer that cannot be read, which then counts as none
 */
export async function questionsOf(
  records: Records,
  session: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion[]> {
  const questions: AskedQuestion[] = []
  for await (const event of readJournal(records.journal(session))) {
    if (event.type !== 'question-asked') continue
    const { round, question, text, options, assumption, at } = event
    // It becomes a part of the name of a file.
    if (!/^Q[1-9]\d{0,5}$/.test(question)) continue
    questions.push({ session, at, round, question, text, options, assumption, answer: null })
  }
  for (const asked of questions) asked.answer = await answerOrProblem(records, asked, onProblem)
  return questions
}

async function answerOrProblem(
  records: Records,
  { session, question }: AskedQuestion,
  onProblem: (problem: string) => void,
): Promise<QuestionAnswer | null> {
  try {
    return await readAnswer(records, session, question)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    onProblem(error.message)
    return null
  }
}

/**
 * The prompt that an answer becomes; its first line tells it from others. What the agent wrote is quoted, for all of it reads as the person's.
 * @param before what the person answered before, if that was worked on already
 */
export function promptOfAnswer(asked: AskedQuestion, answer: string, before: string | null): string {
  const { session, text, options, assumption } = asked
  return `"${inShort(text)}" – ${inShort(answer)} (${questionId(asked)})

While session ${session} was worked on in this directory (its goal and notes: \`.codemachine/projects/${session}/MAIN.md\`), this question came up, and nobody was there to answer it:

${quoted(text)}
${options.length === 0 ? '' : `\nThe answers to choose from were:\n\n${options.map(option => `${quoted(option)}\n`).join('>\n')}`}
The work went on with this assumption:

${quoted(assumption)}
${before === null ? '' : `\nI answered this before:\n\n${quoted(before)}\n`}
My answer${before === null ? '' : ', in the place of that one,'} is:

${answer}

Change the work accordingly, and whatever was built on the assumption, where my answer differs from it. Where the work agrees with my answer already, check that, and leave it as it is.`
}

/** On one line of at most 60 characters. */
function inShort(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  return line.length > 60 ? `${line.slice(0, 59).trimEnd().toWellFormed()}…` : line
}

function quoted(text: string): string {
  return text
    .split(/\r\n|[\n\r\u2028\u2029]/)
    .map(line => `> ${line}`.trimEnd())
    .join('\n')
}
