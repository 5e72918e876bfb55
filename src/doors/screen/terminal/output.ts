import { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import stringWidth from 'string-width'
import { widthOf } from '../../../tell/words/cells.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { ScreenProcess } from '../cli-context.ts'
import { STYLE_SEQUENCES } from './theme.ts'

/** A terminal's stream, such as `process.stdout`. */
export type TerminalStream = Writable & { isTTY?: boolean; columns?: number; rows?: number }

interface TerminalOutputOptions {
  stream: TerminalStream
  narrowing: Narrowing
  /** Called at most once, when the terminal has gone (closed window, lost connection); later writes are dropped. */
  onGone?: () => void
}

type Written = (error?: Error | null) => void

/**
 * The terminal stream that Ink writes to. Sequences that erase the screen or the scrollback are dropped. When the terminal
 * gets narrower, the rows that this added to the frame are erased before Ink hears of the resize.
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
  #draining: PromiseWithResolvers<void> | null = null
  #held: { text: string; written: Written[] } | null = null
  #isVeiled = false

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

  /** The number of bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the terminal has stopped reading, so that another frame would only be buffered. */
  get isFull(): boolean {
    return this.writable && this.#stream.writableNeedDrain
  }

  /** Resolves once the terminal reads again, or is gone. */
  ready(): Promise<void> {
    if (!this.isFull) return Promise.resolve()
    this.#draining ??= Promise.withResolvers()
    return this.#draining.promise
  }

  /** Sets the frame that Ink draws next and its cursor. To be called before the render. */
  setFrame(lines: readonly string[], caret: DrawnFrame['caret']): void {
    this.#next = { lines, caret }
  }

  /** Ink's `onRender`: the frame has been drawn. @param holdsOn whether more is to be shown in the same update */
  frameDrawn(holdsOn = false): void {
    if (this.#next) this.#drawn = { ...this.#next, columns: this.columns, rows: this.rows }
    if (!holdsOn) this.release()
  }

  /** Holds writes back until the next frame is drawn, so that the terminal shows both in one update. */
  hold(): void {
    this.#held ??= { text: '', written: [] }
  }

  /** Holds all writes back until `unveil`, whatever is drawn meanwhile. */
  veil(): void {
    this.hold()
    this.#isVeiled = true
  }

  /** Writes what was held back, and ends that. */
  unveil(): void {
    this.#isVeiled = false
    this.release()
  }

  /** Writes what `hold` has kept back, unless it is behind a veil. */
  release(): void {
    if (this.#isVeiled) return
    const held = this.#held
    this.#held = null
    if (held === null) return
    const written = () => {
      for (const each of held.written) each()
    }
    if (!this.writable || held.text === '') queueMicrotask(written)
    else this.#stream.write(inOneUpdate(held.text), written)
  }

  /** Forgets the frame: it is no longer on the screen, as the terminal is lent or Ink is unmounted. */
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
      // Ink takes the terminal back only once that is written.
      if (written && this.#isVeiled) queueMicrotask(written)
      else if (written) this.#held.written.push(written)
      return true
    }
    return this.#stream.write(text, () => written?.())
  }

  /** Has the terminal copy a text to the person's clipboard (OSC 52); false if it is longer than terminals take. */
  copy(text: string): boolean {
    const encoded = Buffer.from(text).toString('base64')
    if (encoded.length > MOST_COPIED) return false
    this.write(`\x1b]52;c;${encoded}\x07`)
    return true
  }

  /** Drops all later writes; the underlying stream stays open. */
  end(data?: string | Uint8Array | (() => void)): this {
    if (typeof data === 'string' || data instanceof Uint8Array) this.write(data)
    this.close()
    return this
  }

  /** Detaches from the stream and drops all later writes. */
  close(): void {
    this.#isClosed = true
    letWritesWait(this.#stream, true)
    this.#stream.off('resize', this.#resized)
    this.#stream.off('close', this.#lost)
    this.#stream.off('drain', this.#drained)
    this.#drained()
  }

  /** The last sequence: what was held back, the modes that a shell expects, the cursor below the frame. */
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
      // The held text has drawn the same frame again, for the old width.
      this.#eraseAdded()
    }
    this.emit('resize')
  }

  #eraseAdded(): void {
    const added = this.#drawn ? addedRows(this.#drawn, this, this.#options.narrowing) : 0
    if (added > 0) this.write(`\x1b[${added}A\r\x1b[J`)
  }

  /** Stays attached after `close`: an error event without a listener would end the program. */
  readonly #lost = () => {
    if (this.#isGone) return
    this.#isGone = true
    this.#drained()
    if (!this.#isClosed) this.#options.onGone?.()
  }

  readonly #drained = () => {
    this.#draining?.resolve()
    this.#draining = null
  }
}

