import type { ServerNotification } from '../../../protocol/codex.ts'
import { memberOf, numberMember, stringMember } from '../codex/wire.ts'

/** True if a message is a line of `codex exec --json`: an app-server's have a method or an id. */
export function isExecLine(message: object): boolean {
  return typeof memberOf(message, 'type') === 'string' && memberOf(message, 'method') === undefined
}

/** Id of the only turn of a `codex exec`, which has none. */
const TURN = 'turn-1'

/**
 * Converts the lines of one `codex exec --json` to app-server notifications, so that the same code translates both. Unknown
 * lines keep their name and are skipped as unknown messages. Lines have fewer details: no phase of a message, no directory
 * or duration of a command, no diff of a file change, no `codexErrorInfo` of a failed turn. Tokens come once, at the end of
 * the turn. Reads the details that `ExecJson` adds.
 */
export class ExecLines {
  readonly #directory: string
  #thread = 'thread'

  /** @param directory where its commands run; absolute */
  constructor(directory: string) {
    this.#directory = directory
  }

  /** Returns the notifications for a line. */
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
        const ended =
          stringMember(line, 'status') === 'interrupted'
            ? turn('interrupted')
            : turn('failed', errorOf(memberOf(line, 'error')))
        return [...this.#usage(memberOf(line, 'usage')), this.#of('turn/completed', { turn: ended })]
      }
      case 'error': {
        const error = errorOf(line)
        const given = memberOf(line, 'will_retry')
        const willRetry = typeof given === 'boolean' ? given : RETRIES.test(error.message)
        return [this.#of('error', { error, willRetry })]
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
      if (type !== 'item.completed') return []
      const rerouted = memberOf(item, 'rerouted')
      if (rerouted === undefined) return [this.#of('warning', errorOf(item))]
      const { from: fromModel, to: toModel, reason } = namesOf(rerouted, 'from', 'to', 'reason')
      return [this.#of('model/rerouted', { fromModel, toModel, reason })]
    }
    if (kind === 'todo_list') {
      // Its end repeats the last update.
      if (type === 'item.completed') return []
      const explanation = stringMember(item, 'explanation')
      return [this.#of('turn/plan/updated', { explanation, plan: listOf(memberOf(item, 'items')).map(stepOf) })]
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
    const durationMs = numberMember(item, 'duration_ms')
    switch (type) {
      case 'agent_message':
        return { type: 'agentMessage', id, text, phase: stringMember(item, 'phase') }
      case 'reasoning': {
        const parts = listOf(memberOf(item, 'parts')).map(String)
        return { type: 'reasoning', id, summary: parts.length > 0 ? parts : [text], content: [] }
      }
      case 'command_execution':
        return {
          type: 'commandExecution',
          id,
          command: stringMember(item, 'command') ?? '',
          cwd: stringMember(item, 'cwd') ?? this.#directory,
          status,
          commandActions: [],
          aggregatedOutput: stringMember(item, 'aggregated_output'),
          exitCode: numberMember(item, 'exit_code'),
          durationMs,
        }
      case 'file_change':
        return { type: 'fileChange', id, status, changes: listOf(memberOf(item, 'changes')).map(changeOf) }
      case 'mcp_tool_call': {
        const message = stringMember(memberOf(item, 'error'), 'message')
        const error = message === null ? null : { message }
        return { type: 'mcpToolCall', id, ...namesOf(item, 'server', 'tool'), status, error, durationMs }
      }
      case 'collab_tool_call': {
        const receiverThreadIds = listOf(memberOf(item, 'receiver_thread_ids')).map(String)
        const prompt = stringMember(item, 'prompt')
        const tool = camel(stringMember(item, 'tool') ?? '')
        return { type: 'collabAgentToolCall', id, tool, receiverThreadIds, prompt, status }
      }
      case 'web_search':
        return { type: 'webSearch', id, query: stringMember(item, 'query') ?? '' }
      case 'plan':
        return { type, id, text }
      case 'dynamic_tool_call': {
        const contentItems = listOf(memberOf(item, 'content'))
        const success = memberOf(item, 'success')
        return { type: 'dynamicToolCall', id, ...namesOf(item, 'tool'), success, contentItems, status, durationMs }
      }
      case 'sub_agent_activity': {
        const { agent_thread_id: agentThreadId, action: kind } = namesOf(item, 'agent_thread_id', 'action')
        return { type: 'subAgentActivity', id, agentThreadId, kind }
      }
      case 'image_view':
        return { type: 'imageView', id, ...namesOf(item, 'path') }
      case 'image_generation':
        return { type: 'imageGeneration', id, savedPath: stringMember(item, 'path') }
      default:
        return { type: camel(type), id }
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

/** Matches codex's message during its own retries. */
const RETRIES = /^Reconnecting\b/i

/** Returns the error of a turn by its `message`, with its added `codexErrorInfo` or the one for its words. */
function errorOf(error: unknown): { message: string; codexErrorInfo: unknown; additionalDetails: string | null } {
  const said = stringMember(error, 'message') ?? 'codex gave no reason'
  const details = stringMember(error, 'additional_details')
  const behind = ` (${details})`
  const message = details !== null && said.endsWith(behind) ? said.slice(0, -behind.length) : said
  const added = memberOf(error, 'codex_error_info')
  const info = added === undefined ? (INFO_IN_WORDS.find(([says]) => says.test(said))?.[1] ?? null) : added
  return { message, codexErrorInfo: info, additionalDetails: details }
}

/** App-server names of failures, by the words of codex 0.169. */
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
  const [isDone, isBegun] = [memberOf(item, 'completed') === true, memberOf(item, 'in_progress') === true]
  return { step: stringMember(item, 'text') ?? '', status: isDone ? 'completed' : isBegun ? 'inProgress' : 'pending' }
}

function changeOf(change: unknown): object {
  const kind = stringMember(change, 'kind') ?? 'update'
  const [diff, to] = [stringMember(change, 'diff') ?? '', stringMember(change, 'move_path')]
  return { path: stringMember(change, 'path') ?? '', kind: { type: kind, move_path: to }, diff }
}

function namesOf(item: unknown, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map(name => [name, stringMember(item, name) ?? '']))
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** `spawn_agent` as `spawnAgent`. */
function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
