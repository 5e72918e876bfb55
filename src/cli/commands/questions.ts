import { findQuestion, findSession, newestSessions, questionsOrNone } from '../../app/find.ts'
import { UserError } from '../../base/errors.ts'
import {
  type AskedQuestion,
  claimAnswer,
  promptOfAnswer,
  type QuestionAnswer,
  questionId,
  questionsOf,
  readAnswer,
  writeAnswer,
} from '../../records/answers.ts'
import { openQueue } from '../../records/queue.ts'
import { openRecords } from '../../records/records.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { oneLine } from '../../words/safe-text.ts'
import { questionLines } from '../../words/status.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, readText } from '../flags.ts'

/** How many of the newest sessions are looked into where a person names none. */
const NEWEST = 20

interface QuestionsFlags extends LookFlags {
  /** Also what is answered; and where no session is named, of all of them. */
  all?: boolean
}

/** `codemachine questions`: what agents would have asked, the newest last. */
export async function questions(
  context: CliContext,
  session: string | undefined,
  { all = false, json, ...place }: QuestionsFlags,
): Promise<number> {
  const { stdout, stderr } = context
  const records = await openRecords({ ...context, directory: directoryOf(context, place) })
  const say = (problem: string) => void stderr.write(`codemachine: ${problem}\n`)
  const newest = async () => (all ? await records.sessions() : await newestSessions(records, NEWEST))
  const ids = session === undefined ? await newest() : [await findSession(records, session, say)]
  // A journal that cannot be read does not hide the questions of others.
  const read = session === undefined ? questionsOrNone : questionsOf
  const asked: AskedQuestion[] = []
  for (const id of ids) asked.push(...(await read(records, id, say)))
  const shown = asked.filter(({ answer }) => all || answer === null)
  if (json) stdout.write(`${JSON.stringify(shown.map(each => ({ id: questionId(each), ...each })))}\n`)
  else if (shown.length === 0) stdout.write(none(asked.length, all))
  else stdout.write(`${questionLines(shown).join('\n')}\n`)
  return 0
}

function none(answered: number, all: boolean): string {
  if (all || answered === 0) return 'No agent has asked anything here.\n'
  return `No question is open; ${answered} answered: codemachine questions --all\n`
}

interface AnswerFlags extends DirectoryFlags {
  /** Answer it although that was done already. */
  again?: true
}

/**
 * `codemachine questions answer`: the answer becomes a queued prompt, and is remembered.
 * @param typed `20261120_1/Q1`, or `Q1` for that of the newest session that has one
 * @param words a text, the number of an option, or `-`
 */
export async function answerQuestion(
  context: CliContext,
  typed: string,
  words: readonly string[],
  flags: AnswerFlags,
): Promise<number> {
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const say = (problem: string) => void context.stderr.write(`codemachine: ${problem}\n`)
  const asked = await findQuestion(records, typed, say)
  const { session, question } = asked
  const id = questionId(asked)
  const earlier = async () => {
    const before = await readAnswer(records, session, question)
    if (before !== null && !flags.again) throw answered(id, before)
    return before
  }
  // Before the person has typed it.
  await earlier()
  const answer = chosen(await readText(context, words.join(' ')), asked)
  const at = new Date(context.clock.now())
  await using claim = await claimAnswer(records, session, question, { ...context, now: at })
  if (claim === null) {
    throw new UserError(`${id} is being answered from another terminal just now.`, {
      hint: `To see the answer: codemachine questions ${session} --all`,
    })
  }
  const before = await earlier()
  const queue = openQueue(records.queue)
  // An answer that still waits has changed nothing yet: the new one takes its place.
  const isWaiting = before !== null && (await queue.list()).prompts.some(prompt => prompt.id === before.queued)
  let queued = isWaiting ? before.queued : null
  if (queued !== null) await queue.edit(queued, promptOfAnswer(asked, answer, null))
  else queued = (await queue.add(promptOfAnswer(asked, answer, before?.answer ?? null), at)).id
  await writeAnswer(records, session, question, { answer, at: at.toISOString(), queued })
  context.stdout.write(`Answered ${id}: ${oneLine(answer, 200)}\nIt waits in the queue as ${queued}.\n`)
  return 0
}

function answered(id: string, { at, answer }: QuestionAnswer): UserError {
  return new UserError(`${id} was answered at ${at}: ${oneLine(answer, 200)}`, {
    hint: `To answer it again: codemachine questions answer --again ${id} "…"`,
  })
}

/** A number alone is that option, where there are some to choose from. */
function chosen(answer: string, asked: AskedQuestion): string {
  const { options } = asked
  if (options.length === 0 || !/^\d{1,9}$/.test(answer)) return answer
  const option = options[Number(answer) - 1] ?? options.find(each => each === answer)
  if (option !== undefined) return option
  throw new UserError(
    `${questionId(asked)} has no option ${answer}; use a number from 1 to ${options.length}, or answer in words.`,
  )
}
