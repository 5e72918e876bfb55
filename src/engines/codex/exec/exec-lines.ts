import type { ServerNotification } from '../../../../protocol/codex.ts'
import { memberOf, numberMember, stringMember } from '../wire.ts'

/** Whether a message is a line of `codex exec --json`: those of an app-server have a method or an id. */
export function isExecLine(message: object): boolean {
  return typeof memberOf(message, 'type') === 'string' && memberOf(message, 'method') === undefined
}

/** The id of the one turn of a `codex exec`, which names none. */
const TURN = 'turn-1'

/**
 * Says in the words of an app-server what the lines of one `codex exec --json` say, so that both are translated by the
 * same code. What is not known keeps its name, and is passed over as an unknown message of codex.
 *
 * Such a line says less: a message has no phase, a command no directory and no duration, a file change no diff, a failed
 * turn no `codexErrorInfo`; tokens come once, at the end of the turn.
 */
export class ExecLines {
  readonly #directory: string
  #thread = 'thread'

  /** @param directory where its commands run; absolute */
  constructor(directory: string) {
    this.#directory = directory
  }

  /** The notifications that a line stands for. */
  take(line: object): ServerNotification[] {
    return this.#said(line).map(said => said as unknown as ServerNotification)
  }

  #said(line: object): { method: string; params: object }[] {
    const type = stringMember(line, 'type') ?? ''
    const turn = (status: string, error: object | null = null) => ({ id: TURN, items: [], status, error })
    switch (type) {
      case 'thread.started':
        this.#thread = stringMember(line, 'thread_id') ?? this.#thread
        return [this.#of('thread/started', { thread: { id: this.#thread } })]
      case 'turn.started':
        return [this.#of('turn/started', { turn: turn('inProgress') })]
      case 'turn.completed':
        return [...this.#usage(memberOf(line, 'usage')), this.#of('turn/completed', { turn: turn('completed') })]
      case 'turn.failed': {
        const error = errorOf(memberOf(line, 'error'))
        return [this.#of('turn/completed', { turn: turn('failed', error) })]
      }
      case 'error': {
        const error = errorOf(line)
        return [this.#of('error', { error, willRetry: RETRIES.test(error.message) })]
      }
      case 'item.started':
      case 'item.updated':
      case 'item.completed':
        return this.#item(type, memberOf(line, 'item'))
      default:
        return [{ method: type, params: {} }]
    }
  }

  #of(method: string, params: object): { method: string; params: object } {
    return { method, params: { threadId: this.#thread, turnId: TURN, ...params } }
  }

  #item(type: string, item: unknown): { method: string; params: object }[] {
    const kind = memberOf(item, 'type')
    if (kind === 'error') {
      return type === 'item.completed' ? [this.#of('warning', errorOf(item))] : []
    }
    if (kind === 'todo_list') {
      // Its end repeats what was said last.
      if (type === 'item.completed') return []
      return [this.#of('turn/plan/updated', { explanation: null, plan: listOf(memberOf(item, 'items')).map(stepOf) })]
    }
    if (type === 'item.updated') return []
    const method = type === 'item.started' ? 'item/started' : 'item/completed'
    return [this.#of(method, { item: this.#itemOf(item) })]
  }

  #itemOf(item: unknown): object {
    const id = stringMember(item, 'id') ?? 'item'
    const text = stringMember(item, 'text') ?? ''
    const type = stringMember(item, 'type') ?? 'unknown'
    const status = STATUSES[stringMember(item, 'status') ?? ''] ?? 'completed'
    switch (type) {
      case 'agent_message':
        return { type: 'agentMessage', id, text, phase: null }
      case 'reasoning':
        return { type: 'reasoning', id, summary: [text], content: [] }
      case 'command_execution':
        return {
          type: 'commandExecution',
          id,
          command: stringMember(item, 'command') ?? '',
          cwd: this.#directory,
          status,
          commandActions: [],
          aggregatedOutput: stringMember(item, 'aggregated_output'),
          exitCode: numberMember(item, 'exit_code'),
          durationMs: null,
        }
      case 'file_change':
        return { type: 'fileChange', id, status, changes: listOf(memberOf(item, 'changes')).map(changeOf) }
      case 'mcp_tool_call': {
        const message = stringMember(memberOf(item, 'error'), 'message')
        const error = message === null ? null : { message }
        return { type: 'mcpToolCall', id, ...namesOf(item, 'server', 'tool'), status, error, durationMs: null }
      }
      case 'collab_tool_call': {
        const receiverThreadIds = listOf(memberOf(item, 'receiver_thread_ids')).map(String)
        const prompt = stringMember(item, 'prompt')
        return { type: 'collabAgentToolCall', id, ...namesOf(item, 'tool'), receiverThreadIds, prompt, status }
      }
      case 'web_search':
        return { type: 'webSearch', id, query: stringMember(item, 'query') ?? '' }
      default:
        return { type, id }
    }
  }

  #usage(usage: unknown): { method: string; params: object }[] {
    const [input, output] = [numberMember(usage, 'input_tokens'), numberMember(usage, 'output_tokens')]
    if (input === null || output === null) return []
    const total = {
      totalTokens: input + output,
      inputTokens: input,
      cachedInputTokens: numberMember(usage, 'cached_input_tokens') ?? 0,
      outputTokens: output,
      reasoningOutputTokens: numberMember(usage, 'reasoning_output_tokens') ?? 0,
    }
    return [this.#of('thread/tokenUsage/updated', { tokenUsage: { total, last: total, modelContextWindow: null } })]
  }
}

/** What codex says while it tries again by itself. */
const RETRIES = /^Reconnecting\b/i

/** The error of a turn by its `message`, with the `codexErrorInfo` that its words stand for. */
function errorOf(error: unknown): { message: string; codexErrorInfo: string | null; additionalDetails: null } {
  const text = stringMember(error, 'message') ?? 'codex gave no reason'
  const codexErrorInfo = INFO_IN_WORDS.find(([says]) => says.test(text))?.[1] ?? null
  return { message: text, codexErrorInfo, additionalDetails: null }
}

/** The names that an app-server gives to failures, by the words that codex 0.169 has for each. */
const INFO_IN_WORDS: readonly (readonly [RegExp, string])[] = [
  [
    /\busage limit\b|out of credits|spend cap|^quota exceeded|to use codex with your chatgpt plan/i,
    'usageLimitExceeded',
  ],
  [/ran out of room in the model's context window/i, 'contextWindowExceeded'],
  [/\bat capacity\b/i, 'serverOverloaded'],
  [/\bhigh demand\b/i, 'internalServerError'],
  [/^rate limit\b/i, 'rateLimitExceeded'],
  [/^exceeded retry limit\b/i, 'responseTooManyFailedAttempts'],
  [/^The model `[^`]*` does not exist/i, 'modelNotFound'],
  // The provider's own answer, as it came.
  [/^\s*\{|^stream disconnected before completion:|^Incomplete response returned\b|^error sending request/i, 'other'],
]

const STATUSES: Readonly<Record<string, string>> = { in_progress: 'inProgress', failed: 'failed', declined: 'declined' }

function stepOf(item: unknown): { step: string; status: string } {
  const isDone = memberOf(item, 'completed') === true
  return { step: stringMember(item, 'text') ?? '', status: isDone ? 'completed' : 'pending' }
}

function changeOf(change: unknown): object {
  const kind = stringMember(change, 'kind') ?? 'update'
  return { path: stringMember(change, 'path') ?? '', kind: { type: kind, move_path: null }, diff: '' }
}

function namesOf(item: unknown, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map(name => [name, stringMember(item, name) ?? '']))
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
