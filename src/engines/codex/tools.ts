import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node'
import type {
  DynamicToolCallParams,
  DynamicToolCallResponse,
  DynamicToolSpec,
  JsonValue,
  ServerRequest,
  ThreadItem,
  ToolRequestUserInputParams,
} from '../../../protocol/codex.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { truncate } from '../../base/text.ts'
import type { HostTool, RoundRun, ToolAnswer, ToolCall } from '../../core/engine.ts'
import { ASK_PERSON, MOST_OPTION, MOST_OPTIONS, MOST_TEXT, type Question } from '../../core/shapes/tools.ts'
import type { RoundFeed } from './round-feed.ts'
import { boundedText } from './translate-item.ts'

/** The tools that codemachine answers itself, as parameters of `thread/start`. */
export function dynamicTools(tools: readonly HostTool[]): DynamicToolSpec[] {
  return tools.map(({ name, description, inputSchema }) => {
    return { type: 'function', name, description, inputSchema: inputSchema as JsonValue }
  })
}

/** Has a tool of codemachine's called; resolves in any case, as a call without an answer would hold up the turn for ever. */
async function callHostTool(
  { tool, arguments: args }: DynamicToolCallParams,
  options: RoundToolsOptions,
): Promise<ToolAnswer> {
  const { tools, clock, over, log } = options
  const onToolCall = over.aborted ? undefined : options.onToolCall()
  const answerMs = options.commandMs * ANSWER_SHARE
  if (!tools.some(({ name }) => name === tool)) return failed(`There is no tool named "${tool}" here.`)
  if (onToolCall === undefined) return failed(`Nobody answers the tool "${tool}" now. Continue without it.`)
  using settled = ending(over)
  const late = clock.wait(answerMs, settled.signal).then(() => {
    return failed(`The tool "${tool}" has not answered within ${Math.round(answerMs / 1000)} s. Continue without it.`)
  })
  // `async`, so that what it throws at once is a rejection, too.
  const answer = (async () => onToolCall({ tool, arguments: args }, settled.signal))().catch((error: unknown) => {
    log(`The tool ${tool} failed: ${messageOf(error)}`)
    return failed(`The tool "${tool}" failed. Continue without it.`)
  })
  return await Promise.race([answer, late])
}

/** An answer as codex takes it. */
function toolCallResponse({ text, success }: ToolAnswer): DynamicToolCallResponse {
  return { contentItems: [{ type: 'inputText', text: boundedText(text) }], success }
}

function failed(text: string): ToolAnswer {
  return { text, success: false }
}

/** A signal that is aborted with the other one, or when it is disposed of. */
function ending(over: AbortSignal): { signal: AbortSignal } & Disposable {
  const done = new AbortController()
  return { signal: AbortSignal.any([over, done.signal]), [Symbol.dispose]: () => done.abort() }
}

interface RoundToolsOptions {
  feed: RoundFeed
  /** The tools of ours that the thread was given. */
  tools: readonly HostTool[]
  /** What answers them now; undefined: nobody does. */
  onToolCall(): RoundRun['onToolCall'] | undefined
  clock: Clock
  /** How long a command may take, ms. */
  commandMs: number
  /** Aborted when the round is over. */
  over: AbortSignal
  log(message: string): void
}

/** The part of a command's time limit that a tool of ours may take, so that it answers before codex counts as hung. */
const ANSWER_SHARE = 0.9

/** Answers the tool calls of the agent of a round, and keeps the questions that codex asks in its own way. */
export class RoundTools {
  readonly #options: RoundToolsOptions

  constructor(options: RoundToolsOptions) {
    this.#options = options
  }

  /** Answers a call of a tool of ours. What is answered well shows as an item of codex's. */
  async call(params: DynamicToolCallParams): Promise<DynamicToolCallResponse> {
    const answer = await callHostTool(params, this.#options)
    if (!answer.success)
      this.#options.feed.requestAnswered('item/tool/call', {
        subject: boundedText(params.tool),
        answer: boundedText(answer.text),
      })
    return toolCallResponse(answer)
  }

  /** Keeps what codex asks in its own way; nobody waits for an answer. */
  keep(questions: readonly ToolCall[]): void {
    const { feed, onToolCall, over, log } = this.#options
    const failed = (error: unknown) => log(`A question of codex is not saved: ${messageOf(error)}`)
    for (const question of questions) feed.whenOpen(() => void onToolCall()?.(question, over).catch(failed))
  }
}

