import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../base/clock.ts'
import { unreachable } from '../base/errors.ts'
import type { JsonObject, ModelRequest } from './model-request.ts'
import type { ItemsReply, Reply } from './reply.ts'
import { replyEvents, type StreamPart } from './reply-events.ts'

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
