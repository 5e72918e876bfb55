import { render } from 'ink'
import type { Clock } from '../../base/clock.ts'
import type { LiveEvent } from '../../session/events.ts'
import type { View } from '../../session/view.ts'
import { outputLines } from '../blocks/command-lines.ts'
import { roleOf } from '../blocks/described-lines.ts'
import { loadGrammars } from '../blocks/highlight-code.ts'
import type { Tone } from '../description.ts'
import { openPager } from '../pager/open-pager.tsx'
import type { PagerSource } from '../pager/pager-source.ts'
import { safeText } from '../safe-text.ts'
import { narrowingOf } from '../terminal/drawn-frame.ts'
import { TerminalCare } from '../terminal/terminal-care.ts'
import { TerminalOutput, type TerminalStream } from '../terminal/terminal-output.ts'
import type { Role, Theme } from '../theme.ts'
import { isPlanShown } from '../words-for-build.ts'
import { App, type Mounted } from './app.tsx'
import { Controls } from './controls.ts'
import { atLeastAsHigh, isSame } from './frames.ts'
import type { ScreenHost } from './host.ts'
import { indented } from './indented.ts'
import type { Frame } from './layout.ts'
import { askAboutNewPlan, askToStart } from './questions.ts'
import { sayTooLate } from './say-too-late.ts'
import { type Answer, type Question, ScreenModel, type ScreenModelOptions } from './screen-model.ts'

export interface ScreenOptions extends Omit<ScreenModelOptions, 'size' | 'onChange'> {
  stdin: NodeJS.ReadableStream
  stdout: TerminalStream
  env: Readonly<Record<string, string | undefined>>
  clock: Clock
  host: ScreenHost
  /** Writes to the terminal before it returns. */
  writeNow(text: string): void
  /** Gives the terminal its echo and line editing back. */
  rawModeOff(): void
  /** The terminal has gone. */
  onGone(): void
  /** What a key set going has failed with. */
  onFailure(error: unknown): void
}

/** How often the screen moves while text streams in, ms. */
const TICK_MS = 50
/** How often its clocks move. */
const CLOCK_MS = 1_000
/** How long what is printed may wait for the next frame: two of Ink's frames. */
const HOLD_MS = 34
/** How long a person who is writing may take to see that it is too late. */
const SEEN_MS = 60_000

/** The screen of a terminal: draws a session, and what a person types becomes calls of the host. */
export class Screen implements AsyncDisposable {
  readonly model: ScreenModel
  readonly view: View
  readonly output: TerminalOutput
  readonly #options: ScreenOptions
  readonly #care: TerminalCare
  readonly #controls: Controls
  readonly #listeners = new Set<() => void>()
  readonly #closed = new AbortController()
  readonly #ink: ReturnType<typeof render>
  #mounted: Mounted | null = null
  #frame: Frame
  /** How high the frame was last; 0 where that does not matter any more. */
  #rows = 0
  #wake = new AbortController()
  #hasChanged = false
  #isLent = false
  #lending: Promise<void> = Promise.resolve()
  #closing: Promise<void> | null = null
  /** Whether the session ended while a person was writing an answer. */
  #hasBrokenOff = false

