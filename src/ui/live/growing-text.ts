/** A text that grows at its end and is kept within a bound. */
export interface GrowingText {
  append(text: string): void
  readonly text: string
  /** How many characters are no longer in `text`, or never were. */
  readonly dropped: number
}

/** A text of which the `start` (its first 64 Ki characters) or the `end` (its last 16 Ki) is kept. Surrogate pairs stay whole. */
export function growingText(kept: 'start' | 'end'): GrowingText {
  return kept === 'start' ? new TextStart() : new TextEnd()
}

const START_CHARACTERS = 64 * 1024
const END_CHARACTERS = 16 * 1024

/** The engine joins strings without copying them until they are read. */
class TextStart implements GrowingText {
  text = ''
  dropped = 0

  append(text: string): void {
    const room = this.dropped > 0 ? 0 : START_CHARACTERS - this.text.length
    const kept = text.length <= room ? text : withoutHalfAtEnd(text.slice(0, room))
    this.text += kept
    this.dropped += text.length - kept.length
  }
}

class TextEnd implements GrowingText {
  #text = ''
  #length = 0

  get text(): string {
    this.#cut()
    return this.#text
  }

  get dropped(): number {
    this.#cut()
    return this.#length - this.#text.length
  }

  append(text: string): void {
    this.#text += text
    this.#length += text.length
    // Seldom enough that a cut costs next to nothing for each delta.
    if (this.#text.length > 4 * END_CHARACTERS) this.#cut()
  }

  #cut(): void {
    if (this.#text.length > END_CHARACTERS) this.#text = withoutHalfAtStart(this.#text.slice(-END_CHARACTERS))
  }
}

function withoutHalfAtEnd(text: string): string {
  return text.replace(/[\uD800-\uDBFF]$/, '')
}

function withoutHalfAtStart(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, '')
}
