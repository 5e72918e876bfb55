import type { Key } from './key.ts'
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
import { erase, kill, moveTo, paste, type TextBuffer, type, undo, yank, yankOlder } from './text-buffer.ts'
import { vertically } from './visual-rows.ts'

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
