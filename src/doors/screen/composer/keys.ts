import type { Key as InkKey } from 'ink'
import { erase, kill, moveTo, paste, type TextBuffer, type, undo, yank, yankOlder } from './buffer.ts'
import { placeBeside } from './drawing.ts'
import {
  isAtLineEnd,
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

/** One key press: either a named key (`input` is empty) or the text that it gives (`name` is null). */
export interface Key {
  input: string
  ctrl: boolean
  meta: boolean
  shift: boolean
  name: KeyName | null
}

/** The keys that give no text, by what Ink calls them. */
const NAMES = {
  upArrow: 'up',
  downArrow: 'down',
  leftArrow: 'left',
  rightArrow: 'right',
  home: 'home',
  end: 'end',
  return: 'return',
  tab: 'tab',
  backspace: 'backspace',
  delete: 'delete',
  escape: 'escape',
  pageUp: 'pageup',
  pageDown: 'pagedown',
} as const satisfies Partial<Record<keyof InkKey, string>>

const NAMES_IN_INK = Object.keys(NAMES) as (keyof typeof NAMES)[]

/** The keys that give no text. */
export type KeyName = (typeof NAMES)[keyof typeof NAMES]

/**
 * The keys of one call of Ink's input handler: none for a key release, for the terminal's own keys (with Command) and for
 * keys without a name here; several when a terminal sends them at once (quick typing over a slow line). A text with a
 * newline inside it was pasted in a terminal without bracketed paste: it is one key, whose `input` holds the newlines.
 */
export function keysFromInk(input: string, ink: InkKey): readonly Key[] {
  if (ink.eventType === 'release' || ink.super || ink.hyper) return []
  const held = { ctrl: ink.ctrl, meta: ink.meta, shift: ink.shift }
  const name = nameOf(ink)
  // Two presses of Escape in one read look like Alt+Escape.
  if (name === 'escape') return [{ ...NO_MODIFIERS, input: '', name }]
  if (name !== null) return [{ ...held, input: '', name }]
  if (input === '') return []
  if (held.ctrl || held.meta) return [withModifiers(input, held)]
  return keysInChunk(input)
}

const NO_MODIFIERS = { ctrl: false, meta: false, shift: false }

function nameOf(ink: InkKey): KeyName | null {
  const name = NAMES_IN_INK.find(each => ink[each])
  return name === undefined ? null : NAMES[name]
}

// A terminal without the kitty protocol cannot tell these apart, so they are the same key with it.
const SAME_AS_CTRL: Record<string, KeyName> = { h: 'backspace', i: 'tab', m: 'return', '[': 'escape' }

function withModifiers(input: string, held: { ctrl: boolean; meta: boolean; shift: boolean }): Key {
  const letter = input.toLowerCase()
  const name = held.ctrl && !held.meta ? SAME_AS_CTRL[letter] : undefined
  return name === undefined ? { ...held, input: letter, name: null } : { ...NO_MODIFIERS, input: '', name }
}

// More characters in one read of the terminal are a paste, and their newline is part of it.
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

/** The buffer after a readline key; null for a key that does not edit. `columns`: the width of the text's rows, in cells. */
export function editKey(buffer: TextBuffer, key: Key, columns: number): TextBuffer | null {
  const edit = EDITS.get(chordOf(key))
  if (edit !== undefined) return edit(buffer)
  const direction = directionOf(key)
  if (direction !== null) return moveVertically(buffer, direction, columns)
  const { input } = key
  if (key.name !== null || key.ctrl || key.meta || input === '') return null
  // A text of more than four characters in one piece is a paste.
  const isPaste = /[\r\n]/.test(input) || [...input.slice(0, 8)].length > 4
  return isPaste ? paste(buffer, input) : type(buffer, input)
}

/** The modifiers and name of a key: `ctrl+a`, `alt+left`; Shift only with Enter and Tab. Empty for plain text. */
export function chordOf({ ctrl, meta, shift, name, input }: Key): string {
  if (name === null && !ctrl && !meta) return ''
  const counts = shift && (name === 'return' || name === 'tab')
  return `${ctrl ? 'ctrl+' : ''}${meta ? 'alt+' : ''}${counts ? 'shift+' : ''}${name ?? input}`
}

/** The row that a key moves to: one up (-1) or down (1); null for any other key. */
export function directionOf(key: Key): -1 | 1 | null {
  const chord = chordOf(key)
  if (chord === 'up' || chord === 'ctrl+p') return -1
  return chord === 'down' || chord === 'ctrl+n' ? 1 : null
}

/** The buffer with the caret one row up or down; null if there is no such row. */
export function moveVertically(buffer: TextBuffer, direction: -1 | 1, columns: number): TextBuffer | null {
  const to = placeBeside(buffer.text, direction, columns, buffer.chips, buffer.goal)
  return to === null ? null : moveTo(buffer, to.place, to.goal)
}

function newline(buffer: TextBuffer): TextBuffer {
  return { ...type(buffer, '\n'), last: null }
}

/** Kills to the end of the line; at its end the newline. */
function killToEnd(buffer: TextBuffer): TextBuffer {
  const { text } = buffer
  return kill(buffer, isAtLineEnd(text) ? right(text) : lineEnd(text))
}

/** Kills to the start of the line; at its start the newline before it. */
function killToStart(buffer: TextBuffer): TextBuffer {
  const { text } = buffer
  return kill(buffer, text.column === 0 ? left(text) : lineStart(text))
}

const move = (to: (text: Text) => Place) => (buffer: TextBuffer) => moveTo(buffer, to(buffer.text))
const eraseTo = (to: (text: Text) => Place) => (buffer: TextBuffer) => erase(buffer, to(buffer.text))
const killTo = (to: (text: Text) => Place) => (buffer: TextBuffer) => kill(buffer, to(buffer.text))

const CHORDS_OF_EDITS: readonly (readonly [edit: (buffer: TextBuffer) => TextBuffer, ...chords: string[]])[] = [
  [move(left), 'left', 'ctrl+b'],
  [move(right), 'right', 'ctrl+f'],
  [move(lineStart), 'home', 'ctrl+a'],
  [move(lineEnd), 'end', 'ctrl+e'],
  [move(text => wordLeft(text)), 'ctrl+left', 'alt+left', 'alt+b'],
  [move(wordRight), 'ctrl+right', 'alt+right', 'alt+f'],
  [eraseTo(left), 'backspace', 'ctrl+h'],
  [eraseTo(right), 'delete', 'ctrl+d'],
  [killToEnd, 'ctrl+k'],
  [killToStart, 'ctrl+u'],
  [killTo(text => wordLeft(text, SPACED_WORD)), 'ctrl+w'],
  [killTo(text => wordLeft(text)), 'ctrl+backspace', 'alt+backspace'],
  [killTo(wordRight), 'ctrl+delete', 'alt+delete', 'alt+d'],
  [newline, 'ctrl+j', 'ctrl+return', 'shift+return', 'alt+return'],
  [yank, 'ctrl+y'],
  [yankOlder, 'alt+y'],
  [undo, 'ctrl+_', 'ctrl+-', 'ctrl+/'],
]

const EDITS = new Map(CHORDS_OF_EDITS.flatMap(([edit, ...chords]) => chords.map(chord => [chord, edit] as const)))
