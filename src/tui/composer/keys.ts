import { safeText, widthOf } from '../../words/cells.ts'
import { erase, kill, moveTo, paste, type TextBuffer, type, undo, yank, yankOlder } from './buffer.ts'
import {
  type Chips,
  caretLine,
  graphemesOf,
  isAtLineEnd,
  isChip,
  left,
  lineEnd,
  lineStart,
  type Place,
  right,
  SPACED_WORD,
  type Text,
  wordLeft,
  wordRight,
} from './text.ts'

/** One press of a key: a name for what is no character, else the text that it gives (`input`, empty for a named key). */
export interface Key {
  input: string
  ctrl: boolean
  meta: boolean
  shift: boolean
  name: KeyName | null
}

/** Keys that give no character. */
export type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'home'
  | 'end'
  | 'return'
  | 'tab'
  | 'backspace'
  | 'delete'
  | 'escape'
  | 'pageup'
  | 'pagedown'

/** What Ink's `useInput` says of a key beside its text. */
export interface InkKey {
  upArrow: boolean
  downArrow: boolean
  leftArrow: boolean
  rightArrow: boolean
  pageDown: boolean
  pageUp: boolean
  home: boolean
  end: boolean
  return: boolean
  escape: boolean
  ctrl: boolean
  shift: boolean
  tab: boolean
  backspace: boolean
  delete: boolean
  meta: boolean
  /** The Command or Windows key. */
  super?: boolean
  hyper?: boolean
  eventType?: 'press' | 'repeat' | 'release'
}

/**
 * The keys that one call of Ink's input handler stands for: none for a key that is let go, that is the terminal's (with
 * Command) or that we have no name for; several when a terminal sends them at once (quick typing over a slow line).
 * A text with a newline inside it was pasted in a terminal that does not mark pastes: it is one key, whose `input`
 * holds the newlines.
 */
export function keysFromInk(input: string, ink: InkKey): readonly Key[] {
  if (ink.eventType === 'release' || ink.super || ink.hyper) return []
  const held = { ctrl: ink.ctrl, meta: ink.meta, shift: ink.shift }
  const name = nameOf(ink)
  // Two presses of Escape that come at once look like Alt+Escape.
  if (name === 'escape') return [{ ...NO_MODIFIERS, input: '', name }]
  if (name !== null) return [{ ...held, input: '', name }]
  if (input === '') return []
  if (held.ctrl || held.meta) return [withModifiers(input, held)]
  return keysInChunk(input)
}

const NO_MODIFIERS = { ctrl: false, meta: false, shift: false }

function nameOf(ink: InkKey): KeyName | null {
  if (ink.upArrow) return 'up'
  if (ink.downArrow) return 'down'
  if (ink.leftArrow) return 'left'
  if (ink.rightArrow) return 'right'
  if (ink.home) return 'home'
  if (ink.end) return 'end'
  if (ink.return) return 'return'
  if (ink.tab) return 'tab'
  if (ink.backspace) return 'backspace'
  if (ink.delete) return 'delete'
  if (ink.escape) return 'escape'
  if (ink.pageUp) return 'pageup'
  if (ink.pageDown) return 'pagedown'
  return null
}

// What a terminal without the kitty protocol cannot tell apart is the same key with it.
const SAME_AS_CTRL: Record<string, KeyName> = { h: 'backspace', i: 'tab', m: 'return', '[': 'escape' }

function withModifiers(input: string, held: { ctrl: boolean; meta: boolean; shift: boolean }): Key {
  const letter = input.toLowerCase()
  const name = held.ctrl && !held.meta ? SAME_AS_CTRL[letter] : undefined
  return name === undefined ? { ...held, input: letter, name: null } : { ...NO_MODIFIERS, input: '', name }
}

// A person does not type a longer line between two reads of the terminal: its newline is a part of a paste.
const MOST_TYPED = 1_000
const NEWLINE_INSIDE = /[\r\n]./s
const CONTROLS_APART = /(\p{Cc})/u

function keysInChunk(input: string): Key[] {
  if (input.length > 1 && (NEWLINE_INSIDE.test(input) || input.length > MOST_TYPED)) return [textKey(input)]
  const end = /[\r\t]$/.test(input) ? input.slice(-1) : ''
  const keys = input
    .slice(0, input.length - end.length)
    .split(CONTROLS_APART)
    .filter(piece => piece !== '')
    .map(piece => (piece !== '\t' && piece < ' ' ? controlKey(piece) : textKey(piece)))
  if (end === '') return keys
  return [...keys, { ...NO_MODIFIERS, input: '', name: end === '\r' ? 'return' : 'tab' }]
}

function textKey(input: string): Key {
  return { ...NO_MODIFIERS, input, name: null }
}

/** The key that sends a control character: Ctrl+J for a line feed, Ctrl+_ for the unit separator. */
function controlKey(control: string): Key {
  const code = control.charCodeAt(0)
  const letter = code === 0 ? ' ' : String.fromCharCode(code + (code <= 26 ? 96 : 64))
  return withModifiers(letter, { ...NO_MODIFIERS, ctrl: true })
}

