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

/** The failure of a request to codex. */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure'
  /** `answered`: codex refused; `deadline`: no answer in time; `closed`: the connection ended first. */
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
  /** Returns the result, or throws a `ResponseError`. */
  onRequest(method: string, params: unknown): unknown
  /** Called with each line of codex that is a JSON object. */
  onLine(line: string, message: object): void
  onRubbish(line: string): void
}

/** A JSON-RPC connection to one app-server. */
export interface Rpc {
  /** Sends a request. `params`: `undefined` for a method without parameters. */
  request(method: string, params: unknown, deadlineMs: number): Promise<unknown>
  notify(method: string, params?: unknown): void
  /** Rejects pending requests; handles nothing afterwards. */
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
      // Omit `undefined`: it is sent as `null`, which codex refuses for a method without parameters.
      return await (params === undefined ? connection.sendRequest(method) : connection.sendRequest(method, params))
    } catch (error) {
      // The library rejects failed writes and pending requests like codex's answers.
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
      // It throws on a closed connection, and rejects if it closes now; the next request reports that.
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

/** Longest line, in bytes: codex writes lines of several MB (a whole agent message), but none near this. */
const MAX_LINE_BYTES = 256 * 1024 * 1024
/** Number of unhandled messages at which reading pauses, to bound memory. */
const MAX_WAITING = 100

/**
 * Reads the app-server's newline-delimited JSON-RPC. Adds `"jsonrpc"`, which it omits and the library demands. Passes lines
 * that are not JSON objects to `onRubbish` only.
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

  /** Notes that a message has been handled, so that reading may continue. */
  handled(): void {
    this.#waiting--
    if (this.#paused && this.#waiting < MAX_WAITING / 4) {
      this.#paused = false
      this.#stream.resume()
    }
  }
}

/** Returns a member of any value from codex; null if it is missing. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : null
}

/** Returns a text member; null for any other. */
export function stringMember(value: unknown, name: string): string | null {
  const member = memberOf(value, name)
  return typeof member === 'string' ? member : null
}

/** Returns a finite number member; null for any other. */
export function numberMember(value: unknown, name: string): number | null {
  const member = memberOf(value, name)
  return typeof member === 'number' && Number.isFinite(member) ? member : null
}

/** Returns the JSON object on a line; null if there is none. */
export function parseObject(line: string): object | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/** Matches the JSON of a lone surrogate; codex drops such a line without an answer. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/i

/** Writes newline-delimited JSON-RPC for the app-server: without `"jsonrpc"`, and always well-formed Unicode. */
class LineMessageWriter extends AbstractMessageWriter {
  readonly #stream: Writable

  constructor(stream: Writable) {
    super()
    this.#stream = stream
    stream.on('error', (error: Error) => this.fireError(error)).once('close', () => this.fireClose())
  }

  /** Writes a message. Ignores write errors of answers: codex may have exited. */
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
