import { finishedPart } from '../blocks/finished-part.ts'

/** The last part of a message: `isAgain` if it is the whole once more, for it came out otherwise than it was streamed. */
export interface MessageEnd {
  markdown: string
  isAgain: boolean
}

/** One message of the agent on its way into the scrollback: what of it is finished is printed, once; the rest is live. */
export class MessageStream {
  #text = ''
  #printed = 0

  /** What is not printed yet. */
  get rest(): string {
    return this.#text.slice(this.#printed)
  }

  /**
   * The markdown blocks that have become whole, to be printed now; empty if none.
   * @param text the message so far; it begins with what it was before
   */
  advance(text: string): string {
    if (text.length === this.#text.length) return ''
    this.#text = text
    const rest = this.rest
    const finished = rest.slice(0, finishedPart(rest))
    this.#printed += finished.length
    return finished
  }

  /** What is still to be printed of the message as it is in the end. */
  end(text: string): MessageEnd {
    const printed = this.#text.slice(0, this.#printed)
    if (text.startsWith(printed)) return { markdown: text.slice(printed.length), isAgain: false }
    const words = printed.trimEnd()
    // The white space after a block may come out otherwise than it was streamed.
    const isPrinted = text.startsWith(words) && /^(?:\s|$)/.test(text.slice(words.length))
    return isPrinted ? { markdown: text.slice(words.length), isAgain: false } : { markdown: text, isAgain: true }
  }
}
