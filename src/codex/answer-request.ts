import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node'
import type { ServerRequest } from '../../protocol/codex.ts'
import { preferredOption } from './asked-questions.ts'
import { boundedText } from './bounded-text.ts'

/** The answer to a request of codex, and how it is told to a person. */
export interface Answered {
  result: unknown
  /** What was asked for: a command, a tool, a question. Bounded as all texts of events are. */
  subject: string
  /** What was answered, in a word or two. */
  answer: string
}

/**
 * Answers a request of codex while nobody watches. Throws a `ResponseError` for one that it does not know.
 *
 * @param acceptsCommands whether a command that is asked about may run (`SandboxTerms`)
 */
export function answerRequest(request: ServerRequest, acceptsCommands: boolean): Answered {
  const answered = answerTo(request, acceptsCommands)
  return { ...answered, subject: boundedText(answered.subject) }
}

function answerTo(request: ServerRequest, acceptsCommands: boolean): Answered {
  switch (request.method) {
    case 'item/commandExecution/requestApproval': {
      const { command, additionalPermissions, networkApprovalContext } = request.params
      const plain = acceptsCommands && !additionalPermissions && !networkApprovalContext
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
  const advice = option === null ? 'Use your best judgement, go on' : `Go on with "${option}"`
  return `Nobody is watching. ${advice}, and note in MAIN.md what you assumed.`
}
