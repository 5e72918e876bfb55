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

/** Returns codemachine's own tools as parameters of `thread/start`. */
export function dynamicTools(tools: readonly HostTool[]): DynamicToolSpec[] {
  return tools.map(({ name, description, inputSchema }) => {
    return { type: 'function', name, description, inputSchema: inputSchema as JsonValue }
  })
}

/** Calls one of codemachine's tools. Always resolves, because a call without an answer would block the turn forever. */
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
  // `async` turns an immediate throw into a rejection.
  const answer = (async () => onToolCall({ tool, arguments: args }, settled.signal))().catch((error: unknown) => {
    log(`The tool ${tool} failed: ${messageOf(error)}`)
    return failed(`The tool "${tool}" failed. Continue without it.`)
  })
  return await Promise.race([answer, late])
}

/** Returns an answer in codex's format. */
function toolCallResponse({ text, success }: ToolAnswer): DynamicToolCallResponse {
  return { contentItems: [{ type: 'inputText', text: boundedText(text) }], success }
}

function failed(text: string): ToolAnswer {
  return { text, success: false }
}

/** Returns a signal that aborts with the other one or on disposal. */
function ending(over: AbortSignal): { signal: AbortSignal } & Disposable {
  const done = new AbortController()
  return { signal: AbortSignal.any([over, done.signal]), [Symbol.dispose]: () => done.abort() }
}

interface RoundToolsOptions {
  feed: RoundFeed
  /** Codemachine's tools of the thread. */
  tools: readonly HostTool[]
  /** Returns the current handler of tool calls; undefined: none. */
  onToolCall(): RoundRun['onToolCall'] | undefined
  clock: Clock
  /** Longest time of a command, ms. */
  commandMs: number
  /** Aborted when the round is over. */
  over: AbortSignal
  log(message: string): void
}

/** Share of a command's time limit for codemachine's tools, so that they answer before codex counts as hung. */
const ANSWER_SHARE = 0.9

/** Answers the tool calls of a round's agent, and keeps codex's own questions. */
export class RoundTools {
  readonly #options: RoundToolsOptions

  constructor(options: RoundToolsOptions) {
    this.#options = options
  }

  /** Answers a call of codemachine's tool. Codex shows a successful one as an item. */
  async call(params: DynamicToolCallParams): Promise<DynamicToolCallResponse> {
    const answer = await callHostTool(params, this.#options)
    if (!answer.success)
      this.#options.feed.requestAnswered('item/tool/call', {
        subject: boundedText(params.tool),
        answer: boundedText(answer.text),
      })
    return toolCallResponse(answer)
  }

  /** Keeps codex's own questions; nobody waits for an answer. */
  keep(questions: readonly ToolCall[]): void {
    const { feed, onToolCall, over, log } = this.#options
    const failed = (error: unknown) => log(`A question of codex is not saved: ${messageOf(error)}`)
    for (const question of questions) feed.whenOpen(() => void onToolCall()?.(question, over).catch(failed))
  }
}

/** The response to a request of codex, and how it is described to the person. */
interface Answered {
  result: unknown
  /** The requested command, tool or question, bounded like all texts of events. */
  subject: string
  /** The answer in a word or two. */
  answer: string
}

/**
 * Answers a request of codex without a person: allowed actions run inside of the sandbox (`APPROVAL_POLICY`). Throws a
 * `ResponseError` for an unknown one.
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

/** Returns codex's own questions to a person as calls of `ask_person`, to keep them like agents' questions. */
export function questionsInRequest({ questions }: ToolRequestUserInputParams): ToolCall[] {
  return questions.map(asked => {
    const options = asked.options?.map(({ label }) => label) ?? []
    return asCall(asked.question, options, preferredOption(asked))
  })
}

/** As `questionsInRequest`, for an item: a message may ask without waiting for an answer. */
export function questionsInItem(item: ThreadItem): ToolCall[] {
  // Recordings of an older codex lack `questions`.
  if (item.type !== 'agentMessage' || !Array.isArray(item.questions)) return []
  return item.questions.map(({ title, options }) => {
    return asCall(title, options ?? [], options?.find(option => PREFERRED.test(option)) ?? options?.[0] ?? null)
  })
}

/** Returns codex's default option: the one it recommends, or the first; null: no options. */
function preferredOption({ options }: Pick<RequestedQuestion, 'options'>): string | null {
  const preferred = options?.find(({ label, description }) => PREFERRED.test(`${label} ${description}`))
  return (preferred ?? options?.[0])?.label ?? null
}

/** Codex's instructions tell it to mark its preferred option so and put it first. */
const PREFERRED = /\b(?:recommended|preferred|suggested|default)\b/i

const OWN_JUDGEMENT = 'its own best judgement'

/** Returns a question as a call, with long texts cut, because nobody can shorten them. */
function asCall(text: string, choices: string[], preferred: string | null): ToolCall {
  const question = truncate(text, MOST_TEXT)
  const options = choices.slice(0, MOST_OPTIONS).map(choice => truncate(choice, MOST_OPTION))
  const assumption = truncate(preferred ?? OWN_JUDGEMENT, MOST_TEXT)
  return { tool: ASK_PERSON, arguments: { question, options, assumption } satisfies Question }
}
