import { clipEnd } from '../base/text.ts'
import type { ToolAnswer, ToolCall } from '../core/engine.ts'
import {
  type AgentTask,
  type AnsweredTool,
  askPersonTool,
  type Question,
  questionKey,
  readQuestion,
  readRunAgent,
  runAgentTool,
} from '../core/shapes/tools.ts'
import { inEffect, inTemplate } from '../core/template.ts'
import type { SessionLog } from './session-log.ts'

/** The tools that codemachine answers in a session, by name: it reads the arguments, and does what is asked for. */
export class HostTools {
  readonly #tools: ReadonlyMap<string, AnsweredTool>

  /** @param tools of two with one name the first one counts */
  constructor(tools: readonly AnsweredTool[]) {
    this.#tools = new Map(tools.toReversed().map(tool => [tool.offer.name, tool]))
  }

  /**
   * Answers a call; `over` is aborted when nobody waits for the answer any more. A tool that is not there, and arguments
   * that it cannot take, get a refusal that the model can read. Rejects only if what the tool does fails.
   */
  async answer({ tool: name, arguments: args }: ToolCall, over: AbortSignal): Promise<ToolAnswer> {
    const tool = this.#tools.get(name)
    if (tool === undefined) return { text: this.#refusal(name), success: false }
    const call = tool.read(args)
    if ('problem' in call) return { text: String(call.problem), success: false }
    return await tool.answer(call, over)
  }

  #refusal(name: string): string {
    const names = [...this.#tools.keys()].toSorted().join(', ')
    const others = names === '' ? '' : ` What it answers: ${names}.`
    return `codemachine answers no tool named "${clipEnd(name, NAME_CHARACTERS)}".${others} Continue without it.`
  }
}

const NAME_CHARACTERS = 100

/** A tool of a template's own: whatever it throws names the template. */
export function answerInTemplate(template: string, tool: AnsweredTool): AnsweredTool {
  const where = `tool ${tool.offer.name}`
  return {
    offer: tool.offer,
    read: args => inTemplate(template, where, () => tool.read(args)),
    answer: (call, over) => inEffect(template, where, () => tool.answer(call, over)),
  }
}

/** The tool `run_agent`; `run` has an agent do what is asked for. */
export function answerRunAgent(
  run: (task: AgentTask, over: AbortSignal) => Promise<ToolAnswer>,
): AnsweredTool<AgentTask> {
  return { offer: runAgentTool, read: readRunAgent, answer: run }
}

/** The most questions that one session keeps. */
const MOST_QUESTIONS = 50

interface QuestionNoteOptions {
  log: Pick<SessionLog, 'state' | 'emit'>
  /** The instance that asks; left out: the round's own agent. */
  agent?: string
  /** Takes secrets out of a text, as the log does: by what is left a question is known again. */
  redact(text: string): string
}

/** The tool `ask_person`: keeps what an agent would have asked, and tells it how to go on. */
export function answerAskPerson(options: QuestionNoteOptions): AnsweredTool<Question> {
  return { offer: askPersonTool, read: readQuestion, answer: async question => noteQuestion(question, options) }
}

function noteQuestion({ question: asked, options, assumption }: Question, { log, agent, redact }: QuestionNoteOptions) {
  const text = redact(asked)
  const { state } = log
  const known = state.asked.indexOf(questionKey(text))
  if (known !== -1) return { text: `This is kept already, as Q${known + 1}. ${GO_ON}`, success: true }
  if (state.questions >= MOST_QUESTIONS) {
    const text = `${MOST_QUESTIONS} questions are kept, and no more are taken. Decide for yourself, and note in MAIN.md what you assumed.`
    return { text, success: false }
  }
  const question = `Q${state.questions + 1}`
  const round = state.running?.round ?? state.last?.round ?? 0
  log.emit({ type: 'question-asked', round, question, text, options, assumption, ...(agent && { agent }) })
  return { text: `Nobody is there now. The question is kept, as ${question}. ${GO_ON}`, success: true }
}

const GO_ON = 'Continue with your assumption, and note it in MAIN.md.'
