import type { Redactor } from '../../base/redactor.ts'
import type { LiveItem } from '../../ui/live/live-board.ts'

const MOST_CHARACTERS = 64 * 1024
const MOST_OUTPUT_CHARACTERS = 16 * 1024

/**
 * The text of a live item as others may see it: it comes in pieces that hold a part of a secret each, so each piece is
 * kept back as long as it may be the beginning of one. What has been let out never changes any more.
 */
export class SharedText {
  readonly #redactor: Redactor
  /** How much of the item's text has been taken in, of what was streamed of it since it began. */
  #taken = 0
  #held = ''
  text = ''
  dropped = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Takes in what the item has more of than the last time. */
  follow({ item, text, dropped }: Pick<LiveItem, 'item' | 'text' | 'dropped'>): void {
    // Of an output the end is kept, of all else the start.
    const isOutput = item.kind === 'command'
    const start = isOutput ? dropped : 0
    const isGap = start > this.#taken
    const more = isGap ? withoutFirstWord(text) : text.slice(this.#taken - start)
    this.#taken = start + text.length
    if (more === '') return
    this.#append(this.#letOut(isGap ? more : this.#held + more), isOutput ? MOST_OUTPUT_CHARACTERS : MOST_CHARACTERS)
  }

  #letOut(text: string): string {
    const end = text.length - this.#redactor.unfinished(text)
    const [open, held] = [text.slice(0, end), text.slice(end)]
    const all = this.#redactor.text(text)
    // A secret may end with what another begins with: then it is whole.
    const isCut = this.#redactor.text(open) + this.#redactor.text(held) !== all
    this.#held = isCut ? '' : held
    return isCut ? all : this.#redactor.text(open)
  }

  #append(more: string, most: number): void {
    const text = this.text + more
    this.dropped += Math.max(0, text.length - most)
    this.text = text.slice(-most)
  }
}

/** It may be the end of a secret. */
function withoutFirstWord(text: string): string {
  return text.slice(Math.max(0, text.search(/\s/)))
}
