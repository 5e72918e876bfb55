import type { KeyActionId } from '../../../project/settings/keys.ts'
import { widthOf } from '../../../tell/words/cells.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import { chordOf, type Key } from '../composer/keys.ts'
import type { Role } from '../terminal/theme.ts'

/** What fills the whole terminal for a while: a pager, a list, a review. It draws lines and takes keys; a stage shows it. */
export interface FullView {
  /** The screen: exactly `rows` lines, each at most `columns` cells wide and safe for a terminal. */
  frame(size: { columns: number; rows: number }): ViewFrame
  /** Handles a key; a text that is typed comes character by character. */
  press(key: Key, stage: Stage): void
  /** Takes a pasted text; left out where nothing is typed. */
  paste?(text: string): void
  /** Handles the wheel and clicks. */
  point?(pointer: Pointer, stage: Stage): void
  /** Called when it is shown; the returned function is called when it is closed. */
  attach?(stage: Stage): () => void
  /** Does a few milliseconds of work between two frames; true while there is more. */
  workOn?(): boolean
}

/** One screen of a view. `caret`: the cell of the cursor from 0, null where none is shown. */
export interface ViewFrame {
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** Shows views, one above the other; the last that was opened has the keys. */
export interface Stage {
  /** Opens a view above the present one, which comes back when that is closed. */
  open(view: FullView): void
  /** Closes the view that is shown; the screen comes back after the first one. */
  close(): void
  /** Closes all views, and then does something on the screen. */
  leaveFor(action: () => void): void
  /** Draws again, at most every 50 ms. */
  changed(): void
  /** Lends the terminal to an action, such as an editor. */
  lend(action: () => Promise<void>): Promise<void>
  /** Starts an action whose failure is shown to the person. */
  start(action: Promise<void>): void
  /** Copies a text to the person's clipboard; false where it is too long for a terminal. */
  copy(text: string): boolean
}

/** A notice in a view's last line. */
export interface ViewNotice {
  text: string
  role: Role
}

/** A turn of the wheel (rows, down positive) or a press of the first button, at a cell from 0. */
export type Pointer = { kind: 'wheel'; rows: number; x: number; y: number } | { kind: 'press'; x: number; y: number }

/** The keys' name in a table of keys: as `chordOf`, and a character by itself. Empty for a text of several. */
export function viewChord(key: Key): string {
  const chord = chordOf(key)
  if (chord !== '') return chord
  if (key.input === ' ') return 'space'
  return key.input.length === 1 ? key.input : ''
}

/** How many rows down an action moves in a view of `height` rows, up negative; null for any other action. */
export function rowsMoved(action: KeyActionId, height: number): number | null {
  return MOVES[action]?.(height) ?? null
}

const MOVES: Partial<Record<KeyActionId, (height: number) => number>> = {
  up: () => -1,
  line_up: () => -1,
  row_up: () => -1,
  down: () => 1,
  line_down: () => 1,
  row_down: () => 1,
  page_up: height => -height,
  page_down: height => height,
  half_up: height => -Math.ceil(height / 2),
  half_down: height => Math.ceil(height / 2),
}

/**
 * As many hints as fit into `columns`, in their order. The one that begins with the key `wayOut`, without it the first one, is
 * always among them: who sees no other key still sees how to leave. The one that begins with the key `last` is the last to go.
 */
export function fittingHints(
  hints: readonly string[],
  { columns, wayOut, last, between = ' · ' }: { columns: number; wayOut: string; last?: string; between?: string },
): string[] {
  const of = (key = '') => hints.find(each => each.startsWith(`${key} `))
  const fitting = new Set<string>()
  let room = columns + widthOf(between)
  for (const each of [of(wayOut) ?? hints[0], of(last), ...hints]) {
    if (each === undefined || fitting.has(each)) continue
    const width = widthOf(each) + widthOf(between)
    if (width > room && fitting.size > 0) continue
    fitting.add(each)
    room -= width
  }
  return hints.filter(each => fitting.has(each))
}

/** What is typed or pasted as a search: on one line, safe, of at most 200 characters; a space at its end stays. */
export function searchText(text: string): string {
  return safeText(text).replace(/\s/g, ' ').slice(0, SEARCH_CHARS).toWellFormed()
}

const SEARCH_CHARS = 200

/**
 * Takes the reports of the mouse (SGR, mode 1006) out of what a terminal sends. `pointers`: the turns of the wheel and the
 * presses among them; `rest`: the beginning of a report, to be put before what comes next.
 */
export function pointersIn(sent: string): { text: string; pointers: Pointer[]; rest: string } {
  const pointers: Pointer[] = []
  const [rest = ''] = BEGUN.exec(sent) ?? []
  const text = sent.slice(0, sent.length - rest.length).replace(REPORT, (_, button, column, row, end) => {
    const [code, x, y] = [Number(button), Number(column) - 1, Number(row) - 1]
    if (code === WHEEL_UP || code === WHEEL_DOWN)
      pointers.push({ kind: 'wheel', rows: code === WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS, x, y })
    else if (code === 0 && end === 'M') pointers.push({ kind: 'press', x, y })
    return ''
  })
  return { text, pointers, rest }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with it.
const REPORT = /\x1b\[<(\d{1,4});(\d{1,5});(\d{1,5})([Mm])/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with it.
const BEGUN = /\x1b\[<[\d;]{0,16}$/
const WHEEL_UP = 64
const WHEEL_DOWN = 65
/** Rows of one turn. */
const WHEEL_ROWS = 3

/** Switches reports of the mouse on, with cells beyond 223. */
export const MOUSE_ON = '\x1b[?1000h\x1b[?1006h'
/** Switches them off. */
export const MOUSE_OFF = '\x1b[?1006l\x1b[?1000l'
