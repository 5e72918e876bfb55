import { questionKey, readQuestion } from './ask-person.ts'
import type { ToolAnswer, ToolCall } from './engine.ts'
import type { SessionLog } from './session-log.ts'

/** The most questions that one session keeps. */
const MOST_QUESTIONS = 50

export interface QuestionNoteOptions {
  log: Pick<SessionLog, 'state' | 'emit'>
  /** Takes secrets out of a text, as the log does: by what is left a question is known again. */
  redact(text: string): string
}

/** Keeps what an agent would have asked (a call of `ask_person`), and tells it how to go on. */
export function noteQuestion({ arguments: args }: ToolCall, { log, redact }: QuestionNoteOptions): ToolAnswer {
  const read = readQuestion(args)
  if ('problem' in read) return { text: read.problem, success: false }
  const text = redact(read.question)
  const { state } = log
  const known = state.asked.indexOf(questionKey(text))
  if (known !== -1) return { text: `This is kept already, as Q${known + 1}. ${GO_ON}`, success: true }
  if (state.questions >= MOST_QUESTIONS) {
    const text = `${MOST_QUESTIONS} questions are kept, and no more are taken. Decide for yourself, and note in MAIN.md what you assumed.`
    return { text, success: false }
  }
  const question = `Q${state.questions + 1}`
  const round = state.running?.round ?? state.last?.round ?? 0
  log.emit({ type: 'question-asked', round, question, text, options: read.options, assumption: read.assumption })
  return { text: `Nobody is there now. The question is kept, as ${question}. ${GO_ON}`, success: true }
}

const GO_ON = 'Go on with your assumption, and note it in MAIN.md.'
