import type { ServerNotification, ServerRequest, ThreadItem } from '../../../protocol/codex.ts'
import { snakeCase } from '../../base/text.ts'
import type { ModelInUse } from '../../core/engine.ts'
import { threadOf } from '../codex/round.ts'
import { modelInUse } from '../codex/thread-start.ts'
import { answerRequest } from '../codex/tools.ts'
import { translate } from '../codex/translate.ts'
import { memberOf, numberMember, parseObject, stringMember } from '../codex/wire.ts'
import { isExecLine } from './exec-lines.ts'

/** A line as an object: its `type` and other fields. */
type Line = { type: string } & Readonly<Record<string, unknown>>

/**
 * Converts the lines of one recorded round of any engine (`rounds/001.ndjson`) to lines of `codex exec --json`; lines of the
 * engine exec stay unchanged. For details that only an app-server reports, adds fields and kinds of items that other readers
 * skip. So a replay shows the same as the round. Omits the input, agents of another thread, tokens before the end of the
 * turn, and the account's limits.
 */
export class ExecJson {
  #thread: string | null = null
  /** Ids of begun items, by codex's ids. */
  readonly #begun = new Map<string, string>()
  #items = 0
  #plan: { id: string; said: object } | null = null
  #usage: object | null = null

  /** Returns the lines for one line of the record, without line ends; none for a line that is no message of codex. */
  lines(recorded: string): readonly string[] {
    const message = parseObject(recorded)
    if (message === null) return []
    if (isExecLine(message)) return [recorded]
    try {
      return this.#said(message).map(line => JSON.stringify(line))
    } catch {
      // The wire is open: skip a malformed line.
      return []
    }
  }

  #said(message: object): Line[] {
    if (typeof memberOf(message, 'method') !== 'string') return this.#answer(message)
    if (memberOf(message, 'id') !== undefined) return this.#request(message as ServerRequest)
    return this.#notification(message as ServerNotification)
  }

  /** Converts an answer to codemachine; the one to `thread/start` names the thread of the round. */
  #answer(message: object): Line[] {
    const result = memberOf(message, 'result')
    const id = memberOf(memberOf(result, 'thread'), 'id')
    if (typeof id !== 'string') return []
    return this.#threadStarted(id, modelInUse(result))
  }

  #threadStarted(id: string, { model, effort }: ModelInUse = {}): Line[] {
    this.#thread = id
    this.#usage = null
    this.#plan = null
    this.#begun.clear()
    // JSON omits undefined members.
    return [{ type: 'thread.started', thread_id: id, model, reasoning_effort: effort }]
  }

  #request(request: ServerRequest): Line[] {
    // The item of the call shows its result.
    if (request.method === 'item/tool/call') return []
    const { subject, answer } = answerRequest(request)
    return [{ type: 'request.answered', method: request.method, subject, answer }]
  }

  #notification(message: ServerNotification): Line[] {
    if (message.method === 'thread/started' && this.#thread === null)
      return this.#threadStarted(message.params.thread.id)
    const thread = threadOf(message)
    if (thread !== null && this.#thread !== null && thread !== this.#thread) return []
    switch (message.method) {
      case 'turn/started':
        return [{ type: 'turn.started' }]
      case 'item/started':
        return this.#itemBegun(message.params.item)
      case 'item/completed':
        return this.#itemEnded(message.params.item)
      case 'turn/plan/updated':
        return this.#planUpdated(message.params.plan, message.params.explanation ?? null)
      case 'thread/tokenUsage/updated': {
        const { total } = message.params.tokenUsage
        // For a full context, codex reports only its size.
        if (total.inputTokens + total.outputTokens > 0 || this.#usage === null) this.#usage = usageOf(total)
        return []
      }
      case 'error': {
        const { error, willRetry } = message.params
        return [{ type: 'error', ...errorOf(error), will_retry: willRetry }]
      }
      case 'model/rerouted': {
        const { fromModel: from, toModel: to, reason } = message.params
        const words = `model rerouted: ${from} -> ${to} (${String(reason)})`
        return [this.#remark(words, { rerouted: { from, to, reason: String(reason) } })]
      }
      case 'turn/completed':
        return [...this.#planEnded(), this.#turnEnded(message.params.turn)]
      default:
        return this.#warning(message)
    }
  }

  /** Converts other messages that become a warning for a person. */
  #warning(message: ServerNotification): Line[] {
    const said = translate(message, 1)
    return said.kind === 'event' && said.event.type === 'warning' ? [this.#remark(said.event.message)] : []
  }

  #remark(message: string, more: object = {}): Line {
    return { type: 'item.completed', item: { id: this.#nextId(), type: 'error', message, ...more } }
  }

  #itemBegun(item: ThreadItem): Line[] {
    const said = NEVER_BEGUN.has(item.type) ? null : itemOf(item)
    if (said === null) return []
    const isAgain = this.#begun.has(item.id)
    const id = this.#begun.get(item.id) ?? this.#nextId()
    this.#begun.set(item.id, id)
    return [{ type: isAgain ? 'item.updated' : 'item.started', item: { id, ...said } }]
  }

  #itemEnded(item: ThreadItem): Line[] {
    const said = itemOf(item)
    if (said === null) return []
    const id = this.#begun.get(item.id) ?? this.#nextId()
    this.#begun.delete(item.id)
    return [{ type: 'item.completed', item: { id, ...said } }]
  }

  #planUpdated(plan: readonly { step: string; status: string }[], explanation: string | null): Line[] {
    const items = plan.map(({ step, status }) => ({
      text: step,
      completed: status === 'completed',
      ...(status === 'inProgress' ? { in_progress: true } : {}),
    }))
    const isNew = this.#plan === null
    const id = this.#plan?.id ?? this.#nextId()
    const said = { id, type: 'todo_list', items, ...(explanation === null ? {} : { explanation }) }
    this.#plan = { id, said }
    return [{ type: isNew ? 'item.started' : 'item.updated', item: said }]
  }

  #planEnded(): Line[] {
    const said = this.#plan?.said
    this.#plan = null
    return said === undefined ? [] : [{ type: 'item.completed', item: said }]
  }

  #turnEnded({ status, error }: { status: string; error: object | null }): Line {
    const usage = this.#usage
    if (status === 'completed') return { type: 'turn.completed', usage: usage ?? usageOf({}) }
    const why = error === null ? { message: `the turn ended as ${status}` } : errorOf(error)
    const more = { ...(usage === null ? {} : { usage }), ...(status === 'failed' ? {} : { status }) }
    return { type: 'turn.failed', error: why, ...more }
  }

  #nextId(): string {
    return `item_${this.#items++}`
  }
}

