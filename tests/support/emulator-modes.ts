import type { Terminal } from '@xterm/headless'

/** How a program has left the terminal. */
export interface TerminalModes {
  cursorVisible: boolean
  bracketedPaste: boolean
  alternateScreen: boolean
  applicationCursor: boolean
  applicationKeypad: boolean
  autowrap: boolean
  insert: boolean
  origin: boolean
  /** Reports of the mouse; `none` is how it should be left. */
  mouse: string
  focusReports: boolean
  /** An update that was begun and not ended. */
  synchronizedOutput: boolean
  /** Flags of the kitty keyboard protocol; 0: off. */
  kitty: number
  /** Private modes that differ from how a terminal starts, as numbers, the above among them. */
  changed: number[]
}

/** How a terminal is when nobody has changed it. */
export const UNTOUCHED: TerminalModes = {
  cursorVisible: true,
  bracketedPaste: false,
  alternateScreen: false,
  applicationCursor: false,
  applicationKeypad: false,
  autowrap: true,
  insert: false,
  origin: false,
  mouse: 'none',
  focusReports: false,
  synchronizedOutput: false,
  kitty: 0,
  changed: [],
}

/** Private modes that are on when a terminal starts. */
const ON_AT_START = new Set([7, 25])

/** Follows the modes of a terminal: those that it tells, and from the sequences those that it does not. */
export function followModes(terminal: Terminal, answer: (text: string) => void): () => TerminalModes {
  const changed = new Set<number>()
  const set = (isOn: boolean) => (parameters: (number | number[])[]) => {
    for (const mode of parameters.flat()) {
      if (ON_AT_START.has(mode) === isOn) changed.delete(mode)
      else changed.add(mode)
    }
    return false
  }
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'h' }, set(true))
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'l' }, set(false))
  const kitty = followKitty(terminal, answer)
  return () => {
    const { modes } = terminal
    return {
      cursorVisible: !changed.has(25),
      bracketedPaste: modes.bracketedPasteMode,
      alternateScreen: terminal.buffer.active.type === 'alternate',
      applicationCursor: modes.applicationCursorKeysMode,
      applicationKeypad: modes.applicationKeypadMode,
      autowrap: modes.wraparoundMode,
      insert: modes.insertMode,
      origin: modes.originMode,
      mouse: modes.mouseTrackingMode,
      focusReports: modes.sendFocusMode,
      synchronizedOutput: changed.has(2026),
      kitty: kitty(),
      changed: [...changed].sort((a, b) => a - b),
    }
  }
}

/** The kitty keyboard protocol's flags, which xterm does not know; each screen has a stack of its own. */
function followKitty(terminal: Terminal, answer: (text: string) => void): () => number {
  const stacks = { normal: [0], alternate: [0] }
  const stack = () => stacks[terminal.buffer.active.type]
  const flags = () => stack().at(-1) ?? 0
  const first = (parameters: (number | number[])[], otherwise: number) => Number(parameters.flat()[0] ?? otherwise)
  const on = (prefix: string, handle: (parameters: (number | number[])[]) => void) =>
    terminal.parser.registerCsiHandler({ prefix, final: 'u' }, parameters => {
      handle(parameters)
      return true
    })
  on('?', () => answer(`\x1b[?${flags()}u`))
  on('>', parameters => stack().push(first(parameters, 0)))
  on('<', parameters => {
    for (let left = Math.max(1, first(parameters, 1)); left > 0 && stack().length > 1; left--) stack().pop()
  })
  on('=', parameters => {
    stack().splice(-1, 1, first(parameters, 0))
  })
  return flags
}
