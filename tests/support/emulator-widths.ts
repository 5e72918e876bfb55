import type { Terminal } from '@xterm/headless'
import stringWidth from 'string-width'

const ZERO_WIDTH_JOINER = 0x200d
const EMOJI_PRESENTATION = 0xfe0f
/** What the next character has to know of this one. */
const State = { none: 0, joiner: 1, halfFlag: 2 } as const

/** Makes the terminal measure as today's do: emoji and CJK take two cells, what a person sees as one character one place. */
export function measureAsTodaysTerminals(terminal: Terminal): void {
  terminal.unicode.register({ version: 'today', wcwidth, charProperties })
  terminal.unicode.activeVersion = 'today'
}

const widths = new Map<number, 0 | 1 | 2>()

function wcwidth(point: number): 0 | 1 | 2 {
  if (point < 0x7f) return point < 0x20 ? 0 : 1
  const known = widths.get(point)
  if (known !== undefined) return known
  const width = Math.min(2, stringWidth(String.fromCodePoint(point))) as 0 | 1 | 2
  widths.set(point, width)
  return width
}

/** Packed as xterm wants it: state, width (2 bits), whether it joins the character before (1 bit). */
function charProperties(point: number, preceding: number): number {
  const before = { state: preceding >> 3, width: (preceding >> 1) & 3 }
  const isFlag = point >= 0x1f1e6 && point <= 0x1f1ff
  if (isFlag) {
    const completes = before.state === State.halfFlag
    return pack(completes ? State.none : State.halfFlag, 2, completes)
  }
  const isTone = point >= 0x1f3fb && point <= 0x1f3ff
  const width = wcwidth(point)
  const joins = before.width > 0 && (width === 0 || before.state === State.joiner || (isTone && before.width === 2))
  const state = point === ZERO_WIDTH_JOINER ? State.joiner : State.none
  const joined = point === EMOJI_PRESENTATION ? 2 : before.width
  return pack(state, joins ? joined : width, joins)
}

function pack(state: number, width: number, joins: boolean): number {
  return (state << 3) | (width << 1) | (joins ? 1 : 0)
}
