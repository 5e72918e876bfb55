import type { PagerSource } from './pager.ts'

/** `render`: the finished lines of an event, may depend on the events before it. `maxChars`: the size of the buffer. */
interface LineBufferOptions<Event> {
  render(event: Event): readonly string[]
  maxChars?: number
}

const MAX_CHARS = 20_000_000
const CHUNK = 1024
/** A longer line is shown as several. */
const LINE_CHARS = 16_384

/** The latest lines of a stream of events, for a pager; when the buffer is full (20 M characters), the oldest are dropped. */
export class LineBuffer<Event> implements PagerSource {
  readonly #options: LineBufferOptions<Event>
  /** All but the last have `CHUNK` lines. */
  readonly #chunks: { lines: string[]; chars: number }[] = []
  readonly #listeners = new Set<(dropped: number) => void>()
  #chars = 0
  #count = 0
  #dropped = 0

  constructor(options: LineBufferOptions<Event>) {
    this.#options = options
  }

  get count(): number {
    return this.#count + this.#notes
  }

  line(index: number): string {
    if (index < this.#notes) return `… ${this.#dropped.toLocaleString('en-US')} earlier lines are not kept here.`
    const at = index - this.#notes
    return this.#chunks[Math.floor(at / CHUNK)]?.lines[at % CHUNK] ?? ''
  }

  onGrow(listener: (dropped: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Adds the lines of one event. */
  add(event: Event): void {
    for (const line of this.#options.render(event)) for (const piece of pieces(line)) this.#push(piece)
    const before = this.count
    const kept = this.#count
    this.#dropOldest()
    // The first dropped line is replaced by the note about it.
    const dropped = kept === this.#count ? 0 : before - this.count
    for (const listener of this.#listeners) listener(dropped)
  }

  /** Adds all events of a stream, until it ends or the signal aborts. */
  async read(events: AsyncIterable<Event>, signal: AbortSignal): Promise<void> {
    for await (const event of events) {
      if (signal.aborted) return
      this.add(event)
    }
  }

  get #notes(): number {
    return this.#dropped > 0 ? 1 : 0
  }

  #push(line: string): void {
    let last = this.#chunks.at(-1)
    if (!last || last.lines.length === CHUNK) {
      last = { lines: [], chars: 0 }
      this.#chunks.push(last)
    }
    last.lines.push(line)
    last.chars += line.length
    this.#chars += line.length
    this.#count++
  }

  #dropOldest(): void {
    const { maxChars = MAX_CHARS } = this.#options
    while (this.#chars > maxChars && this.#chunks.length > 1) {
      const oldest = this.#chunks.shift()
      if (!oldest) return
      this.#chars -= oldest.chars
      this.#count -= oldest.lines.length
      this.#dropped += oldest.lines.length
    }
  }
}

/** A long line in parts that are quick to wrap; neither sequences nor surrogate pairs are split. */
function pieces(line: string): string[] {
  if (line.length <= LINE_CHARS) return [line]
  const found: string[] = []
  for (let from = 0; from < line.length; ) {
    const part = line.slice(from, from + LINE_CHARS)
    const whole = from + part.length < line.length ? part.replace(TORN_END, '') : part
    found.push(whole || part)
    from += (whole || part).length
  }
  return found
}

const ESC = String.fromCharCode(0x1b)
const TORN_END = new RegExp(`(?:[\\uD800-\\uDBFF]|${ESC}(?:\\[[\\d;:]*|\\][^\\u0007${ESC}]*)?)$`)
