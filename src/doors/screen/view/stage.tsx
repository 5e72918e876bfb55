import { EventEmitter } from 'node:events'
import { Box, render, Text, useApp, useCursor, useInput, usePaste } from 'ink'
import { useEffect, useReducer } from 'react'
import type { Clock } from '../../../base/clock.ts'
import { chordOf, type Key, keysFromInk } from '../composer/keys.ts'
import type { TerminalOutput } from '../terminal/output.ts'
import { type FullView, MOUSE_OFF, MOUSE_ON, type Pointer, pointersIn, type Stage } from './full-view.ts'

interface StageOptions {
  keys: SharedKeys
  /** The terminal; the Ink that draws on it must be suspended. */
  output: TerminalOutput
  clock: Clock
  /** Whether wheel and clicks are taken from the terminal. */
  mouse: boolean
  /** Closes all views. */
  signal: AbortSignal
  /** Called when Esc has closed the last view. */
  onEscaped?(): void
  /** Called with the error of an action that a view has started. */
  onFailure(error: unknown): void
}

/**
 * The terminal's keys, for the Ink of the screen and those of its views. Each ends raw mode as it hands the terminal on;
 * between two of them it is kept, for there a key would be echoed, and Ctrl+C would end the program.
 */
export class SharedKeys {
  readonly stdin: NodeJS.ReadStream
  readonly #setRawMode: (isRaw: boolean) => void
  #isKept = false

  constructor(input: NodeJS.ReadableStream) {
    const stdin = input as NodeJS.ReadStream
    const isTerminal = 'setRawMode' in stdin
    this.#setRawMode = isRaw => void (isTerminal && stdin.setRawMode(isRaw))
    const setRawMode = (isRaw: boolean) => {
      if (isRaw || !this.#isKept) this.#setRawMode(isRaw)
      return stdin
    }
    this.stdin = isTerminal ? withOwn(stdin, { setRawMode }) : stdin
  }

  /** Begins raw mode, which no Ink ends from now on. */
  keepRaw(): void {
    this.#isKept = true
    this.#setRawMode(true)
  }

  /** Leaves it to Ink again. */
  letGo(): void {
    this.#isKept = false
  }
}

/** The longest delay until a change is shown, ms. */
const CHANGE_MS = 50

/**
 * Shows a view on the alternate screen; resolves when the person has left it and the terminal is as before, with what is to
 * be done then, once it is no longer lent.
 */
export async function openView(view: FullView, options: StageOptions): Promise<() => void> {
  const { keys, output, mouse, signal } = options
  if (signal.aborted) return () => {}
  const stdout = new LentOutput(output)
  const stage = new OpenStage(view, output, options)
  // Runs before Ink's own listener: terminals differ in what they keep of this screen after a resize, so it is drawn anew.
  const clear = () => {
    screen.clear()
    stdout.write('\x1b[H\x1b[J')
  }
  stdout.on('resize', clear)
  if (mouse) stdout.write(MOUSE_ON)
  // Ink does so only after it has drawn.
  keys.keepRaw()
  const screen = render(<StageScreen stage={stage} stdout={stdout} />, {
    stdout,
    stdin: mouse ? withoutPointer(keys.stdin, pointer => stage.point(pointer)) : keys.stdin,
    alternateScreen: true,
    interactive: true,
    incrementalRendering: true,
    exitOnCtrlC: false,
    patchConsole: false,
    isScreenReaderEnabled: false,
  })
  const leave = () => screen.unmount()
  stage.left.addEventListener('abort', leave)
  const close = () => stage.end()
  signal.addEventListener('abort', close)
  try {
    await screen.waitUntilExit()
  } finally {
    signal.removeEventListener('abort', close)
    stage.end()
    if (mouse) stdout.write(MOUSE_OFF)
    stdout.end()
  }
  return stage.afterwards ?? (() => {})
}

/** The views that are open, one above the other. */
class OpenStage implements Stage {
  /** What is to be done once all are closed. */
  afterwards: (() => void) | null = null
  readonly #options: StageOptions
  readonly #output: TerminalOutput
  readonly #views: { view: FullView; detach: () => void }[] = []
  readonly #left = new AbortController()
  #redraw: () => void = () => {}
  #suspend: ((action: () => Promise<void>) => Promise<void>) | null = null
  #isDue = false

  constructor(view: FullView, output: TerminalOutput, options: StageOptions) {
    this.#options = options
    this.#output = output
    this.open(view)
  }

  /** Aborted when the last view is closed. */
  get left(): AbortSignal {
    return this.#left.signal
  }

  get top(): FullView | undefined {
    return this.#views.at(-1)?.view
  }

  open(view: FullView): void {
    this.#views.push({ view, detach: () => {} })
    const last = this.#views.at(-1)
    if (last !== undefined) last.detach = view.attach?.(this) ?? (() => {})
    this.#redraw()
  }

