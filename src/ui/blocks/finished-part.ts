/**
 * How many characters from the start are complete blocks of Markdown, which will not change however the text goes on.
 * Looks at each line once.
 */
export function finishedPart(markdown: string): number {
  return blockStarts(markdown, false).at(-1) ?? 0
}

/** A whole Markdown text in pieces to be read one by one: what `finishedPart` would have cut off, block by block, and the rest. */
export function partsOf(markdown: string): string[] {
  const starts = [0, ...blockStarts(markdown, true)]
  return starts.map((start, i) => markdown.slice(start, starts[i + 1]))
}

const LIST_MARKER = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
// What may be seen of a list marker while it arrives.
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

// No marker stands behind that many characters of a line.
const MARKER_CHARS = 200

/** Where blocks start that a blank line parts from what is before, so that neither changes the other. */
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

/** What has to be known of the lines before, to tell whether a line starts a block. */
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

  /** Whether the line is inside of a code block or of HTML, and has no meaning of its own. */
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

/** Whether a line may be a further item of the list before it. */
function mayBeItem(line: string, isComplete: boolean): boolean {
  return LIST_MARKER.test(line) || (!isComplete && TORN_LIST_MARKER.test(line))
}
