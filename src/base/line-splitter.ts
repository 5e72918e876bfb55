const NEWLINE = 0x0a

/**
 * Cuts a byte stream into lines on the byte `\n` alone (not on U+2028, as `readline` does), and decodes each whole line,
 * so that a character split over two chunks stays whole. A line longer than `maxBytes` is dropped and counted.
 */
export class LineSplitter {
  #parts: Buffer[] = []
  #length = 0
  #overlong = false
  readonly #maxBytes: number
  readonly #onLine: (line: string) => void
  readonly #onOverlong: (bytes: number) => void

  constructor(onLine: (line: string) => void, maxBytes: number, onOverlong: (bytes: number) => void = () => {}) {
    this.#onLine = onLine
    this.#maxBytes = maxBytes
    this.#onOverlong = onOverlong
  }

  push(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end))
      this.#finishLine()
      start = end + 1
    }
    if (start < chunk.length) this.#add(chunk.subarray(start))
  }

  /** What came after the last newline, as a line; nothing if the stream ended with one. */
  end(): void {
    if (this.#length > 0) this.#finishLine()
  }

  #add(part: Buffer): void {
    this.#length += part.length
    if (this.#length > this.#maxBytes) {
      this.#overlong = true
      this.#parts = []
    } else if (part.length > 0) this.#parts.push(part)
  }

  #finishLine(): void {
    const [first] = this.#parts
    const bytes = this.#length
    const overlong = this.#overlong
    const line =
      first === undefined ? '' : (this.#parts.length === 1 ? first : Buffer.concat(this.#parts)).toString('utf8')
    this.#parts = []
    this.#length = 0
    this.#overlong = false
    if (overlong) this.#onOverlong(bytes)
    else this.#onLine(line)
  }
}