/**
 * Whether writes to the terminal block. Node lets them: a terminal that stops reading (a laptop asleep at the other end of
 * ssh) would stop the whole program.
 */
function letWritesWait(
  stream: TerminalStream & { _handle?: { setBlocking?(isBlocking: boolean): unknown } },
  may: boolean,
) {
  stream._handle?.setBlocking?.(may)
}

/** What xterm takes of a clipboard's text in base64, in characters. */
const MOST_COPIED = 100_000

/** Several synchronized updates as one, which the terminal shows at once. */
function inOneUpdate(text: string): string {
  return BEGIN_UPDATE + text.replaceAll(BEGIN_UPDATE, '').replaceAll(END_UPDATE, '') + END_UPDATE
}

const BEGIN_UPDATE = '\x1b[?2026h'
const END_UPDATE = '\x1b[?2026l'

/** The text without sequences that erase the screen or the scrollback, or reset the terminal. */
function withoutWipes(text: string): string {
  const kept = WIPES.test(text) ? text.replaceAll(new RegExp(WIPES, 'g'), '') : text
  return kept.includes(`${CSI}J`) ? kept.replaceAll(ERASES_FROM_ROW, eraseFromRow) : kept
}

/** Erases from the first column on. tmux takes an erasure from the very first cell for a wipe, and scrolls everything away. */
function eraseFromRow(_: string, moves: string): string {
  return `${moves}${CSI}K${CSI}2G${CSI}J\r`
}

const CSI = '\x1b['
const WIPES = new RegExp(`${CSI[0]}(?:\\[[23]J|c)`)
const ERASES_FROM_ROW = new RegExp(`(\\r|${CSI[0]}\\[1?G|${CSI[0]}\\[(?:1;1)?H)${CSI[0]}\\[0?J`, 'g')

/** The frame as it was last written to the terminal. */
export interface DrawnFrame {
  lines: readonly string[]
  /** The cursor, counted from the frame's first cell; null: at the start of the row below the frame. */
  caret: { x: number; y: number } | null
  /** The terminal's size, in cells. */
  columns: number
  rows: number
}

/** What a terminal does with rows that no longer fit when it gets narrower: reflow, reflow all but the cursor's (xterm.js), or cut. */
export type Narrowing = 'breaks' | 'breaks-but-caret-row' | 'cuts'

/** The behaviour of the terminal of this environment; most reflow. */
export function narrowingOf(env: Readonly<Record<string, string | undefined>>): Narrowing {
  const { TERM = '' } = env
  if (TERM.startsWith('tmux') || env.TMUX !== undefined) return 'breaks'
  if (env.TERM_PROGRAM === 'vscode') return 'breaks-but-caret-row'
  if (env.XTERM_VERSION !== undefined || env.STY !== undefined) return 'cuts'
  return /^(?:linux|screen|rxvt|vt\d|dumb|cygwin)/.test(TERM) ? 'cuts' : 'breaks'
}

/** The rows that reflow to the new size has added above the cursor. */
function addedRows(
  { lines, caret, columns: before, rows: rowsBefore }: DrawnFrame,
  { columns, rows }: { columns: number; rows: number },
  narrowing: Narrowing,
): number {
  if (columns >= before || columns < 1 || narrowing === 'cuts') return 0
  const addedBy = (line: string) => reflowedRows(line, before, columns) - 1
  if (caret && narrowing === 'breaks-but-caret-row') {
    // xterm.js goes from the last row to the first, and moves the cursor down for each that it breaks; the row that it then
    // takes for the cursor's stays whole. When it gets lower as well, it has dropped the rows below the cursor first.
    const last = rows < rowsBefore ? caret.y : lines.length - 1
    let cursor = caret.y
    for (let y = last; y >= 0; y -= 1) if (y !== cursor) cursor += addedBy(lines[y] ?? '')
    return cursor - caret.y
  }
  const added = (caret ? lines.slice(0, caret.y) : lines).reduce((sum, line) => sum + addedBy(line), 0)
  if (!caret) return added
  const isBroken = reflowedRows(lines[caret.y] ?? '', before, columns) > 1
  return added + (isBroken ? Math.floor(caret.x / columns) : 0)
}

