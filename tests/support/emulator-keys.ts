const NAMED = {
  enter: '\r',
  tab: '\t',
  backspace: '\x7f',
  esc: '\x1b',
  space: ' ',
  up: '\x1b[A',
  down: '\x1b[B',
  right: '\x1b[C',
  left: '\x1b[D',
  home: '\x1b[H',
  end: '\x1b[F',
  insert: '\x1b[2~',
  delete: '\x1b[3~',
  pageup: '\x1b[5~',
  pagedown: '\x1b[6~',
} as const

type NamedKey = keyof typeof NAMED

/** A key as a person names it: `enter`, `ctrl+c`, `alt+up`, `shift+enter`, `ctrl+_`; or a text that is typed. */
export type Key = NamedKey | `${'ctrl' | 'alt' | 'shift' | 'ctrl+alt' | 'ctrl+shift'}+${string}` | { text: string }

interface Stroke {
  name: string
  ctrl: boolean
  alt: boolean
  shift: boolean
}

/** What a terminal writes for a key. `kitty`: the program has asked for the kitty keyboard protocol (flag 1). */
export function bytesOfKey(key: Key, kitty: boolean): string {
  if (typeof key !== 'string') return key.text
  const stroke = parse(key)
  return kitty ? inKitty(stroke) : inLegacy(stroke)
}

/** Application cursor mode changes unmodified arrows, Home and End. */
export function inApplicationMode(bytes: string): string {
  return bytes.length === 3 && bytes.startsWith('\x1b[') ? `\x1bO${bytes.at(-1)}` : bytes
}

function parse(key: string): Stroke {
  const parts = key === '+' || key.endsWith('++') ? [...key.slice(0, -2).split('+'), '+'] : key.split('+')
  const name = parts.at(-1) ?? ''
  const modifiers = parts.slice(0, -1)
  if (!isNamed(name) && [...name].length !== 1) throw new Error(`There is no key "${key}".`)
  return { name, ...flags(modifiers) }
}

function flags(modifiers: readonly string[]): Omit<Stroke, 'name'> {
  return { ctrl: modifiers.includes('ctrl'), alt: modifiers.includes('alt'), shift: modifiers.includes('shift') }
}

function isNamed(name: string): name is NamedKey {
  return Object.hasOwn(NAMED, name)
}

/** The parameter of a sequence that says which modifiers are held. */
function modifierOf({ ctrl, alt, shift }: Stroke): number {
  return 1 + (shift ? 1 : 0) + (alt ? 2 : 0) + (ctrl ? 4 : 0)
}

function inLegacy(stroke: Stroke): string {
  const { name, ctrl, alt, shift } = stroke
  if (!isNamed(name)) return (alt ? '\x1b' : '') + (ctrl ? control(name) : name)
  if (name === 'tab' && shift) return '\x1b[Z'
  // Terminals without the protocol are set up to send this by people who want it.
  if (name === 'enter' && shift) return '\x1b[13;2u'
  if (name === 'backspace' && ctrl) return '\x08'
  return NAMED[name].startsWith('\x1b[') ? modified(NAMED[name], stroke) : (alt ? '\x1b' : '') + NAMED[name]
}

/** `ESC [ A` becomes `ESC [ 1 ; 3 A`, `ESC [ 3 ~` becomes `ESC [ 3 ; 3 ~`. */
function modified(sequence: string, stroke: Stroke): string {
  const modifier = modifierOf(stroke)
  if (modifier === 1) return sequence
  return `\x1b[${sequence.slice(2, -1) || '1'};${modifier}${sequence.at(-1)}`
}

function inKitty(stroke: Stroke): string {
  const { name } = stroke
  const modifier = modifierOf(stroke)
  const suffix = modifier === 1 ? '' : `;${modifier}`
  if (name === 'esc') return `\x1b[27${suffix}u`
  if (modifier === 1) return inLegacy(stroke)
  if (isNamed(name) && NAMED[name].startsWith('\x1b[')) return modified(NAMED[name], stroke)
  const codes: Record<string, number> = { enter: 13, tab: 9, backspace: 127, space: 32 }
  return `\x1b[${codes[name] ?? name.codePointAt(0)}${suffix}u`
}

function control(name: string): string {
  if (name === '?') return '\x7f'
  return String.fromCharCode(name.toUpperCase().charCodeAt(0) & 0x1f)
}
