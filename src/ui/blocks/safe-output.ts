import { safeText } from '../safe-text.ts'

const MOST_CHARACTERS = 64 * 1024
const ESC = String.fromCharCode(0x1b)
const BEL = String.fromCharCode(0x07)
// Colours and movements (CSI), titles and links (OSC), and the choice of a character set.
const SEQUENCES = new RegExp(
  `${ESC}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)|[()][0-9A-B])`,
  'g',
)

/**
 * The last 64 Ki characters of what a command printed, as lines that are safe to show, without the blank ones at both
 * ends. Its colours are left out; of a line that it wrote over, as progress bars do, the last state is left.
 */
export function safeOutput(output: string): string[] {
  const plain = output.slice(-MOST_CHARACTERS).replace(SEQUENCES, '')
  const lines = plain.split(/\r?\n/).map(line => safeText(lastState(line)).trimEnd())
  const first = lines.findIndex(line => line !== '')
  return first === -1 ? [] : lines.slice(first, lines.findLastIndex(line => line !== '') + 1)
}

function lastState(line: string): string {
  const states = line.split('\r')
  return states.findLast(state => state.trim() !== '') ?? ''
}
