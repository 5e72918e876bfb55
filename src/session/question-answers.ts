import * as v from 'valibot'
import { writing } from '../base/disk-full.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { readBoundedText } from '../platform/bounded-file.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import type { Records } from './records.ts'
import { type LockOptions, readRunLock, takeRunLock } from './run-lock.ts'

/** What a person has answered to a question of an agent. */
export interface QuestionAnswer {
  answer: string
  /** ISO 8601 in UTC. */
  at: string
  /** Id of the queued prompt that it became. */
  queued: string
}

/** Of the longest prompt, every character of it written as `\u0000`. */
const MOST_BYTES = 8 * 1024 * 1024

const schema = v.object({
  answer: v.string('use a text'),
  at: v.pipe(v.string('use a time'), v.isoTimestamp('use a time such as "2026-11-20T23:00:00.000Z"')),
  queued: v.pipe(v.string('use a text'), v.regex(/^\d{6,9}$/, 'use the number of a queued prompt')),
})

/** The answer to a question of a session; null if there is none yet. A `UserError` if its file cannot be read. */
export async function readAnswer(records: Records, session: string, question: string): Promise<QuestionAnswer | null> {
  const path = records.answer(session, question)
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return null
  if ('problem' in read) throw new UserError(`${path} ${read.problem}.`)
  const result = v.safeParse(schema, parsed(path, read.text))
  if (result.success) return result.output
  const [issue] = result.issues
  const name = v.getDotPath(issue)
  throw new UserError(`${path}: ${name === null ? 'it holds no answer' : `${name} is wrong; ${issue.message}`}.`, {
    hint: 'Remove the file, and answer again.',
  })
}

/**
 * Keeps others from answering a question until it is disposed; null if somebody is at it just now. One whose process has
 * died does not count.
 */
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
    // Only a person can say that these are over, and the error says how.
    if (state === 'elsewhere' || state === 'unreadable') throw error
    return null
  }
}

/** Keeps an answer, in the place of an older one. */
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
    throw new UserError(`${path} is not JSON: ${messageOf(error)}.`, { hint: 'Remove the file, and answer again.' })
  }
}
