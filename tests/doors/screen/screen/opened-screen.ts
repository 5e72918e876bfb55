import { PassThrough } from 'node:stream'
import { systemClock } from '../../../../src/base/clock.ts'
import { Screen } from '../../../../src/doors/screen/screen/screen.tsx'
import { openTheme, type Theme } from '../../../../src/doors/screen/terminal/theme.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { NO_HOST } from '../../../support/no-host.ts'
import { Screen as Terminal } from '../terminal/screen.ts'

/** A screen on a terminal of 60 columns and 12 rows. */
export function openScreen(changes: { theme?: (theme: Theme) => Theme } = {}) {
  const terminal = new Terminal(60, 12)
  const theme = openTheme({ theme: 'plain', env: {}, reader: false })
  /** What raw mode was set to, in order. */
  const raw: boolean[] = []
  const setRawMode = (isRaw: boolean) => void raw.push(isRaw)
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode, ref() {}, unref() {} })
  const screen: Screen = new Screen({
    stdin,
    stdout: terminal.stream,
    env: {},
    clock: systemClock,
    host: NO_HOST,
    theme: changes.theme?.(theme) ?? theme,
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
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
  return { screen, terminal, stdin, raw, shown }
}
