import fc from 'fast-check'
import stringWidth from 'string-width'
import { expect } from 'vitest'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { hostileText } from '../hostile-text.ts'
import { withoutColours } from '../without-colours.ts'

const env = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }

/** A theme with colours and links, one with neither, and one for a screen reader. */
export const dark = openTheme({ theme: 'dark', env, reader: false })
export const plain = openTheme({ theme: 'plain', env, reader: false })
export const reader = openTheme({ theme: 'plain', env, reader: true })

/** Columns that lines are tried in. */
export const widths = [7, 40, 80]

/** Lines as they are seen. */
export function seen(lines: readonly string[]): string {
  return lines.map(withoutColours).join('\n')
}

/** Expects lines that fit, and hold nothing that a terminal obeys but colours and links. */
export function expectFitting(lines: readonly string[], columns: number): void {
  for (const line of lines) {
    const text = withoutColours(line)
    expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u)
    expect(text.isWellFormed()).toBe(true)
    expect(stringWidth(text), JSON.stringify(line)).toBeLessThanOrEqual(columns)
  }
}

const SIGNS = [
  ...[
    '# ',
    '- ',
    '1. ',
    '* [x] ',
    '> ',
    '```',
    '```js\n',
    '~~~\n',
    '---\n',
    '    ',
    '\n',
    '\n\n',
    '|a|b|\n|-|:-:|\n|',
    '|',
  ],
  ...['**', '*', '_', '`', '~~', '[a](', 'https://a.b/c', ')', '![', '<div>', '<!--', '&lt;', '&#x1b;', '\\', '[x]: y'],
  ...['word ', 'const x = "y" // z\n', '日本語', '👩‍👩‍👧', 'e\u0301\u0323', '🇩🇪', 'x'.repeat(90), '한글', 'ﷺ', '⚠️'],
]

/** Texts that are full of Markdown, wide characters and what would steer a terminal. */
export const wildMarkdown = fc
  .array(fc.oneof({ arbitrary: fc.constantFrom(...SIGNS), weight: 4 }, hostileText), { maxLength: 40 })
  .map(parts => parts.join(''))
