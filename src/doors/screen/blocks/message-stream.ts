/** A message that streams in: complete Markdown blocks are printed to the scrollback once, the rest is drawn live. */
export class MessageStream {
  #text = ''
  #printed = 0

  /** The Markdown that is not printed yet. */
  get rest(): string {
    return this.#text.slice(this.#printed)
  }

  /**
   * The Markdown blocks that have become complete, to be printed now; empty if none have.
   * @param text the message so far; it begins with the text of the call before
   */
  advance(text: string): string {
    if (text.length === this.#text.length) return ''
    this.#text = text
    const rest = this.rest
    const finished = rest.slice(0, finishedLength(rest))
    this.#printed += finished.length
    return finished
  }

  /** What is left to print of the final message. `isRepeat`: all of it, as it differs from what was streamed and printed. */
  end(text: string): { markdown: string; isRepeat: boolean } {
    const printed = this.#text.slice(0, this.#printed)
    if (text.startsWith(printed)) return { markdown: text.slice(printed.length), isRepeat: false }
    const words = printed.trimEnd()
    // The white space after a block may come out otherwise than it was streamed.
    const isPrinted = text.startsWith(words) && /^(?:\s|$)/.test(text.slice(words.length))
    return isPrinted ? { markdown: text.slice(words.length), isRepeat: false } : { markdown: text, isRepeat: true }
  }
}

/** The slowest typing pace, in characters a second: what a quick reader follows. */
const CALM_PACE = 120
/** The longest time between a character's arrival and its display, ms. */
const MOST_LAG_MS = 800

/**
 * A growing text, revealed at a calm typing pace: faster the more of it waits, so that no character waits for more than
 * 0.8 s. Cuts between grapheme clusters. Has no timer of its own: `step` is given the time.
 */
export class TypedText {
  readonly #atOnce: boolean
  #text = ''
  /** How many characters (UTF-16) are shown. */
  #shown = 0
  /** How many had arrived at the last step. */
  #seen = 0
  /** Characters a millisecond; it never falls while characters wait, so that the first of them are not held up. */
  #pace = 0
  #steppedAt = 0
  /** The fraction of a character (or of a cluster) that the last step could not show, in characters. */
  #rest = 0
  #isComplete = false

  constructor({ motion }: { motion: 'full' | 'reduced' }) {
    this.#atOnce = motion === 'reduced'
  }

  /** The part that is shown. */
  get shown(): string {
    return this.#text.slice(0, this.#shown)
  }

  /** Whether characters wait to be shown. */
  get isBehind(): boolean {
    return this.#shown < this.#end()
  }

  /** @param text the whole text so far; it begins with the text of the call before */
  arrive(text: string): void {
    this.#text = text
  }

  /** No more will arrive: the next step shows all of the text. */
  complete(): void {
    this.#isComplete = true
  }

  /** Shows the characters that are due at the time `now` (ms, of any clock); true if that is more than before. */
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
    const whole = due >= waiting ? waiting : this.#wholeClusters(due)
    this.#rest = Math.max(0, due - whole)
    return whole
  }

  /** The length of the clusters that are due in full. */
  #wholeClusters(due: number): number {
    const window = this.#text.slice(this.#shown, this.#shown + Math.ceil(due) + LONGEST_CLUSTER)
    const reached = GRAPHEMES.segment(window).containing(Math.floor(due))
    if (reached === undefined) return window.length
    // A cluster longer than what is due is shown whole, or it would be waited for again and again.
    return reached.index === 0 && due >= 1 ? reached.segment.length : reached.index
  }

  /** The length of the text without a torn character at its end, which waits for its rest. */
  #end(): number {
    const { length } = this.#text
    return this.#isComplete || !isUnfinished(this.#text.charCodeAt(length - 1)) ? length : length - 1
  }
}

/** Whether the character is incomplete after this code unit: half a surrogate pair, or a zero-width joiner. */
function isUnfinished(code: number): boolean {
  return (code >= 0xd800 && code <= 0xdbff) || code === 0x200d
}

