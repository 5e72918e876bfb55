import { EventEmitter } from 'node:events'
import { Box, render, Text, useCursor, useInput } from 'ink'
import { useEffect, useReducer } from 'react'
import type { Clock } from '../../base/clock.ts'
import { keysFromInk } from '../composer/keys.ts'
import type { TerminalOutput } from '../terminal/output.ts'
import type { Theme } from '../terminal/theme.ts'
import { Pager } from './pager.ts'
import type { PagerSource } from './source.ts'

interface PagerScreenOptions {
  stdin: NodeJS.ReadableStream
  /** The terminal; the Ink that draws on it must be suspended. */
  output: TerminalOutput
  title: string
  source: PagerSource
  /** Where it opens; at the end, where it is left out, it follows what is added. */
  at?: 'start' | 'end'
  theme: Theme
  clock: Clock
  /** Closes the pager. */
  signal: AbortSignal
}

/** The longest delay until added lines are shown, ms. */
const GROWTH_MS = 50

/** Shows a pager's lines on the alternate screen; resolves when the person has left it and the terminal is as before. */
export async function openPager(options: PagerScreenOptions): Promise<void> {
  const { stdin, output, title, source, at = 'end', theme, clock, signal } = options
  if (signal.aborted) return
  const stdout = new LentOutput(output)
  const pager = new Pager({ title, source, theme, at })
  const left = new AbortController()
  // Runs before Ink's own listener: terminals differ in what they keep of this screen after a resize, so it is drawn anew.
  const clear = () => {
    screen.clear()
    stdout.write('\x1b[H\x1b[J')
  }
  stdout.on('resize', clear)
  const screen = render(<PagerScreen pager={pager} source={source} clock={clock} stdout={stdout} left={left} />, {
    stdout,
    stdin,
    alternateScreen: true,
    interactive: true,
    incrementalRendering: true,
    exitOnCtrlC: false,
    patchConsole: false,
    isScreenReaderEnabled: false,
  })
  const leave = () => screen.unmount()
  left.signal.addEventListener('abort', leave)
  signal.addEventListener('abort', leave)
  try {
    await screen.waitUntilExit()
  } finally {
    signal.removeEventListener('abort', leave)
    left.abort()
    stdout.end()
  }
}

interface PagerScreenProps extends Pick<PagerScreenOptions, 'source' | 'clock'> {
  pager: Pager
  stdout: LentOutput
  left: AbortController
}

function PagerScreen({ pager, source, clock, stdout, left }: PagerScreenProps) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const { setCursorPosition } = useCursor()
  useEffect(() => {
    let isDue = false
    // However quickly lines are added, one redraw in 50 ms is enough.
    const redrawSoon = async () => {
      if (isDue) return
      isDue = true
      await clock.wait(GROWTH_MS, left.signal)
      isDue = false
      if (!left.signal.aborted) redraw()
    }
    const stopGrowth = source.onGrow(dropped => {
      pager.dropped(dropped)
      void redrawSoon()
    })
    let { columns } = stdout
    const relay = () => {
      if (source.resize && stdout.columns !== columns) {
        pager.relaid()
        source.resize(stdout.columns)
      }
      columns = stdout.columns
      redraw()
    }
    stdout.on('resize', relay)
    return () => {
      stopGrowth()
      stdout.off('resize', relay)
    }
  }, [pager, source, clock, stdout, left])
  useEffect(() => {
    if (!pager.isSearching) return
    pager.searchOn()
    const next = setImmediate(redraw)
    return () => clearImmediate(next)
  })
  useInput((input, key) => {
    for (const each of keysFromInk(input, key)) if (pager.press(each)) return left.abort()
    redraw()
  })
  const { lines, caret } = pager.frame(stdout)
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
