import fc from 'fast-check'
import { expect, test } from 'vitest'
import { oneLine, safeText, titleLine } from '../../../src/tell/words/safe-text.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

test('what would steer a terminal is shown', () => {
  expect(safeText('\x1b[31mred\x07 \x00 \x7f \x9b1m')).toBe('␛[31mred␇ ␀ ␡ <U+009B>1m')
})

test('what would reorder a line is shown', () => {
  expect(safeText('a\u202eb\u2066c\u200fd\u2028e')).toBe('a<U+202E>b<U+2066>c<U+200F>d<U+2028>e')
})

test('newlines stay, CRLF is one, a lone CR is shown, a tab is two spaces', () => {
  expect(safeText('a\r\nb\nc\rd\te')).toBe('a\nb\nc␍d  e')
})

test('half a character is repaired, whole ones of any language stay', () => {
  expect(safeText('\ud83d 👩‍👩‍👧 日本 שלום')).toBe('\ufffd 👩‍👩‍👧 日本 שלום')
})

test('a line is one line, bounded, and never ends in half a character', () => {
  expect(oneLine(' a\n  b ', 10)).toBe('a ⏎ b')
  expect(oneLine('abcdef', 4)).toBe('abc…')
  expect(oneLine('ab👩👩', 4)).toBe('ab…')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 30 }), (text, limit) => {
      const line = oneLine(text, limit)
      expect(line.length).toBeLessThanOrEqual(limit)
      expect(line.isWellFormed()).toBe(true)
      expect(line).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u)
    }),
  )
})

test.each([
  ['# Build *linkcheck*\n\n- finds `broken` links', 'Build linkcheck'],
  ['\n---\n\n## A **bold** [plan](https://a.b/c) ##\n', 'A bold plan ##'],
  ['> - [ ] 1. Mend the build\r\nnow', 'Mend the build'],
  ['```ts\nconst a = 1\n```', 'const a = 1'],
  ['Rename `snake_case(*args)` to __init__ and 2 * 3 * 4', 'Rename snake_case(*args) to init and 2 * 3 * 4'],
  ['see <https://a.b/c> and some_file_name.ts', 'see https://a.b/c and some_file_name.ts'],
  ['\\*not bold\\*', '*not bold*'],
  ['日本語の**題名**\n二行目', '日本語の題名'],
  ['\x1b[2Jsteers\n', '␛[2Jsteers'],
  ['---\n***', '--- ***'],
  ['', ''],
])('a title is the first line that says something, without Markdown: %j', (text, title) => {
  expect(titleLine(text, 100)).toBe(title)
})

test('a title that is too long is cut at a word, and one without spaces where it must be', () => {
  expect(titleLine('Build a command that finds links', 20)).toBe('Build a command…')
  expect(titleLine('x'.repeat(30), 10)).toBe(`${'x'.repeat(9)}…`)
})

promise('O60', 'A session is called by a line of its goal without Markdown, in header, title, lists and cards')
test('a title is one line that steers nothing, bounded, whatever it is made of, and soon', () => {
  const signs = fc.constantFrom(
    '#',
    '*',
    '_',
    '`',
    '~',
    '[',
    '](',
    ')',
    '<',
    '>',
    '\\',
    '- ',
    '\n',
    ' ',
    'a',
    '日',
    '\x1b',
    '\u202e',
  )
  fc.assert(
    fc.property(fc.array(signs, { maxLength: 300 }), fc.integer({ min: 1, max: 30 }), (parts, limit) => {
      const line = titleLine(parts.join(''), limit)
      expect(line.length).toBeLessThanOrEqual(limit)
      expect(line).not.toMatch(/[⏎\p{Cc}\p{Bidi_Control}\u2028\u2029]/u)
    }),
  )
  const start = cpuMs()
  for (const sign of ['#', '*a', '_a', '`', '~~a', '[', '[](', '<https:', '> ', '- [ ] '])
    titleLine(sign.repeat(100_000), 80)
  expect(cpuMs() - start).toBeLessThan(1000 * timesSlower())
})
