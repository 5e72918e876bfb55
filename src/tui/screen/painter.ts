import type { Clock } from '../../base/clock.ts'
import type { TerminalOutput } from '../terminal/output.ts'
import { atLeastAsHigh, type Frame, isSame } from './frame.ts'
import type { ScreenModel } from './model.ts'

export interface PainterOptions {
  model: ScreenModel
  output: TerminalOutput
  clock: Clock
  /** Nothing is kept back any more. */
  closed: AbortSignal
}

/** How long what is printed may wait for the next frame: two of Ink's frames. */
const HOLD_MS = 34

/** The frame that Ink draws next, and what is printed above it. */
export class Painter {
  readonly #options: PainterOptions
  readonly #listeners = new Set<() => void>()
  #frame: Frame
  /** How high the frame was last; 0 where that does not matter any more. */
  #rows = 0
  #write: ((text: string) => void) | null = null

  constructor(options: PainterOptions) {
    this.#options = options
    this.#frame = options.model.frame(options.clock.now())
    this.expectFrame()
  }

  /** Calls the listener whenever the frame is another, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The same object until something has changed. */
  readonly frame = (): Frame => this.#frame

  /** From now on this writes above the frame; what was printed before has waited for it. */
  printBy(write: (text: string) => void): void {
    this.#write = write
  }

  /** Tells the terminal what Ink draws. */
  expectFrame(): void {
    this.#options.output.setFrame(this.#frame.lines, this.#frame.caret)
  }

  /** Prints what waits, and has the frame drawn if it looks different now. */
  paint(now: number): void {
    const { model, output } = this.#options
    const { scrollback, theme } = model
    const least = theme.symbols ? Math.min(this.#rows - scrollback.count, output.rows - 1) : 0
    const frame = atLeastAsHigh(model.frame(now), least)
    this.#rows = frame.lines.length
    const isNew = !isSame(frame, this.#frame)
    if (isNew && !scrollback.isEmpty) this.#hold()
    this.flush()
    if (!isNew) return
    this.#frame = frame
    this.expectFrame()
    this.#tell()
  }

  /** Prints what waits. */
  flush(): void {
    const { scrollback } = this.#options.model
    if (this.#write === null || scrollback.isEmpty) return
    this.#write(scrollback.take())
  }

  /** The next frame may be lower than this one. */
  forgetHeight(): void {
    this.#rows = 0
  }

  /** Has the frame emptied, so that the next one is drawn as a whole. */
  empty(): void {
    this.#frame = { lines: [], caret: null }
    this.forgetHeight()
    this.#tell()
  }

  /** What is printed and the frame that follows from it are shown in one step, or after a moment anyway. */
  #hold(): void {
    const { output, clock, closed } = this.#options
    output.hold()
    void clock.wait(HOLD_MS, closed).then(() => output.release())
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
