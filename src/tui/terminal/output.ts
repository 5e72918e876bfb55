import { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import stringWidth from 'string-width'
import { widthOf } from '../../words/cells.ts'

/** The stream of a terminal, such as `process.stdout`. */
export type TerminalStream = Writable & { isTTY?: boolean; columns?: number; rows?: number }

export interface TerminalOutputOptions {
  stream: TerminalStream
  narrowing: Narrowing
  /** The terminal has gone (closed window, lost connection). Called at most once; what is written then is dropped. */
  onGone?: () => void
}

type Written = (error?: Error | null) => void

/**
 * A terminal as Ink is given it: what Ink writes goes through, but nothing that wipes the screen or the scrollback;
 * before Ink hears that the terminal got narrower, the rows are erased that this has made of its frame.
 */
export class TerminalOutput extends EventEmitter implements NodeJS.WritableStream {
  readonly modes = new TerminalModes()
  readonly #stream: TerminalStream
  readonly #options: TerminalOutputOptions
  #next: { lines: readonly string[]; caret: DrawnFrame['caret'] } | null = null
  #drawn: DrawnFrame | null = null
  #bytes = 0
  #isGone = false
  #isClosed = false
  #draining: { promise: Promise<void>; end: () => void } | null = null
  #held: { text: string; written: Written[] } | null = null

  constructor(options: TerminalOutputOptions) {
    super()
    this.#options = options
    this.#stream = options.stream
    this.setMaxListeners(0)
    letWritesWait(this.#stream, false)
    this.#stream.on('resize', this.#resized)
    this.#stream.on('error', this.#lost)
    this.#stream.on('close', this.#lost)
    this.#stream.on('drain', this.#drained)
  }

  get isTTY(): boolean {
    return this.#stream.isTTY === true
  }

  get columns(): number {
    return this.#stream.columns || 80
  }

  get rows(): number {
    return this.#stream.rows || 24
  }

  get writable(): boolean {
    return !this.#isGone && !this.#isClosed && this.#stream.writable
  }

  get destroyed(): boolean {
    return !this.writable
  }

  get writableEnded(): boolean {
    return !this.writable
  }

  /** Bytes that have been written in all. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the terminal has stopped to read, so that another frame would only wait in memory. */
  get isFull(): boolean {
    return this.writable && this.#stream.writableNeedDrain
  }

  /** Resolves once the terminal reads again, or is gone. */
  ready(): Promise<void> {
    if (!this.isFull) return Promise.resolve()
    if (!this.#draining) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#draining = { promise, end: resolve }
    }
    return this.#draining.promise
  }

  /** The frame that Ink draws next, and where the cursor goes in it. Call it before the render. */
  setFrame(lines: readonly string[], caret: DrawnFrame['caret']): void {
    this.#next = { lines, caret }
  }

  /** Ink has drawn: its `onRender`. */
  frameDrawn(): void {
    if (this.#next) this.#drawn = { ...this.#next, columns: this.columns, rows: this.rows }
    this.release()
  }

  /** Keeps back what is written until the next frame is drawn, so that the terminal shows both in one step. */
  hold(): void {
    this.#held ??= { text: '', written: [] }
  }

  /** Writes what was kept back; does nothing if nothing is. */
  release(): void {
    const held = this.#held
    this.#held = null
    if (held === null) return
    const written = () => {
      for (const each of held.written) each()
    }
    if (!this.writable || held.text === '') queueMicrotask(written)
    else this.#stream.write(inOneStep(held.text), written)
  }

  /** The frame is not on the screen any more: the terminal is lent to something else, or Ink is unmounted. */
  frameGone(): void {
    this.release()
    this.#drawn = null
    this.#next = null
  }

  write(data: string | Uint8Array, encoding?: BufferEncoding | Written, callback?: Written): boolean {
    const written = typeof encoding === 'function' ? encoding : callback
    if (!this.writable) {
      queueMicrotask(() => written?.())
      return true
    }
    const text = withoutWipes(typeof data === 'string' ? data : Buffer.from(data).toString())
    this.modes.note(text)
    this.#bytes += Buffer.byteLength(text)
    if (this.#held) {
      this.#held.text += text
      if (written) this.#held.written.push(written)
      return true
    }
    return this.#stream.write(text, () => written?.())
  }

  /** Nothing goes through after this; the stream below stays open. */
  end(data?: string | Uint8Array | (() => void)): this {
    if (typeof data === 'string' || data instanceof Uint8Array) this.write(data)
    this.close()
    return this
  }

  /** Lets go of the stream; what is written after this is dropped. */
  close(): void {
    this.#isClosed = true
    letWritesWait(this.#stream, true)
    this.#stream.off('resize', this.#resized)
    this.#stream.off('close', this.#lost)
    this.#stream.off('drain', this.#drained)
    this.#drained()
  }

  /** What ends it all: what was kept back, the modes as a shell expects them, the cursor below the frame. */
  restoreSequence(): string {
    const down = this.#drawn ? rowsBelow(this.#drawn) : 0
    const held = this.#held?.text ?? ''
    this.#held = null
    return held + this.modes.restoreSequence() + (down > 0 ? `\x1b[${down}B\r` : '')
  }

  readonly #resized = () => {
    const held = this.#held
    this.#held = null
    this.#eraseAdded()
    if (held !== null && held.text !== '') {
      this.#held = held
      this.release()
      // It has drawn the same frame again, for the width before.
      this.#eraseAdded()
    }
    this.emit('resize')
  }

  #eraseAdded(): void {
    const added = this.#drawn ? addedRows(this.#drawn, this, this.#options.narrowing) : 0
    if (added > 0) this.write(`\x1b[${added}A\r\x1b[J`)
  }

  /** Stays on the stream after `close`: an error that nobody listens to would end the program. */
  readonly #lost = () => {
    if (this.#isGone) return
    this.#isGone = true
    this.#drained()
    if (!this.#isClosed) this.#options.onGone?.()
  }

  readonly #drained = () => {
    this.#draining?.end()
    this.#draining = null
  }
}

/**
 * Node waits until a terminal has read what is written to it: one that stops to read (a laptop asleep at the other end
 * of an ssh) would stop the whole program.
 */
function letWritesWait(
  stream: TerminalStream & { _handle?: { setBlocking?(isBlocking: boolean): unknown } },
  may: boolean,
) {
  stream._handle?.setBlocking?.(may)
}

/** Several updates as one, which a terminal shows when it is whole. */
function inOneStep(text: string): string {
  return BEGIN_UPDATE + text.replaceAll(BEGIN_UPDATE, '').replaceAll(END_UPDATE, '') + END_UPDATE
}

const BEGIN_UPDATE = '\x1b[?2026h'
const END_UPDATE = '\x1b[?2026l'

/** Without what erases the whole screen or the scrollback, and without a reset. */
function withoutWipes(text: string): string {
  const kept = WIPES.test(text) ? text.replaceAll(new RegExp(WIPES, 'g'), '') : text
  return kept.includes(`${CSI}J`) ? kept.replaceAll(ERASES_FROM_ROW, eraseFromRow) : kept
}

/** From the first column. tmux takes an erasure that begins at the very first cell for a wipe, and scrolls all away. */
function eraseFromRow(_: string, moves: string): string {
  return `${moves}${CSI}K${CSI}2G${CSI}J\r`
}

const CSI = '\x1b['
const WIPES = new RegExp(`${CSI[0]}(?:\\[[23]J|c)`)
const ERASES_FROM_ROW = new RegExp(`(\\r|${CSI[0]}\\[1?G|${CSI[0]}\\[(?:1;1)?H)${CSI[0]}\\[0?J`, 'g')

/** The live region as it was last written to the terminal. */
export interface DrawnFrame {
  lines: readonly string[]
  /** Where the cursor was left, counted from the frame's first cell; null: at the start of the row below the frame. */
  caret: { x: number; y: number } | null
  /** How wide and high the terminal was. */
  columns: number
  rows: number
}

/**
 * What a terminal that gets narrower does to rows that no longer fit: it breaks them in two, it does so with all but
 * the row of the cursor (xterm.js), or it cuts them.
 */
export type Narrowing = 'breaks' | 'breaks-but-caret-row' | 'cuts'

/** What the terminal of this environment does; most that are in use break rows. */
export function narrowingOf(env: Readonly<Record<string, string | undefined>>): Narrowing {
  const { TERM = '' } = env
  if (TERM.startsWith('tmux') || env.TMUX !== undefined) return 'breaks'
  if (env.TERM_PROGRAM === 'vscode') return 'breaks-but-caret-row'
  if (env.XTERM_VERSION !== undefined || env.STY !== undefined) return 'cuts'
  return /^(?:linux|screen|rxvt|vt\d|dumb|cygwin)/.test(TERM) ? 'cuts' : 'breaks'
}

/** How many rows further down in the frame than it was left the cursor is, now that the terminal is of this size. */
export function addedRows(
  { lines, caret, columns: before, rows: rowsBefore }: DrawnFrame,
  { columns, rows }: { columns: number; rows: number },
  narrowing: Narrowing,
): number {
  if (columns >= before || columns < 1 || narrowing === 'cuts') return 0
  const addedBy = (some: readonly string[]) => some.reduce((sum, line) => sum + rowsOf(line, before, columns) - 1, 0)
  const added = addedBy(caret ? lines.slice(0, caret.y) : lines)
  if (!caret) return added
  // Such a terminal moves the cursor down for the rows below it too; one that gets lower has dropped those first.
  if (narrowing === 'breaks-but-caret-row') return added + (rows < rowsBefore ? 0 : addedBy(lines.slice(caret.y + 1)))
  const isBroken = rowsOf(lines[caret.y] ?? '', before, columns) > 1
  return added + (isBroken ? Math.floor(caret.x / columns) : 0)
}

/** How many rows down from the cursor the first one below the frame is. */
export function rowsBelow({ lines, caret }: DrawnFrame): number {
  return caret ? Math.max(0, lines.length - caret.y) : 0
}

/** A line that was cut at `before` columns takes so many rows of `columns`; no wide character is broken in two. */
function rowsOf(line: string, before: number, columns: number): number {
  const text = line.trimEnd()
  const width = Math.min(widthOf(text), before)
  if (width <= columns) return 1
  if (width === text.length) return Math.ceil(width / columns)
  let [rows, column, used] = [1, 0, 0]
  for (const { segment } of GRAPHEMES.segment(text.replace(SEQUENCES, ''))) {
    const cells = stringWidth(segment)
    if (used + cells > before) break
    used += cells
    if (column + cells > columns) [rows, column] = [rows + 1, 0]
    column += cells
  }
  return rows
}

const GRAPHEMES = new Intl.Segmenter()
const ESC = String.fromCharCode(0x1b)
const SEQUENCES = new RegExp(`${ESC}\\[[\\d;:]*m|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')

/**
 * What has been switched on in a terminal, read from the bytes that go to it, so that it can be switched off again
 * after any end.
 */
export class TerminalModes {
  /** Depth of the stack of keyboard modes that each screen has of its own (kitty's protocol). */
  readonly #keyboards = { main: 0, alternate: 0 }
  readonly #switchedOn = new Set<string>()
  #hasTitle = false
  #isAlternate = false

  /** Text on its way to the terminal. */
  note(text: string): void {
    if (!text.includes(CSI_OF_TERMINAL_MODES)) return
    for (const [, mode, switched, keyboard, title] of text.matchAll(SWITCHES)) {
      if (mode !== undefined) this.#switch(mode, switched === 'h')
      else if (keyboard === '>') this.#keyboards[this.#screen]++
      else if (keyboard === '<') this.#keyboards[this.#screen] = Math.max(0, this.#keyboards[this.#screen] - 1)
      else if (title !== undefined) this.#hasTitle = title === '22'
    }
  }

  /** What brings the terminal back to what a shell expects; it can be written twice without harm. */
  restoreSequence(): string {
    const out = [`${CSI_OF_TERMINAL_MODES}?2026l`, `${CSI_OF_TERMINAL_MODES}0m`]
    if (this.#isAlternate) out.push(POP_KEYBOARD.repeat(this.#keyboards.alternate), `${CSI_OF_TERMINAL_MODES}?1049l`)
    out.push(POP_KEYBOARD.repeat(this.#keyboards.main))
    for (const mode of this.#switchedOn) out.push(`${CSI_OF_TERMINAL_MODES}?${mode}l`)
    out.push(`${CSI_OF_TERMINAL_MODES}?2004l`, `${CSI_OF_TERMINAL_MODES}?7h`, `${CSI_OF_TERMINAL_MODES}?25h`)
    if (this.#hasTitle) out.push(POP_TITLE)
    const sequence = out.join('')
    this.note(sequence)
    return sequence
  }

  get #screen(): 'main' | 'alternate' {
    return this.#isAlternate ? 'alternate' : 'main'
  }

  #switch(mode: string, isOn: boolean): void {
    if (mode === '1049') this.#isAlternate = isOn
    else if (!ALWAYS_RESTORED.has(mode) && isOn) this.#switchedOn.add(mode)
    else this.#switchedOn.delete(mode)
  }
}

/** Lays the terminal's title aside, for `POP_TITLE` to bring it back; a terminal that cannot do that ignores both. */
export const PUSH_TITLE = '\x1b[22;0t'
const POP_TITLE = '\x1b[23;0t'

const CSI_OF_TERMINAL_MODES = '\x1b['
const POP_KEYBOARD = `${CSI_OF_TERMINAL_MODES}<u`
const SWITCHES = new RegExp(
  `${CSI_OF_TERMINAL_MODES.replace('[', '\\[')}(?:\\?(\\d+)([hl])|([<>])\\d*u|(2[23]);0t)`,
  'g',
)
const ALWAYS_RESTORED = new Set(['7', '25', '2004', '2026'])
