import { UserError, withCode } from '../../../base/errors.ts'
import type { OpenDecision } from '../../../core/rules/decision.ts'
import { chosenAnswer } from '../../../project/watch/questions.ts'
import type { AskedQuestion } from '../../../session/records/questions.ts'
import { cutLine, widthOf } from '../../../tell/words/cells.ts'
import { agentOf } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { answerDecision, askDecision, escOf, openDecision, type QuestionContext } from './dialogs.ts'
import type { Question, ScreenModel } from './model.ts'

const TEXT_CHARS = 2_000
const CHOICE_CHARS = 400
const TITLE_CHARS = 300
const SPACE = '  '

/** What waits for an answer of the person: what they are to decide, then the questions of agents, the oldest first. */
interface Waiting {
  name: string
  text: string
  choices: readonly string[]
}

function waitingFor(model: ScreenModel): Waiting[] {
  const decision = openDecision(model)
  return [...(decision === null ? [] : [ofDecision(decision)]), ...openQuestions(model).map(ofQuestion)]
}

/** The open questions of the session that runs. */
function openQuestions({ isRunning, asked }: ScreenModel): readonly AskedQuestion[] {
  return isRunning ? asked : []
}

function ofDecision({ title, choices }: OpenDecision): Waiting {
  return { name: 'You decide', text: oneLine(title, TEXT_CHARS), choices: choices.map(({ label }) => label) }
}

function ofQuestion({ question, text, options }: AskedQuestion): Waiting {
  return { name: question, text: oneLine(text, TEXT_CHARS), choices: options }
}

/**
 * The rows above the composer that say what waits for an answer, with its choices: none, one, or two where that is too long
 * for one and `rows` allow it. Pure.
 */
export function askedLines(model: ScreenModel, { columns, rows }: { columns: number; rows: number }): string[] {
  const [first, ...others] = waitingFor(model)
  if (first === undefined || rows < 1 || model.dialog !== null) return []
  const { theme } = model
  const choices = choicesInLine(first.choices)
  const key = keyThatAnswers(model)
  const tail = others.length === 0 ? key : `${key}, ${others.length} more`
  const lead = `? ${first.name}${SPACE}`
  const one = [first.text, ...(choices === '' ? [] : [choices]), tail].join(SPACE)
  const draw = (text: string, end: string) =>
    theme.paint('accent', lead) + theme.paint('strong', text) + theme.paint('dim', end)
  if (widthOf(lead) + widthOf(one) <= columns) return [draw(first.text, one.slice(first.text.length))]
  // The key is never what gets cut.
  const room = columns - widthOf(lead) - widthOf(SPACE) - widthOf(tail)
  if (room < 8) return [theme.paint('strong', cutLine(`${lead}${tail}`, columns))]
  const line = draw(cutLine(first.text, room), `${SPACE}${tail}`)
  if (rows < 2 || choices === '') return [line]
  return [line, theme.paint('dim', cutLine(`${SPACE}${choices}`, columns))]
}

/** The key that answers now; with a draft in the field nothing else can be typed there. */
function keyThatAnswers({ composer, options: { keymap } }: ScreenModel): string {
  const [tab, palette] = [keymap.label('answer'), keymap.label('palette')]
  if (composer.text === '') return tab === '' ? '/answer answers' : `${tab} answers`
  return palette === '' ? 'empty the field first, then answer' : `${palette}, Answer`
}

function choicesInLine(choices: readonly string[]): string {
  return choices.map((choice, index) => `${index + 1} ${oneLine(choice, CHOICE_CHARS)}`).join(' · ')
}

/** Tab on an empty field, and `/answer` alone: opens what waits for an answer, of several a list; false if nothing does. */
export async function openAsked(context: QuestionContext): Promise<boolean> {
  const { model } = context
  const waiting = waitingFor(model)
  if (waiting.length === 0) return false
  const isList = waiting.length > 1
  const name = isList ? await chooseAsked(model, waiting) : waiting[0]?.name
  const within = isList ? { ...context, back: () => backToList(context) } : context
  const asked = openQuestions(model).find(({ question }) => question === name)
  if (asked !== undefined) await askQuestion(within, asked)
  else if (name !== undefined && !(await askDecision(within)))
    model.notice(`${name} no longer needs an answer`, 'warning')
  return true
}

/** Esc in one of several: the list again, where there is still more than one. */
async function backToList(context: QuestionContext): Promise<void> {
  if (waitingFor(context.model).length > 1) await openAsked(context)
}

/** The name of one of several; undefined: none is chosen. */
async function chooseAsked(model: ScreenModel, waiting: readonly Waiting[]): Promise<string | undefined> {
  const answer = await model.choose({
    title: `${waiting.length} things wait for your answer`,
    options: waiting.map(({ name, text, choices }) => ({
      id: name,
      label: `${name}${SPACE}${text}`,
      hint: choicesInLine(choices),
    })),
    takesCommands: true,
  })
  return answer.kind === 'chosen' ? answer.id : undefined
}

