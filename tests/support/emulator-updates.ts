import { SHELL_OSC } from './emulator-shell.ts'

const BEGIN = '\x1b[?2026h'
const END = '\x1b[?2026l'

/**
 * Passes on what a program writes as terminals show it: an update that was begun (synchronized output, mode 2026) in one
 * piece, once it has ended, and each by itself. However the bytes are cut, half a frame is never seen, and none that was
 * drawn is missed. The shell's own word, that the program has stopped or ended, lets go of what it left unfinished.
 */
export function inWholeUpdates(show: (text: string) => void): (data: string) => void {
  let pending = ''
  return data => {
    pending += data
    const begun = pending.lastIndexOf(BEGIN)
    const isOpen = begun > pending.lastIndexOf(END) && !pending.includes(`\x1b]${SHELL_OSC};`, begun)
    const whole = isOpen ? begun : pending.length - beginningOfBegin(pending)
    const text = pending.slice(0, whole)
    pending = pending.slice(whole)
    const pieces = text.split(END)
    const rest = pieces.pop() ?? ''
    for (const piece of pieces) show(piece + END)
    if (rest !== '') show(rest)
  }
}

/** How many characters at the end may become the sequence that begins an update. */
function beginningOfBegin(text: string): number {
  for (let length = BEGIN.length - 1; length > 0; length--) if (text.endsWith(BEGIN.slice(0, length))) return length
  return 0
}
