import { PassThrough } from 'node:stream'
import { Box, render, Text, useCursor, useStdout } from 'ink'
import { createElement as h, useInsertionEffect } from 'react'
import type { DrawnFrame, Narrowing } from '../../../../src/doors/screen/terminal/output.ts'
import { TerminalOutput } from '../../../../src/doors/screen/terminal/output.ts'
import type { Screen } from './screen.ts'

type Frame = { lines: readonly string[]; caret: DrawnFrame['caret'] }

/** An Ink that draws frames on a screen through our output, as the screen of a session does. */
export function draw(screen: Screen, narrowing: Narrowing) {
  const output = new TerminalOutput({ stream: screen.stream, narrowing })
  let print = (_: string) => {}
  const App = ({ lines, caret }: Frame) => {
    const { write } = useStdout()
    const { setCursorPosition } = useCursor()
    print = write
    useInsertionEffect(() => output.setFrame(lines, caret))
    setCursorPosition(caret ?? undefined)
    const texts = lines.map((line, row) => h(Text, { key: row, wrap: 'truncate' }, line))
    return h(Box, { flexDirection: 'column' }, ...texts)
  }
  const ink = render(h(App, { lines: [], caret: null }), {
    stdout: output,
    stdin: Object.assign(new PassThrough(), { isTTY: true, setRawMode() {}, ref() {}, unref() {} }),
    interactive: true,
    incrementalRendering: true,
    patchConsole: false,
    exitOnCtrlC: false,
    onRender: () => output.frameDrawn(),
  })
  return {
    output,
    ink,
    async show(frame: Frame): Promise<void> {
      ink.rerender(h(App, frame))
      await ink.waitUntilRenderFlush()
      await screen.drawn()
    },
    async print(text: string): Promise<void> {
      print(text)
      await screen.drawn()
    },
  }
}