async function askQuestion(context: QuestionContext, asked: AskedQuestion): Promise<void> {
  const { model } = context
  const answer = await model.choose({ ...fieldOf(asked), ...escOf(context) })
  if (answer.kind === 'chosen') await answerWith(context, asked, asked.options[Number(answer.id)] ?? '')
  else if (answer.kind === 'text') await answerWith(context, asked, answer.text)
  else if (answer.kind === 'closed') await context.back?.()
}

function fieldOf({ question, round, text, options, assumption, agent }: AskedQuestion): Question {
  const words = oneLine(text, TEXT_CHARS)
  const by = agent === undefined ? '' : ` by ${agentOf(agent)}`
  return {
    title: `${question}${SPACE}${words.length > TITLE_CHARS ? `asked in round ${round}${by}` : words}`,
    body: [
      ...(words.length > TITLE_CHARS ? [words] : []),
      `Until you answer, the agent assumes: ${oneLine(assumption, TEXT_CHARS)}`,
    ],
    options: options.map((option, index) => ({ id: String(index), label: oneLine(option, CHOICE_CHARS) })),
    freeText: options.length === 0 ? 'Your answer' : 'Answer in words …',
    takesCommands: true,
    ofQuestion: question,
  }
}

/** Gives the answer, and says who reads it; words that could not be given stand in the composer again. */
async function answerWith({ model, host }: QuestionContext, asked: AskedQuestion, answer: string): Promise<void> {
  const { question, options } = asked
  const isWords = !options.includes(answer)
  if (isWords) host.remember(answer)
  try {
    const became = await host.answer(asked, answer)
    model.notice(`Answered ${question}: ${oneLine(answer, 200)}. ${became}`, 'good', 'whole')
  } catch (error) {
    if (isWords) model.giveBack(answer)
    if (!(error instanceof UserError)) throw error
    model.notice(withCode(error), 'warning', 'whole')
  }
}

/** `/answer [question] [answer]`: answers a question, or opens the field of one; what is to be decided where no question is open. */
export async function answerCommand(context: QuestionContext, typed: string): Promise<void> {
  const { model } = context
  const open = openQuestions(model)
  if (open.length === 0) {
    if (openDecision(model) === null) model.notice('No question is open', 'warning')
    else await answerDecision(context, typed)
    return
  }
  const meant = answerMeant(typed, open)
  if (meant.kind === 'choose') await openAsked(context)
  else if (meant.kind === 'open') await askQuestion(context, meant.asked)
  else if (meant.kind === 'answer') await answerWith(context, meant.asked, meant.answer)
  else {
    model.giveBack(`/answer ${typed}`.trimEnd())
    model.notice(meant.problem, 'warning', 'whole')
  }
}

/** What stands behind `/answer`. */
type AnswerMeant =
  | { kind: 'answer'; asked: AskedQuestion; answer: string }
  | { kind: 'open'; asked: AskedQuestion }
  | { kind: 'choose' }
  | { kind: 'problem'; problem: string }

/**
 * What `/answer` is to do: `1 2` is choice 2 of Q1, `1 some words` and `Q1 some words` are words for it, `Q1` opens its field.
 * Where one question alone is open, a number alone is its choice, and words are its answer. Pure.
 * @param open at least one
 */
export function answerMeant(typed: string, open: readonly AskedQuestion[]): AnswerMeant {
  const said = typed.trim()
  const only = open.length === 1 ? open[0] : undefined
  if (said === '') return { kind: 'choose' }
  const [, prefix = '', number = '', words] = /^(\S*[Qq])?(\d{1,6})(?:\s+(\S[\s\S]*))?$/.exec(said) ?? []
  const asked = open.find(({ question }) => question === `Q${number}`)
  if (number === '') return only === undefined ? whichOne(open) : answerTo(only, said)
  if (prefix !== '') {
    if (asked === undefined) return notOpen(number, open)
    return words === undefined ? { kind: 'open', asked } : answerTo(asked, words)
  }
  if (words === undefined) return only === undefined ? whichOne(open) : answerTo(only, said)
  if (asked !== undefined) return answerTo(asked, words)
  // Two numbers are a question and its choice, and no answer in words to another one.
  return only === undefined || /^\d+$/.test(words) ? notOpen(number, open) : answerTo(only, said)
}

function answerTo(asked: AskedQuestion, words: string): AnswerMeant {
  try {
    return { kind: 'answer', asked, answer: chosenAnswer(words, asked) }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { kind: 'problem', problem: withCode(error) }
  }
}

function whichOne(open: readonly AskedQuestion[]): AnswerMeant {
  const number = open[0]?.question.slice(1) ?? '1'
  return {
    kind: 'problem',
    problem: `${namesOf(open)} are open; say which first: /answer ${number} 2 is choice 2 of Q${number}`,
  }
}

function notOpen(number: string, open: readonly AskedQuestion[]): AnswerMeant {
  return {
    kind: 'problem',
    problem: `Q${number} needs no answer; ${namesOf(open)} ${open.length === 1 ? 'does' : 'do'}`,
  }
}

const MOST_NAMED = 6

function namesOf(open: readonly AskedQuestion[]): string {
  const names = open.slice(0, MOST_NAMED).map(({ question }) => question)
  const left = open.length - names.length
  if (left > 0) return `${names.join(', ')} and ${left} more`
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
