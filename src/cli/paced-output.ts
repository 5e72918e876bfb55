import type { Writable } from 'node:stream'

/**
 * Writes no faster than the reader reads, so that a long text never lies in memory: wait for `ready` between writes.
 * `ended` aborts when the reader has gone away or `signal` aborts.
 */
export class PacedOutput implements Disposable {
  readonly ended: AbortSignal
  readonly #stream: Writable
  readonly #signal: AbortSignal
  readonly #end: () => void
  #full = false

  constructor(stream: Writable, signal: AbortSignal) {
    const ending = new AbortController()
    this.ended = ending.signal
    this.#stream = stream
    this.#signal = signal
    this.#end = () => ending.abort()
    if (signal.aborted) this.#end()
    signal.addEventListener('abort', this.#end)
    stream.on('error', this.#end)
    stream.on('close', this.#end)
  }

  write(text: string): void {
    if (!this.ended.aborted) this.#full = !this.#stream.write(text)
  }

  async ready(): Promise<void> {
    if (!this.#full || this.ended.aborted) return
    await new Promise<void>(resolve => {
      const done = () => {
        this.#stream.off('drain', done)
        this.ended.removeEventListener('abort', done)
        resolve()
      }
      this.#stream.on('drain', done)
      this.ended.addEventListener('abort', done)
    })
    this.#full = false
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#end)
    this.#stream.off('error', this.#end)
    this.#stream.off('close', this.#end)
  }
}
