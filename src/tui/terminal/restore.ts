import { EventEmitter } from 'node:events'
import { oneLine } from '../../words/cells.ts'
import { PUSH_TITLE, type TerminalOutput } from './output.ts'

export interface TerminalCareOptions {
  output: TerminalOutput
  /** The terminal's `TERM`; the Linux console and dumb terminals have no title. */
  term: string | undefined
  /** Writes to the terminal before it returns, also while the program falls; drops what the terminal does not take. */
  writeNow(text: string): void
  /** Gives the terminal its echo and line editing back. */
  rawModeOff(): void
}

/** Characters of a title: no window shows more. */
const TITLE_LENGTH = 200

/** Leaves a terminal as it was found: keys, echo, cursor, paste mode, title. */
export class TerminalCare {
  readonly #options: TerminalCareOptions
  #title: string | null = null
  #hasLeft = false

  constructor(options: TerminalCareOptions) {
    this.#options = options
  }

  /** Sets the title of the window, on one line. */
  setTitle(text: string): void {
    const { output, term = 'dumb' } = this.#options
    const title = oneLine(text, TITLE_LENGTH)
    if (this.#hasLeft || title === this.#title || /^(?:linux|dumb|vt\d)/.test(term)) return
    output.write(`${this.#title === null ? PUSH_TITLE : ''}\x1b]0;${title}\x07`)
    this.#title = title
  }

  /** Restores the terminal, and lets nothing more through. May be called again, and from anywhere: it never throws. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    const { output, writeNow, rawModeOff } = this.#options
    const sequence = output.writable ? output.restoreSequence() : ''
    for (const step of [() => writeNow(sequence), rawModeOff, () => output.close()]) {
      try {
        step()
      } catch {
        // A terminal that is gone has nothing to restore.
      }
    }
  }
}

/**
 * The same terminal for a second Ink, which knows its instances by their stream, while the first one is suspended. The
 * first one's output goes on to count the bytes and to note the modes.
 */
export class LentOutput extends EventEmitter implements NodeJS.WritableStream {
  readonly #output: TerminalOutput

  constructor(output: TerminalOutput) {
    super()
    this.#output = output
    output.on('resize', this.#resized)
  }

  get isTTY(): boolean {
    return this.#output.isTTY
  }

  get columns(): number {
    return this.#output.columns
  }

  get rows(): number {
    return this.#output.rows
  }

  get writable(): boolean {
    return this.#output.writable
  }

  get destroyed(): boolean {
    return !this.writable
  }

  get writableEnded(): boolean {
    return !this.writable
  }

  write(...data: Parameters<TerminalOutput['write']>): boolean {
    return this.#output.write(...data)
  }

  /** Gives the terminal back. */
  end(): this {
    this.#output.off('resize', this.#resized)
    return this
  }

  readonly #resized = () => {
    this.emit('resize')
  }
}
