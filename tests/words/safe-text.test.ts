import fc from 'fast-check'
import { expect, test } from 'vitest'
import { oneLine, safeText } from '../../src/words/safe-text.ts'

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
