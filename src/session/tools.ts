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

/** The tools that codemachine answers in a session, by name. Parses the arguments and calls the tool. */
export class HostTools {
  readonly #tools: ReadonlyMap<string, AnsweredTool>

  /** @param tools of two with one name the first one counts */
  constructor(tools: readonly AnsweredTool[]) {
    this.#tools = new Map(tools.toReversed().map(tool => [tool.offer.name, tool]))
  }

  /**
   * Answers a call; `over` is aborted when nobody waits for the answer. An unknown tool or bad arguments get a refusal that
   * the model can read. Rejects only if the tool's action fails.
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

/** Wraps a tool of a template, so that each of its errors names the template. */
export function answerInTemplate(template: string, tool: AnsweredTool): AnsweredTool {
  const where = `tool ${tool.offer.name}`
  return {
    offer: tool.offer,
    read: args => inTemplate(template, where, () => tool.read(args)),
    answer: (call, over) => inEffect(template, where, () => tool.answer(call, over)),
  }
}

/** Returns the tool `run_agent`; `run` has an agent do the work. */
export function answerRunAgent(
  run: (task: AgentTask, over: AbortSignal) => Promise<ToolAnswer>,
): AnsweredTool<AgentTask> {
  return { offer: runAgentTool, read: readRunAgent, answer: run }
}

/** Most questions that one session keeps. */
const MOST_QUESTIONS = 50

interface QuestionNoteOptions {
  log: Pick<SessionLog, 'state' | 'emit'>
  /** The instance that asks; undefined: the round's own agent. */
  agent?: string
  /** Removes secrets from a text like the log, so that a repeated question is recognized. */
  redact(text: string): string
}

/** Returns the tool `ask_person`: stores an agent's question and tells it how to continue. */
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
