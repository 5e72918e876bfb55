import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { Keymap } from '../../../src/settings/keys.ts'
import { Screen } from '../../../src/tui/screen/screen.tsx'
import { openTheme } from '../../../src/tui/terminal/theme.ts'
import { NO_HOST } from '../../support/no-host.ts'
import { Screen as Terminal } from '../terminal/screen.ts'

test('what cannot be drawn is said once, what is printed is still shown, and drawing goes on by itself when it can', async () => {
  const terminal = new Terminal(60, 12)
  const theme = openTheme({ theme: 'plain', env: {}, reader: false })
  let isBroken = false
  let attempts = 0
  const screen: Screen = new Screen({
    stdin: Object.assign(new PassThrough(), { isTTY: true, setRawMode() {}, ref() {}, unref() {} }),
    stdout: terminal.stream,
    env: {},
    clock: systemClock,
    host: NO_HOST,
    theme: {
      ...theme,
      paint(role, text) {
        if (!isBroken) return theme.paint(role, text)
        attempts += 1
        throw new Error('no colours')
      },
    },
    motion: 'reduced',
    keymap: new Keymap(),
    enter: 'queue',
    mouse: true,
    isWatching: false,
    redact: text => text,
    searchFiles: async () => [],
    writeNow: () => {},
    rawModeOff: () => {},
    onGone: () => {},
    onFailure: error => screen.print([String(error)]),
  })
  const shown = async () => {
    await terminal.drawn()
    return terminal.all().join('\n')
  }
  const bound = { timeout: 10_000, interval: 5 }
  await expect.poll(shown, bound).toContain('Type what to work on')
  isBroken = true
  screen.notice('Nobody can draw this')
  await expect.poll(shown, bound).toContain('no colours')
  screen.print(['still printed'])
  await expect.poll(shown, bound).toContain('still printed')
  const before = attempts
  await expect.poll(() => attempts, bound).toBeGreaterThan(before)
  isBroken = false
  await expect.poll(shown, bound).toContain('Nobody can draw this')
  expect((await shown()).match(/no colours/g)).toHaveLength(1)
  await screen.close()
})
