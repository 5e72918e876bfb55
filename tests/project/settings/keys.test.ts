import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { keysPage } from '../../../scripts/keys-page.ts'
import { chordLabel, KEY_ACTIONS, type KeyAction, Keymap } from '../../../src/project/settings/keys.ts'
import { promise } from '../../support/promise.ts'
import { openSettings } from './settings-places.ts'

/** The keys of the screen with this text in the person's file, or in the project's. */
async function read(text: string, layer: 'person' | 'project' = 'person') {
  await using settings = await openSettings()
  await settings[layer](text)
  return (await settings.load()).keys
}

describe('the table of keys', () => {
  test.each([null, 'vim' as const])('has no key for two actions at once, with the preset %s', preset => {
    const keymap = new Keymap({ preset, remapped: new Map() })
    const taken = new Map<string, string>()
    for (const each of KEY_ACTIONS as readonly KeyAction[]) {
      for (const chord of keymap.chordsOf(each.id as never)) {
        for (const when of each.when === undefined ? ['empty', 'text'] : [each.when]) {
          const place = `${each.context} ${when} ${chord}`
          expect(taken.get(place), place).toBeUndefined()
          taken.set(place, each.id)
        }
      }
    }
  })

  promise('O73', 'docs/keys.md has every key of the table')
  test('docs/keys.md has every key, and is made from the table', () => {
    expect(readFileSync('docs/reference/keys.md', 'utf8')).toBe(keysPage())
  })

  test('a key is written as people write it', () => {
    const shown = ['ctrl+x', 'alt+up', 'return', 'd', 'G', 'ctrl+_', 'shift+tab', 'pageup', 'space', 'ctrl++'].map(
      chordLabel,
    )
    expect(shown).toEqual(['Ctrl+X', 'Alt+↑', 'Enter', 'd', 'G', 'Ctrl+_', 'Shift+Tab', 'PgUp', 'Space', 'Ctrl++'])
  })
})

describe('[keys]', () => {
  test('remaps an action, to several keys or to none; the others stay', async () => {
    const keymap = new Keymap(await read('[keys]\npalette = ["Ctrl+Space", "alt+x"]\ndiff = []\nhelp = "!"\n'))
    expect(keymap.inField('alt+x', true)).toBe('palette')
    expect(keymap.inField('ctrl+x', true)).toBeNull()
    expect(keymap.inField('alt+g', true)).toBeNull()
    expect(keymap.inField('!', true)).toBe('help')
    expect(keymap.label('palette')).toBe('Ctrl+Space')
    expect(keymap.label('log')).toBe('Ctrl+E')
  })

  test('preset = "vim" adds its keys in pager, lists and review, and takes none from the field', async () => {
    const keymap = new Keymap(await read('keys.preset = "vim"'))
    expect(keymap.inView('list', 'ctrl+f')).toBe('page_down')
    expect([keymap, new Keymap()].map(each => each.inView('list', 'j'))).toEqual(['row_down', 'row_down'])
    expect(keymap.inView('list', 'l')).toBe('open')
    expect(keymap.inView('pager', 'ctrl+e')).toBe('line_down')
    expect(keymap.inView('review', ']')).toBe('next_hunk')
    expect(keymap.inField('j', true)).toBeNull()
  })

  test('a vim key can be given away once its action has another one', async () => {
    const keymap = new Keymap(await read('[keys]\npreset = "vim"\ndown = "n"\nnext_hit = "J"\nnext_hunk = "J"\n'))
    expect(keymap.inView('list', 'n')).toBe('down')
  })

  test.each([
    ['[keys]\npalete = "ctrl+x"', 'config.toml:2: keys has no action "palete"; did you mean "palette"?'],
    [
      '[keys]\npalette = "crtl+x"',
      'config.toml:2: keys.palette is "crtl+x", which is not a key; did you mean "ctrl+x"?',
    ],
    [
      '[keys]\npalette = "ctrl+pagdown"',
      'config.toml:2: keys.palette is "ctrl+pagdown", which is not a key; did you mean "ctrl+pagedown"?',
    ],
    ['[keys]\npalette = 7', 'config.toml:2: keys.palette is 7; use a key such as "ctrl+x", or a list of at most 8.'],
    [
      '[keys]\n\npalette = "ctrl+t"',
      'config.toml:3: keys.palette is "ctrl+t", but "tasks" has the same key; change one of the two.',
    ],
    [
      '[keys]\npalette = "ctrl+k"',
      'config.toml:2: keys.palette is "ctrl+k", but "kill_line" has the same key; change one of the two.',
    ],
    [
      '[keys]\npalette = "alt+g"\ndiff = "alt+p"\nlog = "alt+p"',
      'config.toml:3: keys.diff is "alt+p", but "log" has the same key; change one of the two.',
    ],
    [
      '[keys]\npalette = "x"',
      'config.toml:2: keys.palette is "x", but this key types a character into the field; use a key with ctrl or alt.',
    ],
    [
      '[keys]\npalette = "ctrl+i"',
      'config.toml:2: keys.palette is "ctrl+i", but a terminal sends it as Tab; use another key.',
    ],
    [
      '[keys]\npalette = "shift+x"',
      'config.toml:2: keys.palette is "shift+x", but terminals notice Shift only with Enter and Tab; use another key.',
    ],
    ['[keys]\nplan = "ctrl+p"', 'config.toml:2: keys.plan cannot be changed; its key is always Ctrl+C.'],
    ['[keys]\npreset = "emacs"', 'config.toml:2: keys.preset is "emacs"; use "vim".'],
    ['[[keys]]\npalette = "ctrl+x"', 'config.toml:1: keys is not a table; begin it with a line [keys].'],
    ['keys = 3', 'config.toml:1: keys is not a table; begin it with a line [keys].'],
    [
      '[keys.palette]\nkey = "x"',
      'config.toml:1: keys.palette is a table; use a key such as "ctrl+x", or a list of at most 8.',
    ],
    ['keys = { close = "up" }', 'config.toml:1: keys.close is "up", but "up" has the same key; change one of the two.'],
  ])('%j is told in one sentence with its line', (text, sentence) => {
    return expect(read(text)).rejects.toThrow(sentence)
  })

  test('a project says nothing of keys: a clone would say what Ctrl+E does', () => {
    return expect(read('[keys]\nlog = "alt+l"', 'project')).rejects.toThrow(
      "codemachine.toml:1: keys cannot be set by a project's own file; if you want that, use your own config.toml.",
    )
  })
})
