import type { Key, KeyName } from '../../../src/tui/composer/keys.ts'

const NONE = { ctrl: false, meta: false, shift: false }

/** A key by its name, else the text that is typed; `ctrl+c` with Ctrl held. */
export function key(name: string): Key {
  if (NAMES.has(name)) return { ...NONE, input: '', name: name as KeyName }
  if (name.startsWith('ctrl+')) return { ...NONE, ctrl: true, input: name.slice(5), name: null }
  return { ...NONE, input: name, name: null }
}

const NAMES = new Set(['up', 'down', 'home', 'end', 'return', 'backspace', 'escape', 'pageup', 'pagedown'])