/** Items of which `codex exec` prints only the end. */
const NEVER_BEGUN: ReadonlySet<string> = new Set(['agentMessage', 'reasoning'])

/** Returns an item without its id; null for an omitted one. */
function itemOf(item: ThreadItem): object | null {
  switch (item.type) {
    case 'userMessage':
      return null
    case 'agentMessage': {
      const { text, phase } = item
      return { type: 'agent_message', text, ...(phase == null ? {} : { phase }) }
    }
    case 'reasoning': {
      const parts = item.summary.length > 0 ? item.summary : item.content
      const text = parts.join('\n')
      if (text.trim() === '') return null
      return { type: 'reasoning', text, ...(parts.length > 1 ? { parts } : {}) }
    }
    case 'plan':
      return { type: 'plan', text: item.text }
    case 'commandExecution': {
      const { command, aggregatedOutput, exitCode, status, cwd } = item
      const said = { command, aggregated_output: aggregatedOutput ?? '', exit_code: exitCode ?? null }
      return { type: 'command_execution', ...said, status: statusOf(status), cwd, ...tookOf(item) }
    }
    case 'fileChange': {
      const changes = item.changes.map(({ path, kind, diff }) => {
        const to = kind.type === 'update' ? kind.move_path : null
        return { path, kind: kind.type, diff, ...(to == null ? {} : { move_path: to }) }
      })
      return { type: 'file_change', changes, status: statusOf(item.status) }
    }
    case 'mcpToolCall': {
      const { server, tool, arguments: args, result, error } = item
      const { content = [], structuredContent = null } = result ?? {}
      const came = result == null ? null : { content, structured_content: structuredContent }
      const failed = error == null ? null : { message: error.message }
      const said = { server, tool, arguments: args, result: came, error: failed }
      return { type: 'mcp_tool_call', ...said, status: statusOf(item.status), ...tookOf(item) }
    }
    case 'webSearch':
      return { type: 'web_search', query: item.query, action: item.action ?? { type: 'other' } }
    case 'collabAgentToolCall':
      return collabOf(item)
    default:
      return itemOfAppServer(item)
  }
}

function collabOf(item: Extract<ThreadItem, { type: 'collabAgentToolCall' }>): object {
  const states = Object.entries(item.agentsStates ?? {}).map(([thread, state]) => {
    const status = snakeCase(stringMember(state, 'status') ?? '')
    return [thread, { status, message: stringMember(state, 'message') }]
  })
  return {
    type: 'collab_tool_call',
    tool: snakeCase(item.tool),
    sender_thread_id: item.senderThreadId,
    receiver_thread_ids: item.receiverThreadIds,
    prompt: item.prompt,
    agents_states: Object.fromEntries(states),
    status: statusOf(item.status),
  }
}

/** Converts an item of a kind that `codex exec` does not print. */
function itemOfAppServer(item: ThreadItem): object {
  const type = snakeCase(item.type)
  switch (item.type) {
    case 'dynamicToolCall': {
      const { tool, arguments: args, success, contentItems: content } = item
      return { type, tool, arguments: args, success, content, status: statusOf(item.status), ...tookOf(item) }
    }
    case 'subAgentActivity':
      return { type, agent_thread_id: item.agentThreadId, action: item.kind }
    case 'imageView':
      return { type, path: item.path }
    case 'imageGeneration':
      return { type, path: item.savedPath ?? null }
    default:
      return { type }
  }
}

function tookOf(item: object): object {
  const ms = numberMember(item, 'durationMs')
  return ms === null ? {} : { duration_ms: ms }
}

function statusOf(status: string): string {
  return status === 'interrupted' ? 'failed' : snakeCase(status)
}

/** Returns an error in the words of `codex exec` and the fields of the app-server. */
function errorOf(error: object): { message: string; [more: string]: unknown } {
  const message = stringMember(error, 'message') ?? ''
  const details = stringMember(error, 'additionalDetails')
  const info = memberOf(error, 'codexErrorInfo') ?? null
  if (!details) return { message, codex_error_info: info }
  return { message: `${message} (${details})`, codex_error_info: info, additional_details: details }
}

function usageOf(total: object): object {
  const count = (name: string) => numberMember(total, name) ?? 0
  return {
    input_tokens: count('inputTokens'),
    cached_input_tokens: count('cachedInputTokens'),
    cache_write_input_tokens: count('cacheWriteInputTokens'),
    output_tokens: count('outputTokens'),
    reasoning_output_tokens: count('reasoningOutputTokens'),
  }
}