/** What a key does to a text, as in readline, or null for a key that does not edit. `columns`: of the text's rows. */
export function editKey(buffer: TextBuffer, key: Key, columns: number): TextBuffer | null {
  const edit = EDITS.get(chordOf(key))
  if (edit !== undefined) return edit(buffer)
  const direction = directionOf(key)
  if (direction !== null) return moveVertically(buffer, direction, columns)
  if (key.name !== null || key.ctrl || key.meta || key.input === '') return null
  return key.input.includes('\n') || key.input.includes('\r')
    ? paste(buffer, key.input)
    : typeOrPaste(buffer, key.input)
}

/** The modifiers and name of a key: `ctrl+a`, `alt+left`; Shift counts only with Enter and Tab. Empty for plain text. */
export function chordOf({ ctrl, meta, shift, name, input }: Key): string {
  if (name === null && !ctrl && !meta) return ''
  const counts = shift && (name === 'return' || name === 'tab')
  return `${ctrl ? 'ctrl+' : ''}${meta ? 'alt+' : ''}${counts ? 'shift+' : ''}${name ?? input}`
}

/** Whether a key means one row up (-1) or down (1). */
export function directionOf(key: Key): -1 | 1 | null {
  const chord = chordOf(key)
  if (chord === 'up' || chord === 'ctrl+p') return -1
  return chord === 'down' || chord === 'ctrl+n' ? 1 : null
}

/** One row up or down, or null if there is none. */
export function moveVertically(buffer: TextBuffer, direction: -1 | 1, columns: number): TextBuffer | null {
  const to = vertically(buffer.text, direction, columns, buffer.chips, buffer.goal)
  return to === null ? null : moveTo(buffer, to.place, to.goal)
}

/** A long text that comes in one piece was not typed. */
function typeOrPaste(buffer: TextBuffer, input: string): TextBuffer {
  return [...input.slice(0, 8)].length > 4 ? paste(buffer, input) : type(buffer, input)
}

function newline(buffer: TextBuffer): TextBuffer {
  return { ...type(buffer, '\n'), last: null }
}

/** To the end of the line, or at its end the newline. */
function killToEnd(buffer: TextBuffer): TextBuffer {
  const { text } = buffer
  return kill(buffer, isAtLineEnd(text) ? right(text) : lineEnd(text))
}

/** To the start of the line, or at its start the newline before it. */
function killToStart(buffer: TextBuffer): TextBuffer {
  const { text } = buffer
  return kill(buffer, text.column === 0 ? left(text) : lineStart(text))
}

const move = (to: (text: Text) => Place) => (buffer: TextBuffer) => moveTo(buffer, to(buffer.text))
const eraseTo = (to: (text: Text) => Place) => (buffer: TextBuffer) => erase(buffer, to(buffer.text))
const killTo = (to: (text: Text) => Place) => (buffer: TextBuffer) => kill(buffer, to(buffer.text))
const killWordLeft = killTo(text => wordLeft(text))
const moveWordLeft = move(text => wordLeft(text))

const EDITS = new Map<string, (buffer: TextBuffer) => TextBuffer>(
  Object.entries({
    left: move(left),
    right: move(right),
    home: move(lineStart),
    end: move(lineEnd),
    backspace: eraseTo(left),
    delete: eraseTo(right),
    'ctrl+a': move(lineStart),
    'ctrl+b': move(left),
    'ctrl+d': eraseTo(right),
    'ctrl+e': move(lineEnd),
    'ctrl+f': move(right),
    'ctrl+h': eraseTo(left),
    'ctrl+j': newline,
    'ctrl+k': killToEnd,
    'ctrl+u': killToStart,
    'ctrl+w': killTo(text => wordLeft(text, SPACED_WORD)),
    'ctrl+y': yank,
    'ctrl+_': undo,
    'ctrl+-': undo,
    'ctrl+/': undo,
    'ctrl+left': moveWordLeft,
    'ctrl+right': move(wordRight),
    'ctrl+backspace': killWordLeft,
    'ctrl+delete': killTo(wordRight),
    'ctrl+return': newline,
    'shift+return': newline,
    'alt+return': newline,
    'alt+b': moveWordLeft,
    'alt+f': move(wordRight),
    'alt+d': killTo(wordRight),
    'alt+y': yankOlder,
    'alt+left': moveWordLeft,
    'alt+right': move(wordRight),
    'alt+backspace': killWordLeft,
    'alt+delete': killTo(wordRight),
  }),
)

/** A character as it is shown: what stands for it, in how many cells, and where it begins in its line. */
interface Shown {
  readonly shown: string
  readonly width: number
  readonly start: number
  /** Why it is not shown as it is: a chip by its label, a character that would steer the terminal by its name. */
  readonly as: 'itself' | 'chip' | 'name'
}

/** A row of the screen that a line, or a part of it, takes. `end` is where the next one begins (UTF-16 units). */
export interface VisualRow {
  readonly start: number
  readonly end: number
  readonly cells: readonly Shown[]
}

