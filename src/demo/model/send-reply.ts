import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../base/clock.ts'
import { unreachable } from '../../base/errors.ts'
import {
  type ItemsReply,
  itemId,
  type JsonObject,
  type ModelRequest,
  type Reply,
  type ReplyItem,
  type ReplyPosition,
  type ReplyUsage,
} from './reply.ts'

/** One part of a reply's stream: an event to send, or something to wait for first. */
type StreamPart =
  | { kind: 'event'; event: JsonObject & { type: string } }
  | { kind: 'delta-pause' }
  | { kind: 'hold'; until: Promise<unknown> }

/** The events of a reply in the order of the Responses API, from `response.created` to its end. */
function* replyEvents(reply: ItemsReply, request: ModelRequest): Generator<StreamPart> {
  const id = itemId('resp', request, 0)
  yield event('response.created', { response: { id } })
  for (const [index, item] of reply.items.entries()) yield* itemEvents(item, index, request)
  const end = reply.end ?? { kind: 'completed' }
  switch (end.kind) {
    case 'cut':
    case 'completed':
      yield event('response.completed', { response: { id, usage: wireUsage(reply, request) } })
      return
    case 'failed':
      yield event('response.failed', { response: { id, error: { code: end.code, message: end.message } } })
      return
    case 'incomplete':
      yield event('response.incomplete', { response: { id, incomplete_details: { reason: end.reason } } })
      return
    default:
      unreachable(end)
  }
}

/** Whether codex sends an item of this kind back with the id that it was given. */
export function isSentBack(item: ReplyItem): boolean {
  return item.kind !== 'hold' && item.kind !== 'raw'
}

function* itemEvents(item: ReplyItem, index: number, request: ModelRequest): Generator<StreamPart> {
  switch (item.kind) {
    case 'message':
      return yield* messageEvents(item, index, request)
    case 'reasoning':
      return yield* reasoningEvents(item, index, request)
    case 'function-call':
      return yield* callEvents(item, index, request)
    case 'apply-patch':
      return yield* patchEvents(item.patch, index, request)
    case 'web-search': {
      const action = { type: 'search', query: item.query }
      return yield* wholeItem(
        { type: 'web_search_call', id: itemId('ws', request, index), status: 'completed', action },
        index,
      )
    }
    case 'raw':
      return yield* wholeItem(item.item, index)
    case 'hold':
      yield { kind: 'hold', until: item.until }
      return
    default:
      unreachable(item)
  }
}

function* messageEvents(
  item: Extract<ReplyItem, { kind: 'message' }>,
  index: number,
  place: ReplyPosition,
): Generator<StreamPart> {
  const id = itemId('msg', place, index)
  const phase = item.phase === null ? {} : { phase: item.phase }
  const whole = { type: 'message', id, role: 'assistant', ...phase }
  yield event('response.output_item.added', { output_index: index, item: { ...whole, content: [] } })
  yield* deltas(item.text, item.chunkSize, 'response.output_text.delta', {
    item_id: id,
    output_index: index,
    content_index: 0,
  })
  const content = [{ type: 'output_text', text: item.text, annotations: [] }]
  yield event('response.output_item.done', { output_index: index, item: { ...whole, content } })
}

function* reasoningEvents(
  item: Extract<ReplyItem, { kind: 'reasoning' }>,
  index: number,
  place: ReplyPosition,
): Generator<StreamPart> {
  const id = itemId('rs', place, index)
  const at = { item_id: id, output_index: index }
  yield event('response.output_item.added', { output_index: index, item: { type: 'reasoning', id, summary: [] } })
  for (const [part, text] of item.summary.entries()) {
    yield event('response.reasoning_summary_part.added', { ...at, summary_index: part })
    yield* deltas(text, item.chunkSize, 'response.reasoning_summary_text.delta', { ...at, summary_index: part })
  }
  for (const [part, text] of item.content.entries()) {
    yield* deltas(text, item.chunkSize, 'response.reasoning_text.delta', { ...at, content_index: part })
  }
  const whole = {
    type: 'reasoning',
    id,
    summary: item.summary.map(text => ({ type: 'summary_text', text })),
    content: item.content.map(text => ({ type: 'reasoning_text', text })),
    encrypted_content: null,
  }
  yield event('response.output_item.done', { output_index: index, item: whole })
}

function* callEvents(
  item: Extract<ReplyItem, { kind: 'function-call' }>,
  index: number,
  place: ReplyPosition,
): Generator<StreamPart> {
  const id = itemId('fc', place, index)
  const namespace = item.namespace === null ? {} : { namespace: item.namespace }
  const whole = { type: 'function_call', id, call_id: itemId('call', place, index), name: item.name, ...namespace }
  yield event('response.output_item.added', { output_index: index, item: { ...whole, arguments: '' } })
  yield event('response.function_call_arguments.delta', { item_id: id, output_index: index, delta: item.arguments })
  yield event('response.output_item.done', { output_index: index, item: { ...whole, arguments: item.arguments } })
}