/** The response to a request of codex, and how it is described to the person. */
interface Answered {
  result: unknown
  /** What was asked for: a command, a tool, a question. Bounded as all texts of events are. */
  subject: string
  /** What was answered, in a word or two. */
  answer: string
}

/**
 * Answers a request of codex while nobody watches: what it asks about runs inside of the sandbox (`APPROVAL_POLICY`).
 * Throws a `ResponseError` for one that it does not know.
 */
export function answerRequest(request: ServerRequest): Answered {
  const answered = answerTo(request)
  return { ...answered, subject: boundedText(answered.subject) }
}

function answerTo(request: ServerRequest): Answered {
  switch (request.method) {
    case 'item/commandExecution/requestApproval': {
      const { command, additionalPermissions, networkApprovalContext } = request.params
      const plain = !additionalPermissions && !networkApprovalContext
      const decision = plain ? 'accept' : 'decline'
      return { result: { decision }, subject: command ?? 'a command', answer: plain ? 'accepted' : 'declined' }
    }
    case 'item/fileChange/requestApproval':
      return { result: { decision: 'decline' }, subject: request.params.reason ?? 'a file change', answer: 'declined' }
    case 'item/permissions/requestApproval':
      return {
        result: { permissions: {}, scope: 'turn' },
        subject: request.params.reason ?? 'more permissions',
        answer: 'none granted',
      }
    case 'item/tool/requestUserInput': {
      const answers = Object.fromEntries(
        request.params.questions.map(asked => [asked.id, { answers: [assumed(preferredOption(asked))] }]),
      )
      const subject = request.params.questions.map(({ question }) => question).join(' ')
      return { result: { answers }, subject, answer: 'told to use its best judgement' }
    }
    case 'mcpServer/elicitation/request':
      return {
        result: { action: 'decline', content: null, _meta: null },
        subject: `a question of the MCP server "${request.params.serverName}"`,
        answer: 'declined',
      }
    default:
      throw new ResponseError(ErrorCodes.MethodNotFound, `codemachine does not answer ${request.method}.`)
  }
}

function assumed(option: string | null): string {
  const advice = option === null ? 'Use your best judgement, go on' : `Continue with "${option}"`
  return `Nobody is watching. ${advice}, and note in MAIN.md what you assumed.`
}

type RequestedQuestion = ToolRequestUserInputParams['questions'][number]

/** What codex asks a person in its own way, as calls of `ask_person`: its questions are kept as those of agents are. */
export function questionsInRequest({ questions }: ToolRequestUserInputParams): ToolCall[] {
  return questions.map(asked => {
    const options = asked.options?.map(({ label }) => label) ?? []
    return asCall(asked.question, options, preferredOption(asked))
  })
}

/** As `questionsInRequest`, of an item: a message may ask without waiting for an answer. */
export function questionsInItem(item: ThreadItem): ToolCall[] {
  // A recording of an older codex leaves it out.
  if (item.type !== 'agentMessage' || !Array.isArray(item.questions)) return []
  return item.questions.map(({ title, options }) => {
    return asCall(title, options ?? [], options?.find(option => PREFERRED.test(option)) ?? options?.[0] ?? null)
  })
}

/** The option on which codex goes on: the one that it calls the better one, or the first; null if there are none. */
function preferredOption({ options }: Pick<RequestedQuestion, 'options'>): string | null {
  const preferred = options?.find(({ label, description }) => PREFERRED.test(`${label} ${description}`))
  return (preferred ?? options?.[0])?.label ?? null
}

/** Codex is told to mark the option that it would take so, and to put it first. */
const PREFERRED = /\b(?:recommended|preferred|suggested|default)\b/i

const OWN_JUDGEMENT = 'its own best judgement'

/** What is too long is cut, for there is nobody to say it shorter. */
function asCall(text: string, choices: string[], preferred: string | null): ToolCall {
  const question = truncate(text, MOST_TEXT)
  const options = choices.slice(0, MOST_OPTIONS).map(choice => truncate(choice, MOST_OPTION))
  const assumption = truncate(preferred ?? OWN_JUDGEMENT, MOST_TEXT)
  return { tool: ASK_PERSON, arguments: { question, options, assumption } satisfies Question }
}
