/** How much of it is shown moves on at this pace at least, in characters a second: what a quick reader follows. */
const CALM_PACE = 120
/** What has arrived is shown after this time at the latest, ms. */
const MOST_LAG_MS = 800

/**
 * A text that grows, revealed at a calm typing pace: faster the more of it waits, so that nothing waits for more than
 * 0.8 s, whatever arrives. Cuts between characters as a reader sees them. Has no timer: `step` says what time it is.
 */
export class TypedText {
  readonly #atOnce: boolean
  #text = ''
  /** Characters of it (UTF-16) that are shown. */
  #shown = 0
  /** How many had arrived at the last step. */
  #seen = 0
  /** Characters a millisecond; it does not sink while anything waits, so that what came first is not held up. */
  #pace = 0
  #steppedAt = 0
  /** What a step was too short for; characters. */
  #rest = 0
  #isComplete = false

  constructor({ motion }: { motion: 'full' | 'reduced' }) {
    this.#atOnce = motion === 'reduced'
  }

  /** What is shown of it. */
  get shown(): string {
    return this.#text.slice(0, this.#shown)
  }

  /** Whether some of it waits to be shown. */
  get isBehind(): boolean {
    return this.#shown < this.#end()
  }

  /** @param text the whole of it so far; it begins with what it was before */
  arrive(text: string): void {
    this.#text = text
  }

  /** No more will arrive: the next step shows all of it. */
  complete(): void {
    this.#isComplete = true
  }

  /** Shows as much as is due at the time `now` (ms, of any clock); whether that is more than before. */
  step(now: number): boolean {
    const before = this.#shown
    const waiting = this.#end() - this.#shown
    if (waiting <= 0) {
      this.#pace = 0
      return false
    }
    this.#shown += this.#atOnce || this.#isComplete ? waiting : this.#due(waiting, now)
    return this.#shown > before
  }

  #due(waiting: number, now: number): number {
    const isStart = this.#pace === 0
    if (isStart || this.#end() > this.#seen) {
      this.#pace = Math.max(this.#pace, waiting / MOST_LAG_MS, CALM_PACE / 1000)
      this.#seen = this.#end()
    }
    const due = isStart ? 1 : this.#rest + Math.max(0, now - this.#steppedAt) * this.#pace
    this.#steppedAt = now
    const whole = due >= waiting ? waiting : this.#wholeCharacters(due)
    this.#rest = Math.max(0, due - whole)
    return whole
  }

  /** The length of the characters that are due, up to the end of the last one that is reached wholly. */
  #wholeCharacters(due: number): number {
    const window = this.#text.slice(this.#shown, this.#shown + Math.ceil(due) + LONGEST_CHARACTER)
    const reached = GRAPHEMES.segment(window).containing(Math.floor(due))
    if (reached === undefined) return window.length
    // A character that is longer than what is due so far comes whole, or it would be waited for again and again.
    return reached.index === 0 && due >= 1 ? reached.segment.length : reached.index
  }

  /** What ends in the middle of a character waits for the rest of it. */
  #end(): number {
    const { length } = this.#text
    return this.#isComplete || !isUnfinished(this.#text.charCodeAt(length - 1)) ? length : length - 1
  }
}

/** Whether a character has to go on after this: half a surrogate pair, or what joins two characters. */
function isUnfinished(code: number): boolean {
  return (code >= 0xd800 && code <= 0xdbff) || code === 0x200d
}

const GRAPHEMES = new Intl.Segmenter()
/** Families and flags are shorter; what is longer is cut. */
const LONGEST_CHARACTER = 64
