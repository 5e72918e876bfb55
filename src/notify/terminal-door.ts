import type { Door } from './door.ts'

/** Where a person may be looking. */
export interface Terminal {
  isTTY?: boolean
  write(text: string): unknown
}

/**
 * The terminal's bell, and its desktop notification (`OSC 9`), which terminals that do not know it pass over. What is
 * no terminal gets nothing.
 */
export function terminalDoor(terminal: Terminal, env: Readonly<NodeJS.ProcessEnv>): Door {
  return {
    name: 'terminal',
    deliver: async ({ title, message }) => {
      if (!terminal.isTTY) return { kind: 'no-terminal', sentence: 'The bell is not rung: stdout is no terminal.' }
      // The text begins with a word: a number would be a command to some terminals (`9;4` is a progress bar).
      terminal.write(env.TERM === 'dumb' ? BEL : `${BEL}${OSC_9}${title}. ${message}${BEL}`)
      return null
    },
  }
}

const BEL = '\x07'
const OSC_9 = '\x1b]9;'