const GRAPHEMES = new Intl.Segmenter()
/** Emoji families and flags are shorter; a longer cluster is cut. */
const LONGEST_CLUSTER = 64

/** The length, in characters, of the Markdown blocks at the start that further text cannot change. Looks at each line once. */
export function finishedLength(markdown: string): number {
  return blockStarts(markdown, false).at(-1) ?? 0
}

/** A complete Markdown text in pieces that can be parsed one by one: cut where `finishedLength` would have cut it while it grew. */
export function splitBlocks(markdown: string): string[] {
  const starts = [0, ...blockStarts(markdown, true)]
  return starts.map((start, i) => markdown.slice(start, starts[i + 1]))
}

const LIST_MARKER = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
// A list marker that may have arrived only in part.
const TORN_LIST_MARKER = /^(?:[-*+]|\d{1,10}[.)]?)$/
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/
const FENCE_IN_LIST = /^(?:(?:[-*+]|\d{1,9}[.)]) {1,9}){0,4}(`{3,}(?=[^`]*$)|~{3,})/
const HTML_ENDS: readonly (readonly [start: RegExp, end: RegExp])[] = [
  [/^ {0,3}<(?:pre|script|style|textarea)\b/i, /<\/(?:pre|script|style|textarea)>/i],
  [/^ {0,3}<!--/, /-->/],
  [/^ {0,3}<\?/, /\?>/],
  [/^ {0,3}<!\[CDATA\[/, /\]\]>/],
  [/^ {0,3}<![A-Z]/i, />/],
]

// A marker begins within this many characters of its line.
const MARKER_CHARS = 200

/** The offsets of the blocks that follow a blank line and do not depend on the block before it. */
function blockStarts(markdown: string, isWhole: boolean): number[] {
  const starts: number[] = []
  const lines = new BlockScan()
  for (let start = 0; start < markdown.length; ) {
    const newline = markdown.indexOf('\n', start)
    const end = newline === -1 ? markdown.length : newline
    if (lines.startsBlock(markdown.slice(start, end), isWhole || newline !== -1) && start > 0) starts.push(start)
    start = end + 1
  }
  return starts
}

/** Scans Markdown line by line and keeps what decides whether the next line starts a block. */
class BlockScan {
  #fence: string | null = null
  #htmlEnd: RegExp | null = null
  #isList = false
  #isAfterBlank = true

  startsBlock(line: string, isComplete: boolean): boolean {
    if (this.#goesOn(line)) {
      this.#isAfterBlank = false
      return false
    }
    if (/^[ \t]*\r?$/.test(line)) {
      this.#isAfterBlank = true
      return false
    }
    const starts = this.#isAfterBlank && !/^[ \t]/.test(line) && !(this.#isList && mayBeItem(line, isComplete))
    if (starts) this.#isList = false
    this.#isAfterBlank = false
    this.#open(line.slice(0, MARKER_CHARS), line)
    return starts
  }

  /** Whether the line is inside a code block or an HTML block. */
  #goesOn(line: string): boolean {
    if (this.#fence !== null) {
      const text = line.slice(0, MARKER_CHARS).trim()
      if (text.startsWith(this.#fence) && text === text.charAt(0).repeat(text.length)) this.#fence = null
      return true
    }
    if (this.#htmlEnd === null) return false
    if (this.#htmlEnd.test(line)) this.#htmlEnd = null
    return true
  }

  #open(start: string, line: string): void {
    if (LIST_MARKER.test(start)) this.#isList = true
    this.#fence = (this.#isList ? FENCE_IN_LIST.exec(start.trim()) : FENCE.exec(start))?.[1] ?? null
    const html = HTML_ENDS.find(([opening]) => opening.test(start))
    this.#htmlEnd = html === undefined || html[1].test(line) ? null : html[1]
  }
}

/** Whether the line may be a further item of the list before it. */
function mayBeItem(line: string, isComplete: boolean): boolean {
  return LIST_MARKER.test(line) || (!isComplete && TORN_LIST_MARKER.test(line))
}
