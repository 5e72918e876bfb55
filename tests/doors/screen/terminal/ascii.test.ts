import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { hasGlyphs, inAscii, writeInAscii } from '../../../../src/doors/screen/terminal/ascii.ts'
import { promise } from '../../../support/promise.ts'

test.each<[Record<string, string>, boolean]>([
  [{}, true],
  [{ LANG: 'en_US.UTF-8' }, true],
  [{ LANG: 'C.utf8' }, true],
  [{ LANG: 'de_DE' }, true],
  [{ LANG: 'C' }, false],
  [{ LANG: 'POSIX' }, false],
  [{ LANG: 'de_DE.ISO-8859-1@euro' }, false],
  [{ LANG: 'en_US.UTF-8', LC_CTYPE: 'C' }, false],
  [{ LANG: 'C', LC_ALL: 'en_US.UTF-8' }, true],
  [{ LC_ALL: '', LC_CTYPE: '', LANG: 'POSIX' }, false],
])('the locale of %j shows our glyphs: %s', (env, shows) => {
  expect(hasGlyphs(env, 'linux')).toBe(shows)
  expect(hasGlyphs(env, 'win32')).toBe(true)
})

/** The files of the folders in which lines are made; those of the page make HTML. */
const sources = ['src/doors/screen', 'src/tell/words', 'src/tell/report'].flatMap(folder =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name))
    .map(name => join(folder, name))
    .filter(path => !path.startsWith(join('src', 'tell', 'report', 'page'))),
)

promise('O63', 'A terminal whose locale is not UTF-8 gets ASCII in place of glyphs; a pipe never does')
test('a locale that is not UTF-8 gets ASCII for every glyph of ours, as wide as it is; what else is written stays', () => {
  expect(inAscii('╭─ session ─╮ ✔ a · 1 of 3 → … ◆ ● 日本 é')).toBe('+- session -+ + a - 1 of 3 > ~ : * 日本 é')
  const glyphs = new Set(
    sources.flatMap(path => readFileSync(path, 'utf8').match(/[\u2010-\u27bf\u2800-\u28ff]/gu) ?? []),
  )
  // Those of ranges of characters, and those that make a control character visible.
  for (const other of '‐‧␀␤␛␡†⬛') glyphs.delete(other)
  for (const glyph of glyphs) {
    expect(inAscii(glyph), glyph).toMatch(/^[ -~]+$/)
    expect(stringWidth(inAscii(glyph)), glyph).toBe(stringWidth(glyph))
  }
})

promise('O63')
test('only a terminal is written to in ASCII, never a pipe or a file', () => {
  const written: unknown[] = []
  const stream = (isTTY: boolean) => ({ isTTY, write: (text: string | Uint8Array) => written.push(text) > 0 })
  const env = { LANG: 'C' }
  for (const isTTY of [true, false]) {
    const each = stream(isTTY)
    writeInAscii(each, { env, platform: 'linux' })
    each.write('a → b')
  }
  const utf8 = stream(true)
  writeInAscii(utf8, { env: { LANG: 'C.UTF-8' }, platform: 'linux' })
  utf8.write('a → b')
  expect(written).toEqual(['a > b', 'a → b', 'a → b'])
})