/** The rows from the cursor down to the first one below the frame. */
function rowsBelow({ lines, caret }: DrawnFrame): number {
  return caret ? Math.max(0, lines.length - caret.y) : 0
}

/** The rows of `columns` cells that a line, cut at `before` cells, is reflowed to; wide characters are not split. */
function reflowedRows(line: string, before: number, columns: number): number {
  const text = line.trimEnd()
  const width = Math.min(widthOf(text), before)
  if (width <= columns) return 1
  if (width === text.length) return Math.ceil(width / columns)
  let [rows, column, used] = [1, 0, 0]
  for (const { segment } of GRAPHEMES.segment(text.replace(STYLE_SEQUENCES, ''))) {
    const cells = stringWidth(segment)
    if (used + cells > before) break
    used += cells
    if (column + cells > columns) [rows, column] = [rows + 1, 0]
    column += cells
  }
  return rows
}

const GRAPHEMES = new Intl.Segmenter()

/** Characters of a title: no window shows more. */
const TITLE_LENGTH = 200

/** Restores the terminal after any end, a crash too: keyboard mode, echo, cursor, bracketed paste, window title. */
export class TerminalRestorer {
  readonly #options: RestorerOptions
  #title: string | null = null
  #hasLeft = false

  constructor(options: RestorerOptions) {
    this.#options = options
  }

  /** Sets the window's title, as one safe line. */
  setTitle(text: string): void {
    const { output, term = 'dumb' } = this.#options
    const title = oneLine(text, TITLE_LENGTH)
    if (this.#hasLeft || title === this.#title || /^(?:linux|dumb|vt\d)/.test(term)) return
    output.write(`${this.#title === null ? PUSH_TITLE : ''}\x1b]0;${title}\x07`)
    this.#title = title
  }

  /** Restores the terminal and closes the output. May be called again and from anywhere: it never throws. */
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

interface RestorerOptions extends Pick<ScreenProcess, 'writeNow' | 'rawModeOff'> {
  output: TerminalOutput
  /** The terminal's `TERM`; the Linux console and dumb terminals have no title. */
  term: string | undefined
}

/** The modes that are switched on in a terminal, read from the bytes written to it, so that they can be switched off again. */
class TerminalModes {
  /** The depth of each screen's stack of keyboard modes (kitty's protocol). */
  readonly #keyboards = { main: 0, alternate: 0 }
  readonly #switchedOn = new Set<string>()
  #hasTitle = false
  #isAlternate = false

  /** Notes the modes that a written text switches on or off. */
  note(text: string): void {
    if (!text.includes(CSI)) return
    for (const [, mode, switched, keyboard, title] of text.matchAll(SWITCHES)) {
      if (mode !== undefined) this.#switch(mode, switched === 'h')
      else if (keyboard === '>') this.#keyboards[this.#screen]++
      else if (keyboard === '<') this.#keyboards[this.#screen] = Math.max(0, this.#keyboards[this.#screen] - 1)
      else if (title !== undefined) this.#hasTitle = title === '22'
    }
  }

  /** The sequence that restores the modes a shell expects; harmless when written twice. */
  restoreSequence(): string {
    const out = [`${CSI}?2026l`, `${CSI}0m`]
    if (this.#isAlternate) out.push(POP_KEYBOARD.repeat(this.#keyboards.alternate), `${CSI}?1049l`)
    out.push(POP_KEYBOARD.repeat(this.#keyboards.main))
    for (const mode of this.#switchedOn) out.push(`${CSI}?${mode}l`)
    out.push(`${CSI}?2004l`, `${CSI}?7h`, `${CSI}?25h`)
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

// Saves the window title and brings it back (XTWINOPS); a terminal that cannot do that ignores both.
const PUSH_TITLE = '\x1b[22;0t'
const POP_TITLE = '\x1b[23;0t'

const POP_KEYBOARD = `${CSI}<u`
const SWITCHES = new RegExp(`${CSI.replace('[', '\\[')}(?:\\?(\\d+)([hl])|([<>])\\d*u|(2[23]);0t)`, 'g')
const ALWAYS_RESTORED = new Set(['7', '25', '2004', '2026'])
