import { unreachable } from '../../base/errors.ts'

/** Token counts that a reply reports; `null` counts are never sent. */
export interface ReplyUsage {
  input: number
  cachedInput: number
  output: number
  reasoning: number
}

/** One thing that the model says or does in a reply; `hold` sends nothing more until its promise resolves. */
export type ReplyItem =
  | { kind: 'message'; text: string; phase: 'commentary' | 'final_answer' | null; chunkSize: number }
  | { kind: 'reasoning'; summary: readonly string[]; content: readonly string[]; chunkSize: number }
  | { kind: 'function-call'; name: string; namespace: string | null; arguments: string }
  | { kind: 'apply-patch'; patch: string }
  | { kind: 'web-search'; query: string }
  | { kind: 'raw'; item: Readonly<Record<string, unknown>> }
  | { kind: 'hold'; until: Promise<unknown> }

/**
 * How a stream of events ends. `cut` sends no more than `afterEvents` events, `response.created` being the first, and
 * then either destroys the socket (`reset`) or ends the response cleanly without `response.completed` (`end`).
 */
type StreamEnd =
  | { kind: 'completed' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'incomplete'; reason: string }
  | { kind: 'cut'; afterEvents: number; how: 'reset' | 'end' }

export type ReplyHeaders = Readonly<Record<string, string>>

/** A reply that streams items as Server-Sent Events. */
export interface ItemsReply {
  kind: 'items'
  items: readonly ReplyItem[]
  /** Left out: estimated from the sizes of request and reply. `null`: the reply has no usage. */
  usage?: ReplyUsage | null
  headers?: ReplyHeaders
  /** Pause before each text delta, in ms; 0 if left out. */
  deltaMs?: number
  /** Left out: `response.completed`. */
  end?: StreamEnd
}

/** What the scripted model answers to one request: a stream of items, or a fault of the wire. */
export type Reply =
  | ItemsReply
  /** An HTTP answer without a stream; a `body` that is no string is sent as JSON. */
  | { kind: 'status'; status: number; body: unknown; headers?: ReplyHeaders }
  /** Status 200 and an event stream of exactly this text, then the end. */
  | { kind: 'raw-stream'; text: string; headers?: ReplyHeaders }
  | { kind: 'hang-before-headers' }
  | { kind: 'close-before-headers' }

/** A reply of these items that ends as it should. */
export function reply(...items: readonly ReplyItem[]): ItemsReply {
  return { kind: 'items', items }
}

/** Characters of a text delta where an item does not say: a few words, as real models send them. */
const CHUNK_SIZE = 24

/** Something that the model says, streamed in deltas of `chunkSize` characters. */
export function message(
  text: string,
  options: { phase?: 'commentary' | 'final_answer'; chunkSize?: number } = {},
): ReplyItem {
  return { kind: 'message', text, phase: options.phase ?? null, chunkSize: options.chunkSize ?? CHUNK_SIZE }
}

/** What the model thinks: the parts of its summary and, where given, of its raw content. */
export function reasoning(
  summary: string | readonly string[],
  options: { content?: readonly string[]; chunkSize?: number } = {},
): ReplyItem {
  return {
    kind: 'reasoning',
    summary: typeof summary === 'string' ? [summary] : summary,
    content: options.content ?? [],
    chunkSize: options.chunkSize ?? CHUNK_SIZE,
  }
}

/**
 * A shell command, run by codex itself (`exec_command`). `yieldMs`: how long codex waits before it goes on without the
 * command; `login: false` keeps the PATH that codex was started with.
 */
export function shell(
  cmd: string,
  options: { yieldMs?: number; tty?: boolean; login?: boolean; workdir?: string } = {},
): ReplyItem {
  const { yieldMs, tty, login, workdir } = options
  return functionCall('exec_command', { cmd, yield_time_ms: yieldMs, tty, login, workdir })
}

/** A patch in codex's own format (`*** Begin Patch` … `*** End Patch`). */
export function applyPatch(patch: string): ReplyItem {
  return { kind: 'apply-patch', patch }
}

/** The plan that a person sees (`update_plan`). */
export function updatePlan(
  plan: readonly { step: string; status: 'pending' | 'in_progress' | 'completed' }[],
  explanation?: string,
): ReplyItem {
  return functionCall('update_plan', { explanation, plan })
}

/** A call of any function; a string is sent as it stands, so that arguments can be broken on purpose. */
export function functionCall(name: string, args: object | string, namespace?: string): ReplyItem {
  const text = typeof args === 'string' ? args : JSON.stringify(args)
  return { kind: 'function-call', name, namespace: namespace ?? null, arguments: text }
}

/**
 * Says what the model answers. It may wait for a promise first: codex then waits for the headers. What it throws
 * reaches codex as a status 400, which ends the turn.
 */
