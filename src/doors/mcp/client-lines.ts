import type { Readable, Writable } from 'node:stream'
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/server'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { formatBytes, LineSplitter } from '../../base/text.ts'

/** The longest message of a client, bytes: far more than any call may hold, so that a tool says what is too long. */
const MOST_BYTES = 64 * 1024 * 1024

/**
 * The messages of an MCP client, one a line, on these streams. A line that cannot be read is answered with an error, and the
 * next one is read. The end of the input ends nothing: what was asked can be answered until this is closed.
 */
export class ClientLines implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly #stdin: Readable
  readonly #stdout: Writable
  readonly #lines: LineSplitter
  /** Ids of what was asked and is not answered yet. */
  readonly #open = new Set<unknown>()
  readonly #waiting = new Set<() => void>()
  #isClosed = false

  constructor(stdin: Readable, stdout: Writable) {
    this.#stdin = stdin
    this.#stdout = stdout
    const tooLong = (bytes: number) =>
      this.#refuse(
        ProtocolErrorCode.InvalidRequest,
        `A message may have at most ${formatBytes(MOST_BYTES)}, and this one has ${formatBytes(bytes)}.`,
      )
    this.#lines = new LineSplitter(line => this.#read(line), MOST_BYTES, tooLong)
  }

  async start(): Promise<void> {
    this.#stdin.on('data', this.#take)
    this.#stdin.on('end', this.#ended)
    this.#stdin.on('error', this.#failed)
    this.#stdout.on('error', this.#gone)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) throw new Error('The client is gone.')
    this.#write(message)
    if (isJSONRPCResponse(message)) this.#settle(message.id)
  }

  /** Resolves once all that was asked is answered, after so many ms, or when `signal` aborts. */
  async answered(clock: Clock, mostMs: number, signal: AbortSignal): Promise<void> {
    if (this.#open.size === 0 || this.#isClosed) return
    const over = new AbortController()
    const done = () => over.abort()
    this.#waiting.add(done)
    await clock.wait(mostMs, AbortSignal.any([signal, over.signal]))
    this.#waiting.delete(done)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stdin.off('data', this.#take)
    this.#stdin.off('end', this.#ended)
    this.#stdin.off('error', this.#failed)
    this.#open.clear()
    this.#tellWaiting()
    this.onclose?.()
  }

  readonly #take = (chunk: Buffer) => this.#lines.push(chunk)

  readonly #ended = () => this.#lines.end()

  readonly #failed = (error: Error) => this.onerror?.(error)

  /** Stays attached after `close`: an error event without a listener would end the program. */
  readonly #gone = (error: Error) => {
    if (this.#isClosed) return
    this.onerror?.(error)
    void this.close()
  }

  #read(line: string): void {
    if (line.trim() === '' || this.#isClosed) return
    let message: JSONRPCMessage
    try {
      message = parseJSONRPCMessage(JSON.parse(line))
    } catch (error) {
      const code = error instanceof SyntaxError ? ProtocolErrorCode.ParseError : ProtocolErrorCode.InvalidRequest
      this.#refuse(code, 'This line is not a JSON-RPC 2.0 message.', error)
      return
    }
    if (isJSONRPCRequest(message)) this.#open.add(message.id)
    else if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled')
      this.#settle(message.params?.requestId)
    try {
      this.onmessage?.(message)
    } catch (error) {
      this.onerror?.(new Error(messageOf(error)))
    }
  }

  /** Answers what has no id that could be read. */
  #refuse(code: number, message: string, cause?: unknown): void {
    this.onerror?.(new Error(message, { cause }))
    this.#write({ jsonrpc: '2.0', id: null, error: { code, message } })
  }

  #write(message: object): void {
    this.#stdout.write(`${JSON.stringify(message)}\n`)
  }

  #settle(id: unknown): void {
    this.#open.delete(id)
    if (this.#open.size === 0) this.#tellWaiting()
  }

  #tellWaiting(): void {
    for (const tell of this.#waiting) tell()
    this.#waiting.clear()
  }
}
