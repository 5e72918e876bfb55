import type { Readable } from 'node:stream'
import { AbstractMessageReader, type DataCallback, type Disposable, type Message } from 'vscode-jsonrpc/node'
import { LineSplitter } from '../base/line-splitter.ts'

/** Codex writes single lines of several MB (a whole agent message); nothing honest is longer than this. */
const MAX_LINE_BYTES = 256 * 1024 * 1024
/** Messages that may wait to be handled before reading pauses, so that a flood does not pile up in memory. */
const MAX_WAITING = 100

/**
 * Reads newline-delimited JSON-RPC as the app-server writes it: without `"jsonrpc"`, which the library demands and is
 * added here. A line that is not a JSON object is handed to `onRubbish` and otherwise passed over.
 */
export class LineMessageReader extends AbstractMessageReader {
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

function parseObject(line: string): object | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
