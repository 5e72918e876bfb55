/** One request of codex to its model, as a script sees it. */
export interface ModelRequest {
  /** `compaction` when codex wants its context summed up; `other` is anything else that is not a turn. */
  kind: 'turn' | 'compaction' | 'other'
  /** Id of the codex thread. */
  thread: string
  /** Which conversation this is, counted from 0 in the order of first requests; a sub-agent has that of its root. */
  conversation: number
  /** Whether a sub-agent of the conversation asks, in a thread of its own. */
  isSubAgent: boolean
  /** How many replies this thread has had and kept before this one. */
  step: number
  /** How often this step was asked for before: codex's own retries, and turns that were interrupted in it. */
  attempt: number
  model: string
  effort: string | null
  /** Texts of the developer messages, in their order. */
  developerTexts: readonly string[]
  /** Texts of the user messages, in their order, with those that codex writes itself (environment, AGENTS.md). */
  userTexts: readonly string[]
  /** What the tool calls of the last reply gave, in their order. */
  lastOutputs: readonly string[]
  /** Names of the tools that are offered; those in a namespace as `namespace.name`. */
  tools: readonly string[]
  headers: Readonly<Record<string, string>>
  body: JsonObject
}

export type JsonObject = Readonly<Record<string, unknown>>

/** What a request says of itself; `conversation`, `step` and `attempt` need the memory of the server. */
export type WireRequest = Omit<ModelRequest, 'conversation' | 'step' | 'attempt'> & {
  /** Id that the root thread shares with its sub-agents. */
  session: string
  /** How often codex has compacted this thread. */
  compactions: number
  /** Ids of the items and calls in the conversation so far. */
  itemIds: readonly string[]
}

/** Reads a `POST …/responses` of codex; throws if the body is no JSON object. */
export function readModelRequest(headers: Readonly<Record<string, string>>, text: string): WireRequest {
  const body = asObject(JSON.parse(text))
  if (body === null) throw new Error('the body is no JSON object')
  const metadata = turnMetadata(headers, body)
  const thread = textOf(metadata.thread_id) ?? headers['thread-id'] ?? textOf(body.prompt_cache_key) ?? 'unknown'
  const input = objectsOf(body.input)
  return {
    kind: kindOf(textOf(metadata.request_kind)),
    thread,
    session: textOf(metadata.session_id) ?? headers['session-id'] ?? thread,
    isSubAgent: textOf(metadata.parent_thread_id) !== null,
    compactions: typeof metadata.window_number === 'number' ? metadata.window_number : 0,
    model: textOf(body.model) ?? '',
    effort: textOf(asObject(body.reasoning)?.effort),
    developerTexts: textsOf(input, 'developer'),
    userTexts: textsOf(input, 'user'),
    lastOutputs: lastOutputsOf(input),
    tools: toolNames(body),
    itemIds: input.flatMap(item => [textOf(item.id), textOf(item.call_id)]).filter(id => id !== null),
    headers,
    body,
  }
}

function turnMetadata(headers: Readonly<Record<string, string>>, body: JsonObject): JsonObject {
  const inBody = textOf(asObject(body.client_metadata)?.['x-codex-turn-metadata'])
  const text = inBody ?? headers['x-codex-turn-metadata']
  return text === undefined ? {} : (asObject(JSON.parse(text)) ?? {})
}

function kindOf(requestKind: string | null): ModelRequest['kind'] {
  if (requestKind === null || requestKind === 'turn') return 'turn'
  return requestKind === 'compaction' ? 'compaction' : 'other'
}

function textsOf(input: readonly JsonObject[], role: string): string[] {
  return input
    .filter(item => item.type === 'message' && item.role === role)
    .flatMap(item => objectsOf(item.content))
    .map(part => textOf(part.text))
    .filter(text => text !== null)
}

function lastOutputsOf(input: readonly JsonObject[]): string[] {
  const outputs: string[] = []
  for (const item of input.toReversed()) {
    if (typeof item.type !== 'string' || !item.type.endsWith('_call_output')) {
      if (outputs.length > 0) break
      continue
    }
    outputs.unshift(outputText(item.output))
  }
  return outputs
}

function outputText(output: unknown): string {
  if (typeof output === 'string') return output
  return objectsOf(output)
    .map(part => textOf(part.text) ?? '')
    .join('')
}

function toolNames(body: JsonObject): string[] {
  return objectsOf(body.tools).flatMap(tool => {
    const name = textOf(tool.name) ?? textOf(tool.type) ?? ''
    return tool.type === 'namespace' ? objectsOf(tool.tools).map(inner => `${name}.${textOf(inner.name)}`) : [name]
  })
}

function objectsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(asObject).filter(item => item !== null) : []
}

function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
