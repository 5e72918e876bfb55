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
