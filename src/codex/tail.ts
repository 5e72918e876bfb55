/** Keeps the last `limit` bytes of a stream that may be endless. */
export class Tail {
  #chunks: Buffer[] = []
  #length = 0
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  push(chunk: Buffer): void {
    const part = chunk.length > this.#limit ? chunk.subarray(-this.#limit) : chunk
    this.#chunks.push(part)
    this.#length += part.length
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= this.#limit) {
      this.#length -= this.#chunks.shift()?.length ?? 0
    }
  }

  text(): string {
    return Buffer.concat(this.#chunks).subarray(-this.#limit).toString('utf8')
  }
}
