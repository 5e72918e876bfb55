import { Box, render, Text, useCursor, useInput } from 'ink'
import { useEffect, useReducer } from 'react'
import type { Clock } from '../../base/clock.ts'
import { keysFromInk } from '../composer/keys.ts'
import type { TerminalOutput } from '../terminal/output.ts'
import { LentOutput } from '../terminal/restore.ts'
import type { Theme } from '../terminal/theme.ts'
import { Pager, type PagerSource } from './pager.ts'

export interface PagerOptions {
  stdin: NodeJS.ReadableStream
  /** The terminal; the Ink that draws on it is suspended meanwhile. */
  output: TerminalOutput
  title: string
  source: PagerSource
  theme: Theme
  clock: Clock
  /** Closes the pager. */
  signal: AbortSignal
  /** Where it opens; at the end it follows what is added. Left out: the end. */
  at?: 'start' | 'end'
}

/** How long added lines may wait to be shown, ms. */
const GROWTH_MS = 50

/** Shows the lines on the alternate screen; resolves when the person has left it, the terminal as it was before. */
export async function openPager(options: PagerOptions): Promise<void> {
  const { stdin, output, title, source, theme, clock, signal, at = 'end' } = options
  if (signal.aborted) return
  const stdout = new LentOutput(output)
  const pager = new Pager({ title, source, theme, at })
  const left = new AbortController()
  // Heard before Ink hears it: how a terminal keeps this screen when its size changes differs, so it is drawn anew.
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

interface PagerScreenProps {
  pager: Pager
  source: PagerSource
  clock: Clock
  stdout: LentOutput
  left: AbortController
}

function PagerScreen({ pager, source, clock, stdout, left }: PagerScreenProps) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const { setCursorPosition } = useCursor()
  useEffect(() => {
    let isDue = false
    // However quickly lines come, and as long as a search goes on, once in a while is often enough.
    const redrawSoon = async () => {
      if (isDue) return
      isDue = true
      await clock.wait(GROWTH_MS, left.signal)
      isDue = false
      if (!left.signal.aborted) redraw()
    }
    const stopGrowth = source.onGrow(gone => {
      pager.gone(gone)
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

/** Finished lines, a row of its own each, for Ink to write only those that have changed. */
export function Rows({ lines }: { lines: readonly string[] }) {
  // One without text would have no height.
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
