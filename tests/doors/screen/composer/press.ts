import type { Composer, ComposerIntent } from '../../../../src/doors/screen/composer/composer.ts'
import type { Key, KeyName } from '../../../../src/doors/screen/composer/keys.ts'
import type { Theme } from '../../../../src/doors/screen/terminal/theme.ts'

const NAMES = 'up down left right home end return tab backspace delete escape pageup pagedown'.split(' ')

/** A key by its name: `a`, `ctrl+k`, `alt+up`, `shift+return`. */
export function keyNamed(chord: string): Key {
  const [last = '', ...modifiers] = chord.split(/\+(?=.)/).reverse()
  const name = NAMES.includes(last) ? (last as KeyName) : null
  const held = (modifier: string) => modifiers.includes(modifier)
  return { input: name === null ? last : '', ctrl: held('ctrl'), meta: held('alt'), shift: held('shift'), name }
}

/** Presses keys one after the other; what the last one asked for. */
export function press(composer: Composer, ...chords: string[]): ComposerIntent | null {
  return chords.map(chord => composer.key(keyNamed(chord))).at(-1) ?? null
}

/** Types a text, a key for each character. */
export function write(composer: Composer, text: string): void {
  for (const character of text) composer.key({ input: character, ctrl: false, meta: false, shift: false, name: null })
}

/** A theme that paints nothing. */
export const PLAIN_THEME: Theme = {
  paint: (_role, text) => text,
  link: text => text,
  file: text => text,
  gradient: lines => [...lines],
  symbols: true,
}
