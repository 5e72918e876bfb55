import type { Key, KeyName } from '../../../../src/doors/screen/composer/keys.ts'

const NONE = { ctrl: false, meta: false, shift: false }

/** A key by its name, else the text that is typed; `ctrl+c` with Ctrl held. */
function key(name: string): Key {
  if (NAMES.has(name)) return { ...NONE, input: '', name: name as KeyName }
  if (name.startsWith('ctrl+')) return { ...NONE, ctrl: true, input: name.slice(5), name: null }
  return { ...NONE, input: name, name: null }
}

/** The keys of a text that is typed, else one by its name. */
export function typed(name: string): Key[] {
  const one = key(name)
  return one.name !== null || one.ctrl ? [one] : [...name].map(key)
}

const NAMES = new Set([
  'up',
  'down',
  'home',
  'end',
  'return',
  'backspace',
  'escape',
  'pageup',
  'pagedown',
  'left',
  'right',
  'tab',
])
