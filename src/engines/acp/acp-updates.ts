import type { SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk'
import { createTwoFilesPatch } from 'diff'
import type { ServerNotification } from '../../../protocol/codex.ts'
import { clipEnd } from '../../base/text.ts'
import { memberOf, numberMember, stringMember } from '../codex/wire.ts'

/** Longest kept message or thought, in characters. */
const MOST_TEXT = 1024 * 1024
/** Longest output of one tool, or file in a diff, in characters. */
const MOST_OUTPUT = 256 * 1024
/** Most tools of one turn that are followed at once. */
const MOST_OPEN = 1_000

type Said = { method: string; params: object }

/** A message or thought whose pieces are still coming. */
interface OpenText {
  type: 'agentMessage' | 'reasoning'
  id: string
  text: string
}

/** A tool call, as the agent has reported it so far. */
interface OpenTool {
  id: string
  kind: string
  title: string
  isOver: boolean
  status: string
  content: readonly ToolCallContent[]
  paths: readonly string[]
  rawInput: unknown
  rawOutput: unknown
  /** Output and exit code of the agent's own terminal; null: not reported. */
  terminal: { output: string; exitCode: number | null } | null
}

/**
 * Translates the updates of one session of the Agent Client Protocol into app-server notifications. So the same code
 * translates, journals and replays both. Unknown updates keep their name and are skipped.
 */
export class AcpUpdates {
  readonly #directory: string
  readonly #thread: string
  #turn = 'turn-0'
  #turns = 0
  #texts = 0
  #text: OpenText | null = null
  readonly #tools = new Map<string, OpenTool>()
  #contextWindow: number | null = null
  #fullUntil: number | null = null

  /** Reset time of the full usage window that Claude's agent last reported, Unix time in ms; null: none is full. */
  get fullUntil(): number | null {
    return this.#fullUntil
  }

  /** @param directory where its commands run; absolute */
  constructor(directory: string, thread: string) {
    this.#directory = directory
    this.#thread = thread
  }

  begin(): ServerNotification[] {
    this.#turn = `turn-${++this.#turns}`
    return this.#as([
      this.#of('turn/started', { turn: { id: this.#turn, items: [], status: 'inProgress', error: null } }),
    ])
  }

  /** Returns the notifications for an update. */
  take(update: SessionUpdate): ServerNotification[] {
    return this.#as(this.#said(update))
  }

  /** Ends all open texts and tools. `usage`: the agent's usage of the turn, `unknown` if it reports none. */
  end(usage: unknown): ServerNotification[] {
    const open = [...this.#tools.values()].filter(({ isOver }) => !isOver)
    this.#tools.clear()
    return this.#as([
      ...this.#endText(),
      ...open.map(tool => this.#of('item/completed', { item: this.#itemOf({ ...tool, status: 'failed' }) })),
      ...this.#usage(usage),
    ])
  }

  #as(said: readonly Said[]): ServerNotification[] {
    return said.map(each => each as unknown as ServerNotification)
  }

  #of(method: string, params: object): Said {
    return { method, params: { threadId: this.#thread, turnId: this.#turn, ...params } }
  }

  #said(update: SessionUpdate): Said[] {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        return this.#grow('agentMessage', update.content)
      case 'agent_thought_chunk':
        return this.#grow('reasoning', update.content)
      case 'tool_call':
      case 'tool_call_update':
        return [...this.#endText(), ...this.#tool(update)]
      case 'plan': {
        const plan = listOf(update.entries).map(entry => ({
          step: stringMember(entry, 'content') ?? '',
          status:
            stringMember(entry, 'status') === 'in_progress' ? 'inProgress' : (stringMember(entry, 'status') ?? ''),
        }))
        return [this.#of('turn/plan/updated', { explanation: null, plan })]
      }
      case 'usage_update':
        this.#contextWindow = numberMember(update, 'size')
        this.#noteLimit(memberOf(memberOf(update, '_meta'), '_claude/rateLimit'))
        return []
      case 'user_message_chunk':
      case 'available_commands_update':
      case 'current_mode_update':
      case 'config_option_update':
      case 'session_info_update':
      case 'compaction_summary_chunk':
        return []
      case 'compaction_update':
        return [this.#of('item/completed', { item: { type: 'contextCompaction', id: this.#newId() } })]
      case 'notice':
        return [this.#of('warning', { message: stringMember(update, 'message') ?? JSON.stringify(update) })]
      default:
        return [{ method: `session/update/${stringMember(update, 'sessionUpdate')}`, params: {} }]
    }
  }

  #grow(type: OpenText['type'], content: unknown): Said[] {
    const delta = stringMember(content, 'text') ?? `[${stringMember(content, 'type') ?? 'content'}]`
    const ended = this.#text !== null && this.#text.type !== type ? this.#endText() : []
    const begun = this.#text === null
    const open: OpenText = this.#text ?? { type, id: this.#newId(), text: '' }
    this.#text = { ...open, text: clipEnd(open.text + delta, MOST_TEXT) }
    const method = type === 'agentMessage' ? 'item/agentMessage/delta' : 'item/reasoning/summaryTextDelta'
    return [
      ...ended,
      ...(begun ? [this.#of('item/started', { item: textItem({ ...open, text: '' }) })] : []),
      this.#of(method, { itemId: open.id, delta, summaryIndex: 0 }),
    ]
  }

  #endText(): Said[] {
    const text = this.#text
    this.#text = null
    return text === null ? [] : [this.#of('item/completed', { item: textItem(text) })]
  }

  #tool(update: object): Said[] {
    const id = stringMember(update, 'toolCallId') ?? 'tool'
    const before = this.#tools.get(id)
    // Report an end only once. Do not follow an agent that opens tools without end.
    if (before?.isOver || (before === undefined && this.#tools.size >= MOST_OPEN)) return []
    const content = memberOf(update, 'content')
    const locations = memberOf(update, 'locations')
    const now: OpenTool = {
      id,
      kind: stringMember(update, 'kind') ?? before?.kind ?? 'other',
      title: stringMember(update, 'title') ?? before?.title ?? stringMember(update, 'name') ?? 'tool',
      status: stringMember(update, 'status') ?? before?.status ?? 'pending',
      content: Array.isArray(content) ? content : (before?.content ?? []),
      paths: Array.isArray(locations)
        ? locations.map(each => stringMember(each, 'path') ?? '').filter(path => path !== '')
        : (before?.paths ?? []),
      rawInput: memberOf(update, 'rawInput') ?? before?.rawInput,
      rawOutput: memberOf(update, 'rawOutput') ?? before?.rawOutput,
      terminal: terminalOf(memberOf(update, '_meta'), before?.terminal ?? null),
      isOver: false,
    }
    const isOver = now.status === 'completed' || now.status === 'failed'
    this.#tools.set(id, isOver ? { ...now, isOver, content: [], rawInput: null, rawOutput: null, terminal: null } : now)
    const started = before === undefined ? [this.#of('item/started', { item: this.#itemOf(now) })] : []
    return isOver ? [...started, this.#of('item/completed', { item: this.#itemOf(now) })] : started
  }

  #itemOf(tool: OpenTool): object {
    const { id, title, rawInput, rawOutput } = tool
    const status = tool.status === 'completed' || tool.status === 'failed' ? tool.status : 'inProgress'
    switch (tool.kind) {
      case 'execute': {
        const command = memberOf(rawInput, 'command')
        const exitCode =
          tool.terminal?.exitCode ?? numberMember(rawOutput, 'exitCode') ?? numberMember(rawOutput, 'exit_code')
        return {
          type: 'commandExecution',
          id,
          command: typeof command === 'string' ? command : Array.isArray(command) ? command.join(' ') : title,
          cwd: stringMember(rawInput, 'cwd') ?? this.#directory,
          status,
          commandActions: [],
          aggregatedOutput: status === 'inProgress' ? null : outputOf(tool),
          exitCode,
          durationMs: null,
        }
      }
      case 'edit':
      case 'delete':
      case 'move':
        return { type: 'fileChange', id, status, changes: changesOf(tool) }
      default:
        return { type: 'dynamicToolCall', id, tool: clipEnd(title, 200), arguments: {}, status, durationMs: null }
    }
  }

  #usage(usage: unknown): Said[] {
    const [input, output] = [numberMember(usage, 'inputTokens'), numberMember(usage, 'outputTokens')]
    if (input === null || output === null) return []
    const cached = (numberMember(usage, 'cachedReadTokens') ?? 0) + (numberMember(usage, 'cachedWriteTokens') ?? 0)
    const total = {
      totalTokens: numberMember(usage, 'totalTokens') ?? input + cached + output,
      // Codex counts cached tokens as input.
      inputTokens: input + cached,
      cachedInputTokens: numberMember(usage, 'cachedReadTokens') ?? 0,
      outputTokens: output,
      reasoningOutputTokens: numberMember(usage, 'thoughtTokens') ?? 0,
    }
    const tokenUsage = { total, last: total, modelContextWindow: this.#contextWindow }
    return [this.#of('thread/tokenUsage/updated', { tokenUsage })]
  }

  #noteLimit(limit: unknown): void {
    if (limit === undefined) return
    const resetsAt = numberMember(limit, 'resetsAt')
    this.#fullUntil = stringMember(limit, 'status') === 'rejected' && resetsAt !== null ? resetsAt * 1000 : null
  }

  #newId(): string {
    return `text-${++this.#texts}`
  }
}

function textItem({ type, id, text }: OpenText): object {
  return type === 'agentMessage' ? { type, id, text, phase: null } : { type, id, summary: [text], content: [] }
}

/** Returns the output of a tool: the texts of its content, otherwise its raw output. */
function outputOf({ content, rawOutput, terminal }: OpenTool): string {
  if (terminal !== null) return terminal.output
  const texts = content.flatMap(each => {
    const text = each.type === 'content' ? stringMember(each.content, 'text') : null
    return text === null ? [] : [text]
  })
  if (texts.length > 0) return clipEnd(texts.join('\n'), MOST_OUTPUT)
  if (typeof rawOutput === 'string') return clipEnd(rawOutput, MOST_OUTPUT)
  const said = ['output', 'stdout', 'stderr'].map(name => stringMember(rawOutput, name) ?? '').join('')
  return clipEnd(said, MOST_OUTPUT)
}

/** Returns the output of an agent's own terminal, an extension (`clientCapabilities._meta.terminal_output`). */
function terminalOf(meta: unknown, before: OpenTool['terminal']): OpenTool['terminal'] {
  const data = stringMember(memberOf(meta, 'terminal_output'), 'data')
  const code = numberMember(memberOf(meta, 'terminal_exit'), 'exit_code')
  if (data === null && code === null) return before
  return {
    output: clipEnd((before?.output ?? '') + (data ?? ''), MOST_OUTPUT),
    exitCode: code ?? before?.exitCode ?? null,
  }
}

function changesOf({ kind, content, paths }: OpenTool): object[] {
  const diffs = content.flatMap(each => (each.type === 'diff' ? [each] : []))
  if (diffs.length === 0) return paths.map(path => ({ path, kind: kindOf(kind), diff: '' }))
  return diffs.map(({ path, oldText, newText }) => {
    if (oldText == null) return { path, kind: { type: 'add' }, diff: clipEnd(newText, MOST_OUTPUT) }
    const [before, after] = [clipEnd(oldText, MOST_OUTPUT), clipEnd(newText, MOST_OUTPUT)]
    return {
      path,
      kind: kindOf('edit'),
      diff: createTwoFilesPatch(path, path, before, after, '', '', { timeout: 1_000 }) ?? '',
    }
  })
}

function kindOf(kind: string): object {
  return kind === 'delete' ? { type: 'delete' } : { type: 'update', move_path: null }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
