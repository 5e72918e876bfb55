import { EventEmitter } from 'node:events'
import type { TerminalOutput } from './terminal-output.ts'

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
