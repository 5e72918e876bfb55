import { Writable } from 'node:stream'
import xterm from '@xterm/headless'

/** A terminal without a process: what is written to its stream is drawn by an emulator. */
export class Screen {
  readonly #terminal: xterm.Terminal
  readonly stream: Writable & { isTTY: boolean; columns: number; rows: number }
  /** All that it was given. */
  written = ''

  constructor(columns: number, rows: number, options: { reflowCursorLine?: boolean } = {}) {
    this.#terminal = new xterm.Terminal({
      cols: columns,
      rows,
      allowProposedApi: true,
      scrollback: 5000,
      convertEol: true,
      ...options,
    })
    const stream = new Writable({
      decodeStrings: false,
      write: (text: string, _encoding, done) => {
        this.written += text
        this.#terminal.write(text, done)
      },
    })
    this.stream = Object.assign(stream, { isTTY: true, columns, rows })
  }

  /** The person drags the window: the terminal moves its rows, then the program hears of it. */
  async resize(columns: number, rows: number): Promise<void> {
    await this.drawn()
    this.#terminal.resize(columns, rows)
    Object.assign(this.stream, { columns, rows })
    this.stream.emit('resize')
    await this.drawn()
  }

  /** What a terminal makes of its screen without the program. */
  garble(text: string): Promise<void> {
    return new Promise(resolve => this.#terminal.write(text, resolve))
  }

  /** Resolves once all that was written is on the screen. */
  drawn(): Promise<void> {
    return new Promise(resolve => this.stream.write('', () => this.#terminal.write('', resolve)))
  }

  /** The scrollback and the screen, without empty rows at the end; a row that goes on in the next is one with it. */
  all(): string[] {
    return this.#read(0)
  }

  /** The screen alone, row by row. */
  rows(): string[] {
    const { baseY } = this.#terminal.buffer.active
    return Array.from({ length: this.#terminal.rows }, (_, row) => this.#row(baseY + row))
  }

  get isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate'
  }

  get cursor(): { x: number; y: number } {
    const { cursorX: x, cursorY: y } = this.#terminal.buffer.active
    return { x, y }
  }

  #read(from: number): string[] {
    const { length } = this.#terminal.buffer.active
    const rows = Array.from({ length: length - from }, (_, row) => this.#row(from + row))
    while (rows.at(-1) === '') rows.pop()
    return rows
  }

  #row(index: number): string {
    return this.#terminal.buffer.active.getLine(index)?.translateToString(true) ?? ''
  }
}
