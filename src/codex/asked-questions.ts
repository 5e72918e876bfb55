import type { ThreadItem, ToolRequestUserInputParams } from '../../protocol/codex.ts'
import { ASK_PERSON, MOST_OPTION, MOST_OPTIONS, MOST_TEXT, type Question } from '../session/ask-person.ts'
import type { ToolCall } from '../session/engine.ts'

type RequestedQuestion = ToolRequestUserInputParams['questions'][number]

/** What codex asks a person in its own way, as calls of `ask_person`: its questions are kept as those of agents are. */
export function questionsOfRequest({ questions }: ToolRequestUserInputParams): ToolCall[] {
  return questions.map(asked => {
    const options = asked.options?.map(({ label }) => label) ?? []
    return asCall(asked.question, options, preferredOption(asked))
  })
}

/** As `questionsOfRequest`, of an item: a message may ask without waiting for an answer. */
export function questionsOfItem(item: ThreadItem): ToolCall[] {
  // Older versions leave it out.
  if (item.type !== 'agentMessage' || !Array.isArray(item.questions)) return []
  return item.questions.map(({ title, options }) => {
    return asCall(title, options ?? [], options?.find(option => PREFERRED.test(option)) ?? options?.[0] ?? null)
  })
}

/** The option on which codex goes on: the one that it calls the better one, or the first; null if there are none. */
export function preferredOption({ options }: Pick<RequestedQuestion, 'options'>): string | null {
  const preferred = options?.find(({ label, description }) => PREFERRED.test(`${label} ${description}`))
  return (preferred ?? options?.[0])?.label ?? null
}

/** Codex is told to mark the option that it would take so, and to put it first. */
const PREFERRED = /\b(?:recommended|preferred|suggested|default)\b/i

const OWN_JUDGEMENT = 'its own best judgement'

/** What is too long is cut, for there is nobody to say it shorter. */
function asCall(text: string, choices: string[], preferred: string | null): ToolCall {
  const question = clipped(text, MOST_TEXT)
  const options = choices.slice(0, MOST_OPTIONS).map(choice => clipped(choice, MOST_OPTION))
  const assumption = clipped(preferred ?? OWN_JUDGEMENT, MOST_TEXT)
  return { tool: ASK_PERSON, arguments: { question, options, assumption } satisfies Question }
}

function clipped(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
