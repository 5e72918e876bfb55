import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { openTheme, type ThemeOptions } from '../../../../src/doors/screen/terminal/theme.ts'
import { promise } from '../../../support/promise.ts'

const FULL = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }
const open = (options: Partial<ThemeOptions>) => openTheme({ theme: 'auto', env: FULL, reader: false, ...options })
const link = (env: ThemeOptions['env']) => open({ env }).link('x', 'https://a.b')

describe('colours', () => {
  test.each([
    ['NO_COLOR', { env: { ...FULL, NO_COLOR: '1' } }],
    ['the setting plain', { theme: 'plain' }],
    ['a dumb terminal', { env: { TERM: 'dumb', COLORTERM: 'truecolor' } }],
  ] satisfies [string, Partial<ThemeOptions>][])('%s leaves out all of them, bold too', (_, options) => {
    const theme = open(options)
    expect(theme.paint('strong', 'x') + theme.paint('bad', 'y')).toBe('xy')
    expect(theme.gradient(['ab'])).toEqual(['ab'])
  })

  test('an empty NO_COLOR counts for nothing', () => {
    expect(open({ env: { ...FULL, NO_COLOR: '' } }).paint('bad', 'x')).toBe('\x1b[31mx\x1b[39m')
  })

  test('of an unknown background only the palette is used', () => {
    expect(open({}).paint('good', 'x')).toBe('\x1b[32mx\x1b[39m')
    expect(open({}).paint('plain', 'x')).toBe('x')
  })

  test('of a known background the exact ones are used, as far as the terminal has them', () => {
    expect(open({ theme: 'dark' }).paint('good', 'x')).toBe('\x1b[38;2;86;211;100mx\x1b[39m')
    expect(open({ theme: 'light' }).paint('good', 'x')).toBe('\x1b[38;2;17;99;41mx\x1b[39m')
    expect(open({ theme: 'dark', env: { TERM: 'xterm-256color' } }).paint('good', 'x')).toBe('\x1b[38;5;114mx\x1b[39m')
    expect(open({ theme: 'dark', env: { TERM: 'xterm' } }).paint('good', 'x')).toBe('\x1b[32mx\x1b[39m')
  })

  test('the logo goes from blue to light blue, or is one blue', () => {
    expect(open({}).gradient(['a b'])[0]).toBe('\x1b[38;2;29;79;216ma \x1b[38;2;79;176;255mb\x1b[39m')
    expect(open({ env: { TERM: 'xterm' } }).gradient(['a b'])).toEqual(['\x1b[34ma b\x1b[39m'])
  })
})

describe('links', () => {
  test('lead to pages, files and addresses, and nowhere else', () => {
    const { link } = open({})
    expect(link('x', 'https://a.b/c')).toBe('\x1b]8;;https://a.b/c\x07x\x1b]8;;\x07')
    for (const url of ['file:///a', 'mailto:a@b.c', 'http://a']) expect(link('x', url)).not.toBe('x')
    for (const url of ['javascript:x', 'https://a\x1b[2J', 'https://a\x07b', 'https://a b', '/a', 'https://\u202ea']) {
      expect(link('x', url)).toBe('x')
    }
  })

  promise('O61', 'Files are links that name the machine, and steer nothing whatever a file is called')
  test('of files name the machine, and are ASCII that steers nothing, whatever the file is called', () => {
    const { file } = open({ host: 'night-desk' })
    expect(file('a b', '/work/a b')).toBe('\x1b]8;;file://night-desk/work/a%20b\x07a b\x1b]8;;\x07')
    for (const name of ['日本', 'a\x1b]8;;https:evil\x07b', '%2e%2e', 'a;b', '\u202e', 'a\nb', '?#']) {
      const url = file('x', `/work/${name}`).split('\x07')[0]?.slice('\x1b]8;;'.length) ?? ''
      expect(url).toMatch(/^file:\/\/night-desk\/work\/[!-~]+$/)
      expect(fileURLToPath(url.replace('night-desk', ''))).toBe(`/work/${name}`)
    }
    expect(file('x', 'work/a')).toBe('x')
    expect(open({}).file('x', '/work/a')).toBe('x')
    for (const none of [{ env: { TERM: 'linux' } }, { reader: true }, { theme: 'plain' }] as const)
      expect(open({ host: 'night-desk', ...none }).file('x', '/work/a')).toBe('x')
  })

  test('are made where the terminal is trusted with them', () => {
    expect(link({ TERM: 'xterm-kitty' })).not.toBe('x')
    expect(
      link({ TERM: 'tmux-256color', TMUX: '/tmp/t', TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.5a' }),
    ).not.toBe('x')
    for (const env of [
      {},
      { TERM: 'dumb' },
      { TERM: 'linux' },
      { TERM: 'screen.xterm-256color', STY: '1.pts' },
      { TERM: 'screen-256color', TMUX: '/tmp/t' },
      { TERM: 'tmux-256color', TMUX: '/tmp/t', TERM_PROGRAM: 'tmux', TERM_PROGRAM_VERSION: '3.3' },
      { TERM: 'xterm-256color', VTE_VERSION: '4800' },
    ]) {
      expect(link(env)).toBe('x')
    }
  })

  test('a screen reader gets words, not symbols and links', () => {
    const theme = open({ reader: true })
    expect(theme.symbols).toBe(false)
    expect(theme.link('x', 'https://a.b')).toBe('x')
  })
})