/**
 * The rows (at least one) that a line takes in so many columns, at least 2: broken behind white space where a word does
 * not fit, else inside it, never inside a character. Widths are of grapheme clusters, as kitty, WezTerm, Ghostty, iTerm2
 * and Windows Terminal count them: an emoji joined of several takes two cells.
 */
export function visualRows(line: string, columns: number, chips: Chips): VisualRow[] {
  const rows: VisualRow[] = []
  let row: Shown[] = []
  let width = 0
  let breakAt = 0
  const finish = (count: number) => {
    const rest = row.slice(count)
    const start = row[0]?.start ?? 0
    rows.push({ start, end: rest[0]?.start ?? line.length, cells: row.slice(0, count) })
    row = rest
    width = rest.reduce((sum, each) => sum + each.width, 0)
    breakAt = 0
  }
  for (const next of shownOf(line, columns, chips)) {
    const each = width === columns && next.shown === ' ' && row.at(-1)?.shown !== '' ? { ...next, ...HANGING } : next
    row.push(each)
    width += each.width
    // A break can leave more behind than fits: a label is as wide as a row.
    while (width > columns) finish(breakAt > 0 ? breakAt : row.length - 1)
    if (next.shown === ' ' || next.shown === TAB) breakAt = row.length
  }
  finish(row.length)
  return rows
}

const TAB = '  '
// A space between two words of which the first one ends with the row.
const HANGING = { shown: '', width: 0 }
const PLAIN = /^[ -~]$/

function* shownOf(line: string, columns: number, chips: Chips): Generator<Shown> {
  let start = 0
  for (const grapheme of graphemesOf(line)) {
    if (PLAIN.test(grapheme)) yield { shown: grapheme, width: 1, start, as: 'itself' }
    else yield { ...special(grapheme, columns, chips), start }
    start += grapheme.length
  }
}

function special(grapheme: string, columns: number, chips: Chips): Omit<Shown, 'start'> {
  if (isChip(grapheme)) {
    const label = chips.get(grapheme)?.label ?? ''
    return { shown: cut(label, columns), width: Math.min(label.length, columns), as: 'chip' }
  }
  const measured = measure(grapheme)
  if (measured.width <= columns) return measured
  // A character with so many marks that it is wider than the screen is not one that anybody reads.
  if (measured.as === 'itself') return { shown: '?', width: 1, as: 'name' }
  return { shown: cut(measured.shown, columns), width: columns, as: 'name' }
}

const MOST_MEASURED = 4_096
const measured = new Map<string, Omit<Shown, 'start'>>()

/** Measuring takes most of the time of drawing what is not ASCII, and a text has few different characters. */
function measure(grapheme: string): Omit<Shown, 'start'> {
  const known = measured.get(grapheme)
  if (known !== undefined) return known
  const shown = safeText(grapheme)
  const fresh = {
    shown,
    width: widthOf(shown),
    as: shown === grapheme || grapheme === '\t' ? 'itself' : 'name',
  } as const
  if (measured.size >= MOST_MEASURED) measured.clear()
  if (grapheme.length <= LONGEST_MEASURED) measured.set(grapheme, fresh)
  return fresh
}

// Longer than the longest joined emoji; what a character with thousands of marks takes is not kept.
const LONGEST_MEASURED = 40

function cut(label: string, columns: number): string {
  return label.length <= columns ? label : `${label.slice(0, columns - 1)}…`
}

/** Which row of a line the caret is in, and in which cell of it. A caret between two rows is in the lower one. */
export function caretIn(rows: readonly VisualRow[], column: number): { index: number; x: number } {
  const below = rows.findIndex(({ end }) => column < end)
  const index = below === -1 ? rows.length - 1 : below
  const cells = rows[index]?.cells ?? []
  return { index, x: cells.reduce((x, each) => (each.start < column ? x + each.width : x), 0) }
}

/** The place one row further up (-1) or down (1) and the cell that such moves keep to, or null beyond the text. */
function vertically(
  text: Text,
  direction: -1 | 1,
  columns: number,
  chips: Chips,
  goal: number | null,
): { place: Place; goal: number } | null {
  const rows = visualRows(caretLine(text), columns, chips)
  const at = caretIn(rows, text.column)
  const kept = goal ?? at.x
  const within = rows[at.index + direction]
  if (within !== undefined) {
    return {
      place: { row: text.row, column: columnAt(within, kept, at.index + direction < rows.length - 1) },
      goal: kept,
    }
  }
  const next = text.row + direction
  const line = text.lines[next]
  if (line === undefined) return null
  const others = visualRows(line, columns, chips)
  const index = direction === 1 ? 0 : others.length - 1
  const row = others[index]
  if (row === undefined) return null
  return { place: { row: next, column: columnAt(row, kept, index < others.length - 1) }, goal: kept }
}

/** The last place of a row that is not behind a cell; its end belongs to the row below if there is one. */
function columnAt({ cells, start, end }: VisualRow, goal: number, continues: boolean): number {
  let x = 0
  for (const each of cells) {
    if (x + each.width > goal) return each.start
    x += each.width
  }
  return continues ? (cells.at(-1)?.start ?? start) : end
}