  close(): void {
    this.#views.pop()?.detach()
    if (this.#views.length === 0) this.#left.abort()
    else this.#redraw()
  }

  leaveFor(action: () => void): void {
    this.afterwards = action
    this.end()
  }

  /** Closes all views. */
  end(): void {
    while (this.#views.length > 0) this.#views.pop()?.detach()
    this.#left.abort()
  }

  changed(): void {
    if (this.#isDue || this.#left.signal.aborted) return
    this.#isDue = true
    // However quickly things change, one redraw in 50 ms is enough.
    void this.#options.clock.wait(CHANGE_MS, this.#left.signal).then(() => {
      this.#isDue = false
      if (!this.#left.signal.aborted) this.#redraw()
    })
  }

  async lend(action: () => Promise<void>): Promise<void> {
    const { mouse, keys } = this.#options
    keys.letGo()
    try {
      await this.#suspend?.(async () => {
        if (mouse) this.#output.write(MOUSE_OFF)
        await action()
        if (mouse) this.#output.write(MOUSE_ON)
      })
    } finally {
      // Once all views are closed the terminal is not theirs.
      if (!this.#left.signal.aborted) keys.keepRaw()
    }
    if (!this.#left.signal.aborted) this.#redraw()
  }

  start(action: Promise<void>): void {
    action.then(() => this.#redraw(), this.#options.onFailure)
  }

  copy(text: string): boolean {
    return this.#output.copy(text)
  }

  point(pointer: Pointer): void {
    this.top?.point?.(pointer, this)
    this.#redraw()
  }

  press(keys: readonly Key[]): void {
    for (const key of keys.flatMap(oneByOne)) {
      this.top?.press(key, this)
      if (this.top === undefined && chordOf(key) === 'escape') this.#options.onEscaped?.()
    }
    this.#redraw()
  }

  mounted(redraw: () => void, suspend: (action: () => Promise<void>) => Promise<void>): void {
    this.#redraw = () => {
      if (!this.#left.signal.aborted) redraw()
    }
    this.#suspend = suspend
  }
}

/**
 * The terminal's input without the reports of its mouse, which are handed on as they are read: Ink drops what it takes for
 * no key.
 */
function withoutPointer(stdin: NodeJS.ReadStream, onPointer: (pointer: Pointer) => void): NodeJS.ReadStream {
  /** The beginning of a report whose end has not come yet. */
  let begun = ''
  const read = () => {
    const chunk: unknown = stdin.read()
    if (chunk === null) return null
    const { text, pointers, rest } = pointersIn(begun + String(chunk))
    begun = rest
    for (const pointer of pointers) onPointer(pointer)
    return text
  }
  return withOwn(stdin, { read })
}

/** A stream of which some methods are replaced. */
function withOwn(stdin: NodeJS.ReadStream, own: Readonly<Record<string, unknown>>): NodeJS.ReadStream {
  return new Proxy(stdin, {
    get: (target, name) => {
      if (typeof name === 'string' && Object.hasOwn(own, name)) return own[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const GRAPHEMES = new Intl.Segmenter()

/** Characters that are typed quickly arrive together. */
function oneByOne(key: Key): Key[] {
  if (key.name !== null || key.ctrl || key.meta || key.input.length < 2) return [key]
  // Enter that is pressed twice in a hurry; beside other text it is part of what was pasted.
  if (/^\r+$/.test(key.input)) return Array.from(key.input, () => ({ ...key, input: '', name: 'return' }))
  return Array.from(GRAPHEMES.segment(key.input), ({ segment }) => ({ ...key, input: segment }))
}

function StageScreen({ stage, stdout }: { stage: OpenStage; stdout: LentOutput }) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const { setCursorPosition } = useCursor()
  const { suspendTerminal } = useApp()
  useEffect(() => {
    stage.mounted(redraw, async action => void (await suspendTerminal(action)))
    stdout.on('resize', redraw)
    return () => void stdout.off('resize', redraw)
  }, [stage, stdout, suspendTerminal])
  useEffect(() => {
    if (stage.top?.workOn?.() !== true) return
    const next = setImmediate(redraw)
    return () => clearImmediate(next)
  })
  useInput((input, key) => stage.press(keysFromInk(input, key)))
  usePaste(text => {
    stage.top?.paste?.(text)
    redraw()
  })
  const { lines, caret } = stage.top?.frame(stdout) ?? { lines: [], caret: null }
  setCursorPosition(caret ?? undefined)
  return <Rows lines={lines} />
}

/** Finished lines, each a row of its own, so that Ink writes only those that have changed. */
export function Rows({ lines }: { lines: readonly string[] }) {
  // A row without text would have no height.
  const rows = lines.map((line, row) => ({ row, text: line === '' ? ' ' : line }))
  return (
    <Box flexDirection="column">
      {rows.map(({ row, text }) => (
        <Text key={row} wrap="truncate">
          {text}
        </Text>
      ))}
    </Box>
  )
}

/**
 * The terminal as a stream of its own for a second Ink while the first one is suspended: Ink identifies its instances by
 * their stream. Writes go through the first one's output, which counts bytes and notes modes.
 */
class LentOutput extends EventEmitter implements NodeJS.WritableStream {
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

  /** Detaches from the output. */
  end(): this {
    this.#output.off('resize', this.#resized)
    return this
  }

  readonly #resized = () => {
    this.emit('resize')
  }
}
