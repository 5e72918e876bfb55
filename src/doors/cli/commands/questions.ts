import { newestSessions, questionsOrNone, type SessionsPlace } from '../../../project/find.ts'
import { type AnsweredQuestion, chosenAnswer, earlierAnswer, giveAnswer } from '../../../project/watch/questions.ts'
import { findQuestionAround, findSessionAround, placesAround } from '../../../project/worktrees/find.ts'
import { type AskedQuestion, questionId, questionsOf } from '../../../session/records/questions.ts'
import { openRecords } from '../../../session/records/records.ts'
import { formatDayAndTime } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags, printDone, readText } from '../flags.ts'
import { warnOn } from '../warn-on.ts'

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
  const { stdout } = context
  const say = warnOn(context)
  const own = await openRecords({ ...context, directory: directoryOf(context, place) })
  const places = await placesAround(own, say)
  const listed: ListedQuestion[] = []
  const add = ({ records, worktree }: SessionsPlace, asked: readonly AskedQuestion[]) => {
    for (const each of asked) {
      const id = places.length === 1 ? questionId(each) : `${worktree ?? '.'}:${questionId(each)}`
      listed.push({ ...each, id, directory: records.directory, worktree })
    }
  }
  if (session !== undefined) {
    const { id, ...found } = await findSessionAround(own, session, { platform: context.platform, onProblem: say })
    add(found, await questionsOf(found.records, id, say))
  } else {
    for (const each of places) {
      const { records } = each
      // A journal that cannot be read does not hide the questions of others.
      for (const id of all ? await records.sessions() : await newestSessions(records, NEWEST))
        add(each, await questionsOrNone(records, id, say))
    }
    if (places.length > 1) listed.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  }
  const shown = listed.filter(({ answer }) => all || answer === null)
  if (json) stdout.write(`${JSON.stringify(shown)}\n`)
  else if (shown.length === 0) stdout.write(none(listed.length, all))
  else stdout.write(`${questionLines(shown).join('\n')}\n`)
  return 0
}

/** A question, and how it is named on the command line. */
interface ListedQuestion extends AskedQuestion {
  id: string
  directory: string
  /** The worktree of the checkout that it was asked in; null: none, in the directory itself. */
  worktree: string | null
}

const QUESTION_CHARS = 2100

/** Questions for a person to read, and how the last open one is answered. */
function questionLines(questions: readonly ListedQuestion[]): string[] {
  const open = questions.findLast(({ answer }) => answer === null)
  const how = open && [
    '',
    `To answer: codemachine questions answer ${open.id} ${open.options.length > 0 ? '1' : '"…"'}`,
  ]
  return [...questions.flatMap((each, i) => (i === 0 ? linesOf(each) : ['', ...linesOf(each)])), ...(how ?? [])]
}

function linesOf({ id, round, at, text, options, assumption, answer }: ListedQuestion): string[] {
  return [
    `${id}  round ${round}, ${formatDayAndTime(Date.parse(at))}`,
    `  ${oneLine(text, QUESTION_CHARS)}`,
    ...options.map((option, i) => `    ${i + 1}  ${oneLine(option, QUESTION_CHARS)}`),
    `  Assumed meanwhile: ${oneLine(assumption, QUESTION_CHARS)}`,
    ...(answer === null
      ? []
      : [`  Answered ${formatDayAndTime(Date.parse(answer.at))}: ${oneLine(answer.answer, QUESTION_CHARS)}`]),
  ]
}

function none(answered: number, all: boolean): string {
  if (all || answered === 0) return 'No agent has asked anything here.\n'
  return `No question is open; ${answered} answered: codemachine questions --all\n`
}

interface AnswerFlags extends LookFlags {
  /** Answer it although that was done already. */
  again?: true
}

/**
 * `codemachine questions answer`: the session that has asked is told the answer while it runs; else it becomes a queued
 * prompt. Either way it is remembered.
 * @param typed `20261120_1/Q1`, or `Q1` for that of the newest session that has one
 * @param words a text, the number of an option, or `-`
 */
export async function answerQuestion(
  context: CliContext,
  typed: string,
  words: readonly string[],
  flags: AnswerFlags,
): Promise<number> {
  const answered = await findAsked(context, typed, flags)
  const { asked, id } = answered
  // Before the person has typed it.
  await earlierAnswer(answered, flags.again === true)
  const answer = chosenAnswer(await readText(context, words.join(' ')), asked, questionId(asked))
  const became = await giveAnswer(context, answered, { answer, again: flags.again === true })
  return printDone(context, flags, `Answered ${id}: ${oneLine(answer, 200)}\n${became}`, { id })
}

/** `codemachine questions accept`: what the agent assumed is the person's answer. */
export async function acceptAssumption(context: CliContext, typed: string, flags: AnswerFlags): Promise<number> {
  const answered = await findAsked(context, typed, flags)
  const { asked, id } = answered
  const became = await giveAnswer(context, answered, { answer: null, again: flags.again === true })
  return printDone(context, flags, `Accepted ${id}: ${oneLine(asked.assumption, 200)}\n${became}`, { id })
}

/** Finds the question that `typed` names, as `answerQuestion`. */
async function findAsked(context: CliContext, typed: string, flags: LookFlags): Promise<AnsweredQuestion> {
  const own = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const onProblem = warnOn(context)
  const { records, worktree, asked } = await findQuestionAround(own, typed, { platform: context.platform, onProblem })
  const id = worktree === null ? questionId(asked) : `${worktree}:${questionId(asked)}`
  return { records, worktree, asked, id }
}