  constructor(options: ScreenOptions) {
    const { stdin, stdout, env, clock, host, writeNow, rawModeOff } = options
    this.#options = options
    this.output = new TerminalOutput({ stream: stdout, narrowing: narrowingOf(env), onGone: () => this.#gone() })
    this.#care = new TerminalCare({ output: this.output, term: env.TERM, writeNow, rawModeOff })
    this.model = new ScreenModel({ ...options, size: () => this.output, onChange: () => this.changed() })
    this.#controls = new Controls({
      model: this.model,
      host,
      clock,
      redraw: () => this.#redraw(),
      openOutput: () => this.#openOutput(),
      onFailure: options.onFailure,
    })
    this.view = {
      event: (event, state) => {
        this.model.pane.event(event, state)
        // It has been answered elsewhere.
        const goesOn = event.type === 'unpaused' || event.type === 'session-resumed'
        const isOver = event.type === 'session-ended'
        if (isOver || event.type === 'round-started') this.#hasBrokenOff = isOver && this.model.dialog?.writing === true
        if (isOver || (goesOn && this.model.asksWhileHeld)) this.model.dismiss('withdrawn')
        if (event.type === 'replanned') {
          askToStart({ model: this.model, host, clock }, event.files.length > 0).catch(options.onFailure)
        }
        if (event.type === 'held' && isPlanShown(state)) {
          askAboutNewPlan({ model: this.model, host, clock }).catch(options.onFailure)
        }
        this.changed()
      },
      live: event => this.live(event, clock.now()),
    }
    this.#frame = this.model.frame(clock.now())
    const app = (
      <App
        subscribe={this.#subscribe}
        frame={() => this.#frame}
        onKeys={keys => {
          for (const key of keys) this.#controls.key(key)
          this.#draw()
        }}
        onPaste={text => {
          this.#controls.paste(text)
          this.#draw()
        }}
        onMounted={this.#onMounted}
      />
    )
    this.output.on('resize', () => {
      // A terminal that got lower has dropped rows below the cursor, from where Ink would count.
      if (!this.#isLent) this.#ink.clear()
      this.#rows = 0
      this.#draw()
      // At once, for Ink would draw the old frame once more in the new size.
      this.#ink.rerender(app)
    })
    this.output.setFrame(this.#frame.lines, this.#frame.caret)
    // Ink asks the terminal something before it does this: the answer would be echoed onto the screen.
    if ('setRawMode' in stdin) (stdin as NodeJS.ReadStream).setRawMode(true)
    this.#ink = render(app, {
      stdout: this.output as unknown as NodeJS.WriteStream,
      stdin: stdin as NodeJS.ReadStream,
      interactive: true,
      incrementalRendering: true,
      exitOnCtrlC: false,
      patchConsole: false,
      maxFps: 60,
      isScreenReaderEnabled: !this.model.theme.symbols,
      kittyKeyboard: { mode: 'auto' },
      onRender: () => this.output.frameDrawn(),
    })
    this.#run().catch(options.onFailure)
  }

  /** @param at when it happened; Unix time, ms */
  live(event: LiveEvent, at: number): void {
    this.model.pane.live(event, at)
    this.changed()
  }

  /** Something that is shown has changed: it is drawn soon. */
  changed(): void {
    if (this.#hasChanged) return
    this.#hasChanged = true
    this.#wake.abort()
  }

  /** Prints finished lines: safe, and not wider than the terminal. */
  print(lines: readonly string[]): void {
    this.model.scrollback.add(lines)
    this.changed()
  }

  /** Prints a card above the frame, in the lines that fit. */
  card(lines: (columns: number) => readonly { text: string; tone: Tone }[]): void {
    const { columns } = this.output
    this.print(['', ...lines(columns).map(({ text, tone }) => this.model.theme.paint(roleOf(tone), text))])
  }

  /** Prints a text that may come from outside. */
  say(text: string, role: Role = 'plain'): void {
    const { columns } = this.output
    const lines = safeText(text.replace(/\n$/, '')).split('\n')
    this.print(lines.flatMap(line => indented(line, columns)).map(line => this.model.theme.paint(role, line)))
  }

  notice(text: string, role: Role = 'plain'): void {
    this.model.notice(text, role, this.#options.clock.now())
    this.changed()
  }

  choose(question: Question): Promise<Answer> {
    const answer = this.model.choose(question)
    this.changed()
    return answer
  }

  setTheme(theme: Theme): void {
    this.model.theme = theme
    this.changed()
  }

  /** Lends the terminal to something else; what is printed meanwhile comes afterwards. */
  async lend(action: () => Promise<void>): Promise<void> {
    if (this.#mounted === null || this.#isLent || this.#closed.signal.aborted) return
    this.#flush()
    this.#isLent = true
    this.output.frameGone()
    const lending = this.#mounted.suspend(action)
    this.#lending = lending.catch(() => {})
    try {
      await lending
    } finally {
      this.#isLent = false
      this.output.setFrame(this.#frame.lines, this.#frame.caret)
      this.output.frameDrawn()
      this.#draw()
    }
  }

  /** Shows lines on the alternate screen until the person leaves it. */
  async page(title: string, source: PagerSource, at: 'start' | 'end'): Promise<void> {
    const { stdin, clock } = this.#options
    const { theme } = this.model
    await this.lend(() =>
      openPager({ stdin, output: this.output, title, source, theme, clock, signal: this.#closed.signal, at }),
    )
  }

  /**
   * To be waited for before the screen closes by itself: whoever was writing an answer would go on in the shell. Resolves
   * once they have seen that it is too late; at the latest after a minute, or when it is `over`.
   */
  async settled(over: AbortSignal): Promise<void> {
    const { model } = this
    const isWriting = this.#hasBrokenOff || model.dialog?.writing === true
    if (!isWriting || !model.showsSession || model.isLeaving || !this.output.writable) return
    const seen = new AbortController()
    void sayTooLate(model).then(() => seen.abort())
    await this.#options.clock.wait(SEEN_MS, AbortSignal.any([over, seen.signal]))
  }

  /** Ends the screen; the terminal is as it was, with what was printed. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  /** Gives the terminal back before this returns: for a program that falls. */
  release(): void {
    this.#care.leave()
    void this.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  readonly #subscribe = (listener: () => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly #onMounted = (mounted: Mounted) => {
    this.#mounted = mounted
    this.changed()
    loadGrammars().catch(this.#options.onFailure)
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    const unsubscribe = this.model.composer.subscribe(() => this.changed())
    while (!this.#closed.signal.aborted) {
      this.#wake = new AbortController()
      this.#hasChanged = false
      const isMoving = this.#draw()
      // Whatever comes within a tick is drawn together.
      await clock.wait(TICK_MS, this.#closed.signal)
      if (!isMoving && !this.#hasChanged) await clock.wait(CLOCK_MS - TICK_MS, this.#wake.signal)
      if (this.output.isFull) await this.output.ready()
    }
    unsubscribe()
  }

  async #end(): Promise<void> {
    this.#closed.abort()
    this.#wake.abort()
    this.model.dismiss('withdrawn')
    // Whoever has the terminal gives it back first, or what was printed meanwhile would be lost.
    await this.#lending
    this.#flush()
    // What is still to be drawn would be drawn while Ink is unmounted, and stay.
    if (!this.output.isFull) await this.#ink.waitUntilRenderFlush().catch(() => {})
    this.#ink.clear()
    this.output.frameGone()
    this.#ink.unmount()
    await this.#ink.waitUntilExit().catch(() => {})
    this.#care.leave()
  }

  /** Draws what there is now; whether it will have moved soon. */
  #draw(): boolean {
    if (this.#closed.signal.aborted) return false
    const now = this.#options.clock.now()
    const isMoving = this.model.pane.step(now)
    if (this.#isLent) return isMoving
    const { scrollback, theme } = this.model
    const least = theme.symbols ? Math.min(this.#rows - scrollback.count, this.output.rows - 1) : 0
    const frame = atLeastAsHigh(this.model.frame(now), least)
    this.#rows = frame.lines.length
    const isNew = !isSame(frame, this.#frame)
    if (isNew && !scrollback.isEmpty) this.#hold()
    this.#flush()
    if (isNew) {
      this.#frame = frame
      this.output.setFrame(frame.lines, frame.caret)
      for (const listener of this.#listeners) listener()
    }
    const title = this.model.title(now)
    if (title !== null) this.#care.setTitle(title)
    return isMoving
  }

  /** What is printed and the frame that follows from it are shown in one step, or after a moment anyway. */
  #hold(): void {
    this.output.hold()
    void this.#options.clock.wait(HOLD_MS, this.#closed.signal).then(() => this.output.release())
  }

  #flush(): void {
    if (this.#mounted === null || this.#isLent || this.model.scrollback.isEmpty) return
    this.#mounted.write(this.model.scrollback.take())
  }

  #redraw(): void {
    if (this.#isLent) return
    this.#ink.clear()
    this.#frame = { lines: [], caret: null }
    this.#rows = 0
    for (const listener of this.#listeners) listener()
    this.changed()
  }

  #openOutput(): void {
    const { lastCommand } = this.model.pane
    if (lastCommand === null) {
      this.notice('No command has run yet', 'warning')
      return
    }
    const lines = outputLines(lastCommand, { columns: this.output.columns, theme: this.model.theme })
    const source: PagerSource = { count: lines.length, line: index => lines[index] ?? '', onGrow: () => () => {} }
    this.page('The output of the last command', source, 'end').catch(this.#options.onFailure)
  }

  #gone(): void {
    this.model.dismiss('withdrawn')
    this.#options.onGone()
  }
}
