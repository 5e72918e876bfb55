import type { Readable, Writable } from 'node:stream'
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  createMessageConnection,
  type DataCallback,
  type Disposable,
  ErrorCodes,
  Message,
  NullLogger,
  ResponseError,
} from 'vscode-jsonrpc/node'
import type { Clock } from '../../base/clock.ts'
import { LineSplitter } from '../../base/text.ts'

/** Why a request to codex has no result. */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure'
  /** `answered`: codex said no; `deadline`: it said nothing in time; `closed`: the connection ended first. */
  override readonly cause: 'answered' | 'deadline' | 'closed'
  readonly method: string

  constructor(method: string, cause: 'answered' | 'deadline' | 'closed', message: string) {
    super(message)
    this.method = method
    this.cause = cause
  }
}

export interface RpcHandlers {
  onNotification(method: string, params: unknown): void
  /** The result, or a thrown `ResponseError`. */
  onRequest(method: string, params: unknown): unknown
  /** Every line that codex wrote and that is a JSON object. */
  onLine(line: string, message: object): void
  onRubbish(line: string): void
}

/** A JSON-RPC connection to one app-server. */
export interface Rpc {
  /** `params`: `undefined` for a method that takes none. */
  request(method: string, params: unknown, deadlineMs: number): Promise<unknown>
  notify(method: string, params?: unknown): void
  /** Rejects what is pending; nothing is handled after it. */
  dispose(): void
}

/** Connects to an app-server's pipes. Every request has a deadline, and is rejected when the connection is disposed. */
export function openRpc(stdout: Readable, stdin: Writable, clock: Clock, handlers: RpcHandlers): Rpc {
  const reader = new LineMessageReader(stdout, handlers)
  const writer = new LineMessageWriter(stdin)
  const connection = createMessageConnection(reader, writer, NullLogger, {
    messageStrategy: {
      handleMessage(message, next) {
        next(message)
        reader.handled()
      },
    },
  })
  const disposed = new AbortController()
  connection.onNotification((method, params) => handlers.onNotification(method, params))
  connection.onRequest((method, params) => handlers.onRequest(method, params))
  connection.onError(() => {})
  connection.listen()

  const send = async (method: string, params: unknown): Promise<unknown> => {
    try {
      // Codex refuses `null` where a method takes nothing, which is what `undefined` would be sent as.
      return await (params === undefined ? connection.sendRequest(method) : connection.sendRequest(method, params))
    } catch (error) {
      // What cannot be written, and what is pending when the connection is disposed, is rejected as if codex had answered.
      const isAnswer =
        error instanceof ResponseError && error.code !== ErrorCodes.MessageWriteError && !disposed.signal.aborted
      throw isAnswer ? new RequestFailure(method, 'answered', error.message) : closed(method)
    }
  }

  return {
    async request(method, params, deadlineMs) {
      const settled = new AbortController()
      const late = clock.wait(deadlineMs, AbortSignal.any([settled.signal, disposed.signal])).then(() => {
        throw disposed.signal.aborted ? closed(method) : overdue(method, deadlineMs)
      })
      const answer = send(method, params)
      late.catch(() => {})
      answer.catch(() => {})
      try {
        return await Promise.race([answer, late])
      } finally {
        settled.abort()
      }
    },
    notify(method, params) {
      // It throws at once where the connection has closed, and rejects where it closes now; whoever asks next is told.
      void (async () => connection.sendNotification(method, params))().catch(() => {})
    },
    dispose() {
      if (disposed.signal.aborted) return
      disposed.abort()
      connection.dispose()
    },
  }
}

function closed(method: string): RequestFailure {
  return new RequestFailure(method, 'closed', `codex ended before it answered ${method}.`)
}

function overdue(method: string, deadlineMs: number): RequestFailure {
  return new RequestFailure(method, 'deadline', `codex did not answer ${method} within ${deadlineMs / 1000} s.`)
}

