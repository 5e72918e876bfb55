import * as v from 'valibot'
import { messageOf, UserError, writing } from '../../base/errors.ts'
import type { EventOf, Recorded } from '../../core/events/events.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { eachEvent } from './journal.ts'
import type { Records } from './records.ts'
import { type LockOptions, readRunLock, takeRunLock } from './run-lock.ts'

/** A person's answer to an agent's question. */
export interface QuestionAnswer {
  answer: string
  /** Time of the answer, ISO 8601 in UTC. */
  at: string
  /** Id of the queued prompt made from it. Without it and `told`, the person accepted the assumption. */
  queued?: string
  /** The round of the running session that received it: the one at work, or the next one. */
  told?: 'round' | 'next-round'
}

/** Size of the longest prompt with each character written as `\u0000`. */
const MOST_BYTES = 8 * 1024 * 1024

const schema = v.object({
  answer: v.string('use a text'),
  at: v.pipe(v.string('use a time'), v.isoTimestamp('use a time such as "2026-11-20T23:00:00.000Z"')),
  queued: v.exactOptional(v.pipe(v.string('use a text'), v.regex(/^\d{6,9}$/, 'use the number of a queued prompt'))),
  told: v.exactOptional(v.picklist(['round', 'next-round'], 'use "round" or "next-round"')),
})

/** Returns the answer to a question of a session; null: none yet. Throws a `UserError` if its file cannot be read. */
export async function readPersonAnswer(
  records: Pick<Records, 'answer'>,
  session: string,
  question: string,
): Promise<QuestionAnswer | null> {
  const path = records.answer(session, question)
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return null
  if ('problem' in read) throw new UserError('CM0611', `${path} ${read.problem}.`)
  const result = v.safeParse(schema, parsed(path, read.text))
  if (result.success) return result.output
  const [issue] = result.issues
  const name = v.getDotPath(issue)
  throw new UserError(
    'CM0611',
    `${path}: ${name === null ? 'it contains no answer' : `${name} is wrong; ${issue.message}`}.`,
    {
      hint: 'Remove the file, and answer again.',
    },
  )
}

/** Locks a question for an answer until disposed; null if another live process holds it. */
export async function claimAnswer(
  records: Records,
  session: string,
  question: string,
  options: Omit<LockOptions, 'hint'>,
): Promise<AsyncDisposable | null> {
  const path = `${records.answer(session, question)}.lock`
  try {
    return await takeRunLock(path, options)
  } catch (error) {
    if (!(error instanceof UserError) || error.exitCode !== 6) throw error
    const { state } = await readRunLock(path, options.platform)
    // Only a person can end these, and the error says how.
    if (state === 'elsewhere' || state === 'unreadable') throw error
    return null
  }
}

/** Stores an answer, and replaces an older one. */
export async function writeAnswer(
  records: Records,
  session: string,
  question: string,
  answer: QuestionAnswer,
): Promise<void> {
  const path = records.answer(session, question)
  await writing(path, () => writeWholeFile(path, `${JSON.stringify(answer, null, 2)}\n`))
}

function parsed(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UserError('CM0611', `${path} is not JSON: ${messageOf(error)}.`, {
      hint: 'Remove the file, and answer again.',
    })
  }
}

/** A question of an agent with the person's answer. `agent`: one that works for the round's agent. */
export interface AskedQuestion extends Omit<EventOf<'question-asked'>, 'type'> {
  session: string
  /** Time of the question, ISO 8601 in UTC. */
  at: string
  answer: QuestionAnswer | null
}

/** Returns a person's name for a question: `20261120_1/Q1`. */
export function questionId({ session, question }: Pick<AskedQuestion, 'session' | 'question'>): string {
  return `${session}/${question}`
}

/**
 * Returns the questions of a session in their order.
 * @param onProblem told a sentence for each answer that cannot be read, which then counts as none
 */
export async function questionsOf(
  records: Records,
  session: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion[]> {
  const questions: AskedQuestion[] = []
  const add = (event: Recorded) => {
    if (event.type !== 'question-asked') return
    const { round, question, text, options, assumption, agent, at } = event
    // The id becomes part of a file name.
    if (!/^Q[1-9]\d{0,5}$/.test(question)) return
    const by = agent === undefined ? {} : { agent }
    questions.push({ session, at, round, question, text, options, assumption, ...by, answer: null })
  }
  await eachEvent(records.journal(session), add, { only: 'question-asked' })
  for (const asked of questions) asked.answer = await answerOrProblem(records, asked, onProblem)
  return questions
}

async function answerOrProblem(
  records: Records,
  { session, question }: AskedQuestion,
  onProblem: (problem: string) => void,
): Promise<QuestionAnswer | null> {
  try {
    return await readPersonAnswer(records, session, question)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    onProblem(error.message)
    return null
  }
}

/**
 * Returns the prompt for an answer, identified by its first line. It quotes the agent's words, because the whole counts as
 * the person's.
 * @param before what the person answered before, if that was worked on already
 */
export function promptOfAnswer(asked: AskedQuestion, answer: string, before: string | null): string {
  const { session } = asked
  const when = `While session ${session} was worked on in this directory (its goal and notes: \`.codemachine/projects/${session}/MAIN.md\`), this question came up, and nobody was there to answer it:`
  return answerInWords(asked, answer, before, when)
}

/** Returns the remark for the running session that asked; otherwise like `promptOfAnswer`. */
export function remarkOfAnswer(asked: AskedQuestion, answer: string, before: string | null): string {
  const { round, agent } = asked
  const who = agent === undefined ? '' : `, from ${agent}`
  return answerInWords(asked, answer, before, `In round ${round} of this session this question came up${who}:`)
}

function answerInWords(asked: AskedQuestion, answer: string, before: string | null, when: string): string {
  const { text, options, assumption } = asked
  return `"${inShort(text)}" – ${inShort(answer)} (${questionId(asked)})

${when}

${quoted(text)}
${options.length === 0 ? '' : `\nThe answers to choose from were:\n\n${options.map(option => `${quoted(option)}\n`).join('>\n')}`}
The work went on with this assumption:

${quoted(assumption)}
${before === null ? '' : `\nI answered this before:\n\n${quoted(before)}\n`}
My answer${before === null ? '' : ', in the place of that one,'} is:

${answer}

Change the work accordingly, and whatever was built on the assumption, where my answer differs from it. Where the work agrees with my answer already, check that, and leave it as it is.`
}

/** Shortens a text to one line of at most 60 characters. */
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
