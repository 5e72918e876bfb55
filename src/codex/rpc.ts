import type { Readable, Writable } from 'node:stream'
import { createMessageConnection, NullLogger, ResponseError } from 'vscode-jsonrpc/node'
import type { Clock } from '../base/clock.ts'
import { LineMessageReader } from './message-reader.ts'
import { LineMessageWriter } from './message-writer.ts'

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
      // What is pending when the connection is disposed is rejected as if codex had answered.
      const isAnswer = error instanceof ResponseError && !disposed.signal.aborted
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
