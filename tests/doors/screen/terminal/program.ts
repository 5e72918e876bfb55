import { writeSync } from 'node:fs'
import { Box, render, Text, useApp, useInput, usePaste } from 'ink'
import { createElement as h, useEffect, useState } from 'react'
import { systemClock } from '../../../../src/base/clock.ts'
import { Pager } from '../../../../src/doors/screen/pager/pager.ts'
import { LineBuffer } from '../../../../src/doors/screen/pager/source.ts'
import { TerminalOutput, TerminalRestorer } from '../../../../src/doors/screen/terminal/output.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { openView, SharedKeys } from '../../../../src/doors/screen/view/stage.tsx'
import { suspendSelf } from '../../../../src/platform/terminal.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'

// A small program with a screen, ended and suspended in each way that there is.
const { stdin, stdout, env, platform } = process

const output = new TerminalOutput({ stream: stdout, narrowing: 'breaks' })
const care = new TerminalRestorer({
  output,
  term: env.TERM,
  writeNow: text => void writeSync(stdout.fd, text),
  rawModeOff: () => void stdin.setRawMode(false),
})
process.on('exit', () => care.leave())
process.on('uncaughtException', error => {
  care.leave()
  writeSync(2, `It fell: ${error.message}\n`)
  process.exit(70)
})
process.on('SIGTERM', () => process.exit(143))

const source = new LineBuffer<string>({ render: line => [line] })
for (let at = 1; at <= 1000; at++) source.add(`logged ${at}`)
const theme = openTheme({ theme: 'plain', env: {}, reader: false })
const pager = new Pager({ title: 'Logs', source, theme, at: 'end', keymap: new Keymap() })
const stage = {
  keys: new SharedKeys(stdin),
  output,
  clock: systemClock,
  mouse: true,
  signal: new AbortController().signal,
  onFailure: (error: unknown) => {
    throw error
  },
}

function Screen() {
  const { suspendTerminal, exit } = useApp()
  const [said, say] = useState('nothing')
  const [seconds, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick(count => count + 1), 50)
    return () => clearInterval(timer)
  }, [])
  usePaste(text => say(`pasted ${text}`))
  const lend = async (action: () => Promise<unknown>) => {
    let result: unknown
    await suspendTerminal(async () => {
      output.frameGone()
      result = await action()
    })
    say(`back ${result} ${stdout.columns}`)
  }
  useInput((input, key) => {
    if (key.ctrl && input === 'z') void lend(() => suspendSelf({ platform, clock: systemClock, signals: process }))
    else if (key.ctrl && input === 'e') void lend(async () => (await openView(pager, stage))())
    else if (input === 'q') exit()
    else if (input === 'x') process.exit(3)
    else if (input === 'c')
      setImmediate(() => {
        throw new Error('broken')
      })
    else if (input === 'r') void Promise.reject(new Error('refused'))
    else say(`typed ${input}`)
  })
  const lines = [`ready, said: ${said}`, `running ${seconds > 0 ? 'on' : 'yet'}`, '> draft']
  output.setFrame(lines, null)
  return h(Box, { flexDirection: 'column' }, ...lines.map((line, row) => h(Text, { key: row, wrap: 'truncate' }, line)))
}

care.setTitle('a session')
const ink = render(h(Screen), {
  stdout: output,
  stdin,
  interactive: true,
  incrementalRendering: true,
  exitOnCtrlC: false,
  patchConsole: false,
  kittyKeyboard: { mode: 'enabled' },
  onRender: () => output.frameDrawn(),
})
await ink.waitUntilExit()
output.frameGone()
care.leave()
stdout.write('It is over.\n')
