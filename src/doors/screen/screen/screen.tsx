import { type Key as InkKey, render, useApp, useCursor, useInput, usePaste, useStdout } from 'ink'
import { useEffect, useSyncExternalStore } from 'react'
import type { Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import { wrapLine } from '../../../tell/words/cells.ts'
import type { Tone } from '../../../tell/words/names.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import { outputLines } from '../blocks/item-lines.ts'
import { roleOf } from '../blocks/layout.ts'
import { loadGrammars } from '../blocks/markdown.ts'
import type { ScreenProcess } from '../cli-context.ts'
import { type Key, keysFromInk } from '../composer/keys.ts'
import { Pager } from '../pager/pager.ts'
import { type PagerSource, wholeSource } from '../pager/source.ts'
import { narrowingOf, TerminalOutput, TerminalRestorer, type TerminalStream } from '../terminal/output.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import type { FullView, Stage } from '../view/full-view.ts'
import { openView, Rows, SharedKeys } from '../view/stage.tsx'
import { Controls } from './controls.ts'
import type { ScreenHost } from './dialogs.ts'
import { screenTitle } from './frame.ts'
import { SessionView } from './how-it-goes-on.ts'
import { type Answer, type Question, ScreenModel, type ScreenModelOptions } from './model.ts'
import { Painter } from './painter.ts'

/** The interval between frames while text streams in, ms. */
const TICK_MS = 50
/** The interval between frames otherwise, for the clocks, ms. */
const CLOCK_MS = 1_000
/** How long the note that the session has ended waits for the person, ms. */
const SEEN_MS = 60_000

/** The interactive screen on a terminal: draws a session or the start screen, and turns keys into calls of the host. */
export class Screen {
  readonly model: ScreenModel
  readonly view: SessionView
  readonly output: TerminalOutput
  readonly #options: ScreenOptions
  readonly #restorer: TerminalRestorer
  readonly #controls: Controls
  readonly #painter: Painter
  readonly #keys: SharedKeys
  readonly #closed = new AbortController()
  readonly #ink: ReturnType<typeof render>
  #mounted: Mounted | null = null
  #wake = new AbortController()
  #hasChanged = false
  #isLent = false
  /** The action that the terminal was lent to is over, and Ink takes it back. */
  #isComingBack = false
  /** Whether the person sees the field that keys go to: until then they type blindly. */
  #isFieldSeen = false
  /** The message of the last error of drawing; null if there was none. */
  #drawingProblem: string | null = null
  #lending: Promise<void> = Promise.resolve()
  #closing: Promise<void> | null = null

  constructor(options: ScreenOptions) {
    const { stdin, stdout, env, clock, host, writeNow, rawModeOff } = options
    this.#options = options
    this.#keys = new SharedKeys(stdin)
    this.output = new TerminalOutput({ stream: stdout, narrowing: narrowingOf(env), onGone: () => this.#gone() })
    this.#restorer = new TerminalRestorer({ output: this.output, term: env.TERM, writeNow, rawModeOff })
    this.model = new ScreenModel({ ...options, size: () => this.output, onChange: () => this.changed() })
    const { model, output } = this
    const asking = { model, host, clock, onFailure: options.onFailure }
    this.#controls = new Controls({ ...asking, redraw: () => this.#redraw(), openOutput: () => this.#openOutput() })
    this.view = new SessionView(asking)
    this.#painter = new Painter({ model, output, clock, closed: this.#closed.signal })
    const app = (
      <App
        painter={this.#painter}
        onKeys={keys => {
          for (const key of keys) {
            if (this.#isFieldSeen) this.#controls.key(key)
            else this.#controls.unseenKey(key)
          }
          this.#draw()
        }}
        onPaste={text => {
          if (this.#isFieldSeen) this.#controls.paste(text)
          else this.#controls.unseenPaste(text)
          this.#draw()
        }}
        onMounted={this.#onMounted}
      />
    )
    output.on('resize', () => {
      // A terminal that gets lower drops rows below the cursor, which Ink does not know.
      if (!this.#isLent) this.#ink.clear()
      this.#painter.forgetHeight()
      this.#draw()
      // At once, as Ink would draw the old frame again in the new size.
      this.#ink.rerender(app)
    })
    // Ink queries the terminal before it does this itself, and the reply would be echoed onto the screen.
    this.#keys.keepRaw()
    this.output.veil()
    this.#ink = render(app, {
      stdout: output as unknown as NodeJS.WriteStream,
      stdin: this.#keys.stdin,
      interactive: true,
      incrementalRendering: true,
      exitOnCtrlC: false,
      patchConsole: false,
      maxFps: 60,
      isScreenReaderEnabled: !model.theme.symbols,
      kittyKeyboard: { mode: 'auto' },
      onRender: () => this.#painter.drawn(),
    })
    this.#keys.letGo()
    this.#run().catch(options.onFailure)
  }

  /** Schedules a redraw. */
  changed(): void {
    if (this.#hasChanged) return
    this.#hasChanged = true
    this.#wake.abort()
  }

  /** Prints finished lines, which must be safe and at most as wide as the terminal. */
  print(lines: readonly string[]): void {
    this.model.scrollback.add(lines)
    this.changed()
  }

  /** Prints a card above the frame; `lines` is given the terminal's width. */
  card(lines: (columns: number) => readonly { text: string; tone: Tone; file?: string }[]): void {
    const { columns } = this.output
    const { theme } = this.model
    const linked = (text: string, file: string | undefined) => (file === undefined ? text : theme.file(text, file))
    this.print(['', ...lines(columns).map(({ text, tone, file }) => linked(theme.paint(roleOf(tone), text), file))])
  }

  /** Prints a text, which may be untrusted. */
  say(text: string, role: Role = 'plain'): void {
    const { columns } = this.output
    const lines = safeText(text.replace(/\n$/, '')).split('\n')
    this.print(lines.flatMap(line => indented(line, columns)).map(line => this.model.theme.paint(role, line)))
  }

  notice(text: string, role: Role = 'plain'): void {
    this.model.notice(text, role)
  }

  choose(question: Question): Promise<Answer> {
    return this.model.choose(question)
  }

  setTheme(theme: Theme): void {
    this.model.theme = theme
    this.changed()
  }

  /** Lends the terminal to an action (an editor, a shell); lines printed meanwhile are written afterwards. */
  lend(action: () => Promise<void>): Promise<void> {
    return this.#lend(action, () => {})
  }

  /** @param begun called when the terminal is free, before Ink hands it on */
  async #lend(action: () => Promise<void>, begun: () => void): Promise<void> {
    // Ink draws, and reads keys, a moment before it has the terminal back.
    if (this.#isComingBack) await this.#lending
    if (this.#mounted === null || this.#isLent || this.#closed.signal.aborted) return
    this.#painter.flush()
    this.#isLent = true
    this.#isFieldSeen = false
    this.output.unveil()
    this.output.frameGone()
    begun()
    const lending = this.#suspended(this.#mounted, action)
    this.#lending = lending.catch(() => {})
    await lending
  }

  async #suspended({ suspend }: Mounted, action: () => Promise<void>): Promise<void> {
    try {
      await suspend(async () => {
        try {
          await action()
        } finally {
          this.#isComingBack = true
          this.output.veil()
        }
      })
    } finally {
      this.#isLent = false
      this.#keys.letGo()
      this.#painter.expectFrame()
      this.output.frameDrawn()
      this.#draw()
      await this.#showField()
      this.#isComingBack = false
    }
  }

  /**
   * Opens a pager at the end of its lines, or at their start; resolves when the person has left it.
   * @param openDiff as `Pager` takes it
   */
  async page(
    title: string,
    source: PagerSource,
    at: 'start' | 'end' = 'end',
    openDiff?: (stage: Pick<Stage, 'open'>, line: number) => void,
  ): Promise<void> {
    const { theme, options } = this.model
    const more = openDiff === undefined ? {} : { openDiff }
    await this.open(new Pager({ title, source, at, theme, keymap: options.keymap, ...more }))
  }

  /** Fills the terminal with a view; resolves when the person has left it. */
  async open(view: FullView): Promise<void> {
    const { clock, mouse, onFailure } = this.#options
    const signal = this.#closed.signal
    const { output } = this
    const keys = this.#keys
    let afterwards = () => {}
    const shown = async () => {
      const onEscaped = () => this.#controls.expectHabit('escape')
      afterwards = await openView(view, { keys, output, clock, mouse, signal, onEscaped, onFailure })
    }
    await this.#lend(shown, () => keys.keepRaw())
    afterwards()
  }

  /**
   * To be awaited before the screen closes by itself: a person who is typing an answer would go on in the shell. Resolves
   * once they have closed the note about it, after a minute, or when `over` is aborted.
   */
  async settled(over: AbortSignal): Promise<void> {
    const { model } = this
    if (!this.view.wasWriting || !model.showsSession || model.isLeaving || !this.output.writable) return
    const seen = new AbortController()
    void noteTooLate(model).then(() => seen.abort())
    await this.#options.clock.wait(SEEN_MS, AbortSignal.any([over, seen.signal]))
  }

  /** Closes the screen; the terminal is as before, below what was printed. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  /** Restores the terminal synchronously: for a crash. */
  release(): void {
    this.#restorer.leave()
    void this.close()
  }

  readonly #onMounted = (mounted: Mounted) => {
    this.#mounted = mounted
    this.#painter.printBy(mounted.write)
    this.changed()
    this.#showField().catch(this.#options.onFailure)
    loadGrammars().catch(this.#options.onFailure)
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    const unsubscribe = this.model.composer.subscribe(() => this.changed())
    while (!this.#closed.signal.aborted) {
      this.#wake = new AbortController()
      this.#hasChanged = false
      const isMoving = this.#draw()
      // Changes within a tick are drawn together.
      await clock.wait(TICK_MS, this.#closed.signal)
      if (!isMoving && !this.#hasChanged) await clock.wait(CLOCK_MS - TICK_MS, this.#wake.signal)
      if (this.output.isFull) await this.output.ready()
    }
    unsubscribe()
  }

  async #end(): Promise<void> {
    this.#closed.abort()
    this.#wake.abort()
    this.output.unveil()
    this.model.dismiss('withdrawn')
    // A lent terminal is given back first, or lines printed meanwhile would be lost.
    await this.#lending
    this.output.unveil()
    this.#painter.flush()
    // A pending frame would be drawn while Ink unmounts, and stay.
    if (!this.output.isFull) await this.#ink.waitUntilRenderFlush().catch(() => {})
    this.#ink.clear()
    this.output.frameGone()
    this.#ink.unmount()
    await this.#ink.waitUntilExit().catch(() => {})
    this.#restorer.leave()
  }

  /** Draws the present state; true if it moves by itself. If that fails, the last frame stays and the error is reported once. */
  #draw(): boolean {
    if (this.#closed.signal.aborted) return false
    try {
      return this.#drawNow()
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== this.#drawingProblem) this.#options.onFailure(error)
      this.#drawingProblem = problem
      if (!this.#isLent) this.#painter.flush()
      return false
    }
  }

  #drawNow(): boolean {
    const now = this.#options.clock.now()
    const isMoving = this.model.pane.step(now)
    if (this.#isLent) return isMoving
    this.#painter.paint(now)
    this.#restorer.setTitle(screenTitle(this.model, now))
    return isMoving
  }

  /** Shows what was drawn behind the veil, once all has been read that was typed until then: within one turn of the event loop. */
  async #showField(): Promise<void> {
    for (let turn = 0; turn < 2; turn += 1) await new Promise<void>(resolve => setImmediate(resolve))
    if (this.#isLent) return
    this.output.unveil()
    if (this.#closed.signal.aborted) return
    this.#isFieldSeen = true
    this.#controls.fieldSeen()
    this.#draw()
  }

  #redraw(): void {
    if (this.#isLent) return
    this.#ink.clear()
    this.#painter.empty()
    this.changed()
  }

  #openOutput(): void {
    const { lastCommand } = this.model.pane
    if (lastCommand === null) {
      this.notice('No command has run yet', 'warning')
      return
    }
    const lines = outputLines(lastCommand, { columns: this.output.columns, theme: this.model.theme })
    this.page('The output of the last command', wholeSource(lines)).catch(this.#options.onFailure)
  }

  #gone(): void {
    this.model.dismiss('withdrawn')
    this.#options.onGone()
  }
}

interface ScreenOptions
  extends Omit<ScreenModelOptions, 'size' | 'onChange'>,
    Pick<ScreenProcess, 'writeNow' | 'rawModeOff'> {
  stdin: NodeJS.ReadableStream
  stdout: TerminalStream
  env: Readonly<Record<string, string | undefined>>
  clock: Clock
  host: ScreenHost
  /** Whether wheel and clicks work in what fills the terminal. */
  mouse: boolean
  /** Called when the terminal has gone. */
  onGone(): void
  /** Called with the error of an action of a key, or of drawing. */
  onFailure(error: unknown): void
}

/** The functions of a mounted Ink app. */
interface Mounted {
  /** Writes above the frame. */
  write(text: string): void
  /** Suspends Ink during the action. */
  suspend(action: () => Promise<void>): Promise<void>
}

interface AppProps {
  painter: Painter
  onKeys(keys: readonly Key[]): void
  onPaste(text: string): void
  onMounted(mounted: Mounted): void
}

/** The frame as Ink draws it. */
function App({ painter, onKeys, onPaste, onMounted }: AppProps) {
  const { lines, caret } = useSyncExternalStore(painter.subscribe, painter.frame)
  const { write } = useStdout()
  const { suspendTerminal } = useApp()
  const { setCursorPosition } = useCursor()
  useInput((input, key: InkKey) => onKeys(keysFromInk(input, key)))
  usePaste(onPaste)
  useEffect(() => {
    onMounted({ write, suspend: async action => void (await suspendTerminal(action)) })
  }, [onMounted, write, suspendTerminal])
  setCursorPosition(caret ?? undefined)
  return <Rows lines={lines} />
}

/** A line wrapped with a hanging indent: the width of its indent, list bullet or leading short columns. */
export function indented(line: string, columns: number): string[] {
  const indent = /^(?:\S+ {2,}\S+ {2,}|\s*(?:[-•✔✘!?→]\s+)?)/.exec(line)?.[0].length ?? 0
  if (indent === 0 || indent > columns / 2) return wrapLine(line, columns)
  const [first = '', ...more] = wrapLine(line.slice(indent), columns - indent)
  return [line.slice(0, indent) + first, ...more.map(row => ' '.repeat(indent) + row)]
}

const TEXT_CHARS = 500

/** Notes that the session has ended before the answer was sent. Resolves when the person closes the note. */
async function noteTooLate(model: ScreenModel): Promise<void> {
  model.dismiss('withdrawn')
  const written = oneLine(model.composer.text, TEXT_CHARS)
  await model.choose({
    title: 'The session has ended.',
    body: [written === '' ? 'The session that should get this has ended.' : `Not sent: ${written}`],
    options: [{ id: 'close', label: 'Close', confirms: true }],
  })
}