/** Models that codex does not know are not offered `apply_patch`; codex then takes the patch from the shell command. */
function* patchEvents(patch: string, index: number, request: ModelRequest): Generator<StreamPart> {
  if (!request.tools.includes('apply_patch')) {
    const cmd = `apply_patch <<'EOF'\n${patch}\nEOF`
    const call = { kind: 'function-call', name: 'exec_command', namespace: null } as const
    return yield* callEvents({ ...call, arguments: JSON.stringify({ cmd }) }, index, request)
  }
  const id = itemId('ctc', request, index)
  const whole = { type: 'custom_tool_call', id, call_id: itemId('call', request, index), name: 'apply_patch' }
  yield event('response.output_item.added', { output_index: index, item: { ...whole, input: '' } })
  yield event('response.custom_tool_call_input.delta', { item_id: id, output_index: index, delta: patch })
  yield event('response.output_item.done', { output_index: index, item: { ...whole, input: patch } })
}

function* wholeItem(item: JsonObject, index: number): Generator<StreamPart> {
  yield event('response.output_item.added', { output_index: index, item })
  yield event('response.output_item.done', { output_index: index, item })
}

function* deltas(text: string, size: number, type: string, at: JsonObject): Generator<StreamPart> {
  for (let start = 0; start < text.length; ) {
    const end = wholeCharacterEnd(text, start + size)
    yield { kind: 'delta-pause' }
    yield event(type, { ...at, delta: text.slice(start, end) })
    start = end
  }
}

/** Half a surrogate pair would make a JSON text that codex does not take. */
function wholeCharacterEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1)
  return code >= 0xd800 && code <= 0xdbff ? end + 1 : end
}

function event(type: string, fields: JsonObject): StreamPart {
  return { kind: 'event', event: { type, ...fields } }
}

function wireUsage(reply: ItemsReply, request: ModelRequest): JsonObject | null {
  if (reply.usage === null) return null
  const usage = reply.usage ?? estimatedUsage(reply, request)
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cachedInput },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  }
}

/** Four characters a token, the usual rule of thumb. */
export function estimatedUsage(reply: ItemsReply, request: ModelRequest): ReplyUsage {
  const output = Math.ceil(JSON.stringify(reply.items).length / 4)
  return { input: Math.ceil(Number(request.headers['content-length'] ?? 0) / 4), cachedInput: 0, output, reasoning: 0 }
}

/** What a reply is sent with: where to, on whose clock, and what ends all waiting in it. */
interface Sending {
  request: ModelRequest
  response: ServerResponse
  clock: Clock
  signal: AbortSignal
}

/**
 * Sends a reply, or does what its fault says. Resolves with whether codex has had a whole reply, up to
 * `response.completed`; never rejects.
 */
export async function sendReply(reply: Reply, sending: Sending): Promise<boolean> {
  const { response } = sending
  switch (reply.kind) {
    case 'items':
      return await sendItems(reply, sending)
    case 'status': {
      const isText = typeof reply.body === 'string'
      const type = { 'content-type': isText ? 'text/plain' : 'application/json' }
      response.writeHead(reply.status, { ...type, ...reply.headers })
      response.end(isText ? reply.body : JSON.stringify(reply.body))
      return false
    }
    case 'raw-stream':
      response.writeHead(200, { 'content-type': 'text/event-stream', ...reply.headers }).end(reply.text)
      return false
    case 'hang-before-headers':
      return false
    case 'close-before-headers':
      response.destroy()
      return false
    default:
      return unreachable(reply)
  }
}

async function sendItems(reply: ItemsReply, sending: Sending): Promise<boolean> {
  const { response, signal } = sending
  response.writeHead(200, { 'content-type': 'text/event-stream', ...reply.headers })
  response.flushHeaders()
  try {
    await pipeline(Readable.from(streamText(reply, sending)), response, { signal })
  } catch {
    // codex hung up, the server is closing, or the reply was to be cut here
    response.destroy()
  }
  // codex may hang up as soon as it has read response.completed, before the response itself is over
  return response.writableEnded && (reply.end ?? { kind: 'completed' }).kind === 'completed'
}

/** Characters that are written at once, so that many small deltas do not become many small writes. */
const batchSize = 64 * 1024

async function* streamText(reply: ItemsReply, sending: Sending): AsyncGenerator<string> {
  const { request, response, clock, signal } = sending
  const cut = reply.end?.kind === 'cut' ? reply.end : null
  const pauseMs = reply.deltaMs ?? 0
  const parts = replyEvents(reply, request)
  let batch = ''
  for (const part of cut === null ? parts : untilEvents(parts, cut.afterEvents)) {
    if (part.kind === 'event') batch += serverSentEvent(part.event)
    const waits = part.kind === 'hold' || (part.kind === 'delta-pause' && pauseMs > 0)
    if (!waits && batch.length < batchSize) continue
    if (batch !== '') yield batch
    batch = ''
    if (part.kind === 'hold') await Promise.race([part.until, whenAborted(signal)])
    else if (waits) await clock.wait(pauseMs, signal)
  }
  if (batch !== '') yield batch
  if (cut?.how === 'reset') {
    await written(response)
    throw new Error('cut')
  }
}

function* untilEvents(parts: Iterable<StreamPart>, count: number): Generator<StreamPart> {
  let left = count
  for (const part of parts) {
    if (part.kind === 'event' && left-- === 0) return
    yield part
  }
}

function serverSentEvent(event: JsonObject & { type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Resolves when all that was written has left the process. */
async function written(response: ServerResponse): Promise<void> {
  await new Promise<void>(resolve => response.write('\n', () => resolve()))
}

async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
}
