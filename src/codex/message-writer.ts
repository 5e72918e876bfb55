import type { Writable } from 'node:stream'
import { AbstractMessageWriter, Message } from 'vscode-jsonrpc/node'

/** What `JSON.stringify` makes of half a surrogate pair; codex drops a line that has one without an answer. */
const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/i

/** Writes newline-delimited JSON-RPC as the app-server reads it: without `"jsonrpc"`, and always well-formed Unicode. */
export class LineMessageWriter extends AbstractMessageWriter {
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