/** Codex writes single lines of several MB (a whole agent message); nothing honest is longer than this. */
const MAX_LINE_BYTES = 256 * 1024 * 1024
/** Messages that may wait to be handled before reading pauses, so that a flood does not pile up in memory. */
const MAX_WAITING = 100

/**
 * Reads newline-delimited JSON-RPC as the app-server writes it: without `"jsonrpc"`, which the library demands and is
 * added here. A line that is not a JSON object is handed to `onRubbish` and otherwise passed over.
 */
class LineMessageReader extends AbstractMessageReader {
  readonly #stream: Readable
  readonly #onRubbish: (line: string) => void
  readonly #onLine: (line: string, message: object) => void
  #waiting = 0
  #paused = false

  constructor(
    stream: Readable,
    options: { onLine: (line: string, message: object) => void; onRubbish: (line: string) => void },
  ) {
    super()
    this.#stream = stream
    this.#onLine = options.onLine
    this.#onRubbish = options.onRubbish
  }

  override listen(callback: DataCallback): Disposable {
    const splitter = new LineSplitter(
      line => {
        const message = parseObject(line)
        if (!message) {
          if (line.trim() !== '') this.#onRubbish(line)
          return
        }
        this.#waiting++
        this.#onLine(line, message)
        callback(Object.assign(message, { jsonrpc: '2.0' }) as Message)
      },
      MAX_LINE_BYTES,
      bytes => this.#onRubbish(`(a line of ${bytes} bytes)`),
    )
    const onData = (chunk: Buffer) => {
      splitter.push(chunk)
      if (this.#waiting > MAX_WAITING && !this.#paused) {
        this.#paused = true
        this.#stream.pause()
      }
    }
    const onClose = () => this.fireClose()
    const onError = (error: Error) => this.fireError(error)
    this.#stream.on('data', onData).once('close', onClose).on('error', onError)
    return { dispose: () => this.#stream.off('data', onData).off('close', onClose).off('error', onError) }
  }

  /** Tells the reader that a message has been dealt with, so that reading may go on. */
  handled(): void {
    this.#waiting--
    if (this.#paused && this.#waiting < MAX_WAITING / 4) {
      this.#paused = false
      this.#stream.resume()
    }
  }
}

/** A member of what codex sent, which may be anything; null if it has none of that name. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : null
}

/** A member that is a text; null for any other. */
export function stringMember(value: unknown, name: string): string | null {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : null
}

/** A member that is a finite number; null for any other. */
export function numberMember(value: unknown, name: string): number | null {
  const member = memberOf(value, name)
  return typeof member === 'number' && Number.isFinite(member) ? member : null
}

/** The JSON object on a line; null if there is none. */
export function parseObject(line: string): object | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/** What `JSON.stringify` makes of half a surrogate pair; codex drops a line that has one without an answer. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/i

/** Writes newline-delimited JSON-RPC as the app-server reads it: without `"jsonrpc"`, and always well-formed Unicode. */
class LineMessageWriter extends AbstractMessageWriter {
  readonly #stream: Writable

  constructor(stream: Writable) {
    super()
    this.#stream = stream
    stream.on('error', (error: Error) => this.fireError(error)).once('close', () => this.fireClose())
  }

  /** An answer that codex takes no more, as it has ended meanwhile, is nobody's failure. */
  write(message: Message): Promise<void> {
    const isAnswer = Message.isResponse(message)
    return new Promise((resolve, reject) => {
      this.#stream.write(`${encode(message)}\n`, error => (error && !isAnswer ? reject(error) : resolve()))
    })
  }

  end(): void {
    this.#stream.end()
  }
}

function encode(message: Message): string {
  const { jsonrpc: _, ...wire } = message
  const text = JSON.stringify(wire)
  if (!LONE_SURROGATE.test(text)) return text
  return JSON.stringify(wire, (_key, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}