export type Script = (request: ModelRequest) => Reply | Promise<Reply>

/** A reply, or a script for this one step. */
export type ScriptStep = Reply | Script

/**
 * Conversation n plays `rounds[n]`, step by step, and answers plainly once that is over. A step that codex did not get
 * to its end is played again. Sub-agents play `subAgent`; a compaction is answered with a summary.
 */
export function roundsScript(
  rounds: readonly (readonly ScriptStep[])[],
  options: { subAgent?: ScriptStep } = {},
): Script {
  return turnsScript(request => {
    if (request.isSubAgent) return options.subAgent
    return rounds[request.conversation]?.[request.step]
  })
}

/**
 * Plays the step that is found for a request, and answers plainly if there is none; a compaction is answered with a
 * summary.
 */
export function turnsScript(stepFor: (request: ModelRequest) => ScriptStep | undefined): Script {
  return request => {
    switch (request.kind) {
      case 'compaction':
        return reply(message('Summary: the work so far is in the files.'))
      case 'other':
        return reply(message('{}'))
      case 'turn':
        return answerStep(stepFor(request) ?? PLAIN_ANSWER, request)
      default:
        return unreachable(request.kind)
    }
  }
}

const PLAIN_ANSWER = reply(message('Nothing more to do.', { phase: 'final_answer' }))

function answerStep(step: ScriptStep, request: ModelRequest): Reply | Promise<Reply> {
  return typeof step === 'function' ? step(request) : step
}

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
type WireRequest = Omit<ModelRequest, 'conversation' | 'step' | 'attempt'> & {
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

/** Where a reply belongs. Its items carry this in their ids, and codex sends the ids back with every later request. */
export interface ReplyPosition {
  thread: string
  step: number
  attempt: number
}

/** Keeps apart which reply is due in which codex thread, whatever codex retries, compacts or runs side by side. */
export class Conversations {
  readonly #indexes = new Map<string, number>()
  readonly #threads = new Map<string, ThreadMemory>()

  /** The request with its place among those that were seen before. */
  place(wire: WireRequest): ModelRequest {
    const { session, compactions, itemIds, ...request } = wire
    const thread = this.#thread(request.thread)
    const step = request.kind === 'turn' ? findStep(thread, request.thread, compactions, itemIds) : thread.given
    const attemptKey = request.kind === 'turn' ? String(step) : `${request.kind} ${step}`
    const attempt = thread.attempts.get(attemptKey) ?? 0
    thread.attempts.set(attemptKey, attempt + 1)
    return { ...request, conversation: this.#index(session), step, attempt }
  }

  /** Notes that codex has had a whole reply; `traced`: it has items that codex will send back with their ids. */
  given(place: ReplyPosition, traced: boolean): void {
    const thread = this.#thread(place.thread)
    thread.given = Math.max(thread.given, place.step + 1)
    if (!traced) thread.untraced.add(place.step)
  }

  /** Notes that a reply did not reach its end, so that its step is due again. */
  broken(place: ReplyPosition): void {
    this.#thread(place.thread).broken.add(`${place.step} ${place.attempt}`)
  }

  #index(session: string): number {
    const index = this.#indexes.get(session) ?? this.#indexes.size
    this.#indexes.set(session, index)
    return index
  }

  #thread(id: string): ThreadMemory {
    const known = this.#threads.get(id)
    if (known !== undefined) return known
    const fresh: ThreadMemory = { given: 0, attempts: new Map(), broken: new Set(), untraced: new Set() }
    this.#threads.set(id, fresh)
    return fresh
  }
}

/** The id of the nth thing in a reply; unique over all threads and attempts. */
export function itemId(prefix: string, place: ReplyPosition, n: number): string {
  return `${prefix}_${place.thread.replaceAll('-', '')}_${place.step}_${place.attempt}_${n}`
}

interface ThreadMemory {
  given: number
  attempts: Map<string, number>
  broken: Set<string>
  untraced: Set<number>
}

/**
 * The request's own history counts, as it is what codex believes: a reply that a killed codex never read is due again,
 * and a thread that is resumed against a new server goes on. Memory stands in where the history has no traces.
 */
function findStep(memory: ThreadMemory, thread: string, compactions: number, itemIds: readonly string[]): number {
  let step = compactions > 0 ? memory.given : 0
  const own = new RegExp(`_${thread.replaceAll('-', '')}_(\\d+)_(\\d+)_\\d+$`)
  for (const id of itemIds) {
    const match = own.exec(id)
    if (match === null || memory.broken.has(`${match[1]} ${match[2]}`)) continue
    step = Math.max(step, Number(match[1]) + 1)
  }
  while (memory.untraced.has(step)) step++
  return step
}
