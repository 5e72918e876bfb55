import type { Clock } from '../../../base/clock.ts'
import type { TerminalOutput } from '../terminal/output.ts'
import { atLeastAsHigh, drawScreen, type Frame, isSame } from './frame.ts'
import type { ScreenModel } from './model.ts'

interface PainterOptions {
  model: ScreenModel
  output: TerminalOutput
  clock: Clock
  /** Aborted when the screen closes: output is no longer held back. */
  closed: AbortSignal
}

/** How long printed lines may wait for the next frame, ms: two of Ink's frames. */
const HOLD_MS = 34

/** Hands Ink the next frame and prints the scrollback above it, so that the terminal shows both in one update. */
export class Painter {
  readonly #options: PainterOptions
  readonly #listeners = new Set<() => void>()
  #frame: Frame
  /** The height of the last frame; 0 after `forgetHeight`. */
  #rows = 0
  #write: ((text: string) => void) | null = null
  /** Whether the waiting lines are printed once a lower frame has been drawn. */
  #printsBehind = false

  constructor(options: PainterOptions) {
    this.#options = options
    this.#frame = drawScreen(options.model, options.clock.now())
    this.expectFrame()
  }

  /** Calls the listener after each change of the frame, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The present frame; the same object until it changes. */
  readonly frame = (): Frame => this.#frame

  /** Sets the function that writes above the frame; until then, printed lines wait. */
  printBy(write: (text: string) => void): void {
    this.#write = write
  }

  /** Announces the frame that Ink draws next to the output. */
  expectFrame(): void {
    this.#options.output.setFrame(this.#frame.lines, this.#frame.caret)
  }

  /** Prints the waiting lines, and has the frame drawn if it has changed. @param now Unix time, ms */
  paint(now: number): void {
    const { model, output } = this.#options
    const { scrollback, theme } = model
    const least = theme.symbols ? Math.min(this.#rows - scrollback.count, output.rows - 1) : 0
    const frame = atLeastAsHigh(drawScreen(model, now), least)
    this.#rows = frame.lines.length
    const isNew = !isSame(frame, this.#frame)
    const isLower = frame.lines.length < this.#frame.lines.length
    if (isNew && !scrollback.isEmpty) this.#hold()
    // Ink prints above the frame that it has drawn: above a higher one, what it leaves behind would be rows below the next.
    this.#printsBehind = isNew && isLower && !scrollback.isEmpty
    if (!this.#printsBehind) this.flush()
    if (!isNew) return
    this.#frame = frame
    this.expectFrame()
    this.#notify()
  }

  /** Ink's `onRender`: the frame has been drawn, or will be with what is written next. */
  drawn(): void {
    this.#options.output.frameDrawn(this.#printsBehind)
    // Ink takes note of the frame only behind this call.
    if (this.#printsBehind) queueMicrotask(() => this.#release())
  }

  /** Prints the waiting lines. */
  flush(): void {
    this.#printsBehind = false
    const { scrollback } = this.#options.model
    if (this.#write === null || scrollback.isEmpty) return
    this.#write(scrollback.take())
  }

  /** Lets the next frame be lower than this one. */
  forgetHeight(): void {
    this.#rows = 0
  }

  /** Empties the frame, so that the next one is drawn as a whole. */
  empty(): void {
    this.#frame = { lines: [], caret: null }
    this.forgetHeight()
    this.#notify()
  }

  /** Holds the output until the next frame, at most `HOLD_MS`. */
  #hold(): void {
    const { output, clock, closed } = this.#options
    output.hold()
    void clock.wait(HOLD_MS, closed).then(() => this.#release())
  }

  /** Prints what was to be printed behind a lower frame, and lets the terminal show all that was held back. */
  #release(): void {
    if (this.#printsBehind) this.flush()
    this.#options.output.release()
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}
