import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import { cutLine, padLine, widthOf, wrapLine } from '../../../src/tell/words/cells.ts'
import { safeText } from '../../../src/tell/words/safe-text.ts'
import { dark, expectFitting, seen, wildMarkdown } from '../../doors/screen/blocks/terminal-lines.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

const line = wildMarkdown.map(text => safeText(text).replaceAll('\n', ' '))
const columns = fc.integer({ min: 2, max: 90 })
const painted = fc
  .array(fc.tuple(line, fc.constantFrom('plain', 'bad', 'heading', 'link'), fc.boolean()), { maxLength: 4 })
  .map(parts =>
    parts.map(([text, role, isLink]) => {
      const part = dark.paint(role, text)
      return isLink ? dark.link(part, 'https://a.b/c') : part
    }),
  )
  .map(parts => parts.join(''))

test('a line is as wide as what is seen of it', () => {
  fc.assert(
    fc.property(line, text => {
      expect(widthOf(dark.paint('bad', text))).toBe(stringWidth(text))
    }),
  )
  expect(widthOf('日本 ␛ é 👩‍👩‍👧')).toBe(11)
})

describe('a line that is wrapped', () => {
  test('is broken between words, keeps its indentation, and loses nothing', () => {
    expect(wrapLine('  one two three', 9)).toEqual(['  one two', 'three'])
    expect(wrapLine('a verylongword', 5)).toEqual(['a', 'veryl', 'ongwo', 'rd'])
    expect(wrapLine('日本語 abc', 5)).toEqual(['日本', '語', 'abc'])
    expect(wrapLine('', 5)).toEqual([''])
  })

  promise('O58')
  test('has a path that is too long broken behind a slash, and nowhere else if that will do', () => {
    expect(wrapLine('src/deeply/nested/folder/file.ts', 14)).toEqual(['src/deeply/', 'nested/folder/', 'file.ts'])
    expect(wrapLine('see src/deeply/nested/file.ts now', 15)).toEqual(['see src/deeply/', 'nested/file.ts', 'now'])
    expect(wrapLine('/verylongnamewithout/slash', 10)).toEqual(['/verylongn', 'amewithout', '/slash'])
    expect(wrapLine('https://a.b/c/d/e/f', 12)).toEqual(['https://a.b/', 'c/d/e/f'])
    const name = dark.link(dark.paint('strong', 'src/deeply/nested/file.ts'), 'file:///work/src/deeply/nested/file.ts')
    expect(wrapLine(`${dark.paint('accent', '✎ ')}${name}`, 20).map(row => seen([row]))).toEqual([
      '✎ src/deeply/nested/',
      'file.ts',
    ])
    expect(wrapLine('日é日/é/a', 4)).toEqual(['日é', '日/', 'é/a'])
    const part = fc.stringMatching(/^[a-z日é]{1,12}$/u)
    fc.assert(
      fc.property(fc.array(part, { minLength: 2, maxLength: 12 }), columns, (parts, width) => {
        const path = parts.join('/')
        const rows = wrapLine(path, width)
        expect(rows.join('')).toBe(path)
        const canBreak = parts.every(each => stringWidth(`${each}/`) <= width)
        if (canBreak) for (const row of rows.slice(0, -1)) expect(row.endsWith('/')).toBe(true)
      }),
    )
  })

  test('takes its colours and links from row to row', () => {
    const [first, second] = wrapLine(dark.paint('bad', dark.link('one two', 'https://a.b')), 4)
    expect(first).toBe(dark.paint('bad', dark.link('one', 'https://a.b')))
    expect(second).toBe(dark.paint('bad', dark.link('two', 'https://a.b')))
  })

  test('fits, whatever is in it', () => {
    expectFitting(wrapLine(`क${'ा'.repeat(50)}`, 10), 10)
    fc.assert(
      fc.property(painted, columns, (text, width) => {
        expectFitting(wrapLine(text, width), width)
      }),
    )
  })

  test('has all of its words', () => {
    const words = (text: string) => text.normalize().replace(/\s/g, '')
    fc.assert(
      fc.property(painted, columns, (text, width) => {
        expect(words(seen(wrapLine(text, width)).replaceAll('\n', ''))).toBe(words(seen([text])))
      }),
    )
  })
})

test('a line that is cut or filled up fits, and says that it was cut', () => {
  expect(cutLine('hello', 5)).toBe('hello')
  expect(cutLine('hello', 4)).toBe('hel…')
  expect(cutLine('日本語', 4)).toBe('日…')
  expect(padLine('日本', 6)).toBe('日本  ')
  fc.assert(
    fc.property(painted, columns, (text, width) => {
      expectFitting([cutLine(text, width)], width)
      expectFitting([padLine(text, width)], width)
      expect(widthOf(padLine(text, width))).toBe(width)
    }),
  )
})

test('a text is cut at a word where one ends near, and anywhere in few cells, in a long word, and where none ends', () => {
  const text = 'the words of a person who reads'
  const cuts: [number, string][] = [
    [31, text],
    [30, 'the words of a person who…'],
    [26, 'the words of a person who…'],
    [25, 'the words of a person…'],
    [20, 'the words of a…'],
    [19, 'the words of a per…'],
  ]
  for (const [columns, shown] of cuts) {
    expect(cutLine(text, columns)).toBe(shown)
    expect(seen([cutLine(dark.paint('bad', text), columns)])).toBe(shown)
  }
  expect(cutLine('see src/doors/screen/terminal/output.ts', 30)).toBe('see src/doors/screen/terminal…')
  expect(cutLine('an incomprehensibility', 21)).toBe('an incomprehensibili…')
  expect(cutLine('plan 日本語日本語日本語日本語', 21)).toBe('plan 日本語日本語日…')
  expect(cutLine('日本語'.repeat(9), 21)).toBe('日本語日本語日本語日…')
})

test.each(['x', 'a/', 'word ', '日本語', '👩‍👩‍👧', 'e\u0301', dark.paint('bad', 'x ')])(
  '5 MB of %j are cheap',
  part => {
    const text = part.repeat(5_000_000 / part.length)
    const start = cpuMs()
    expect(widthOf(cutLine(text, 80))).toBeLessThanOrEqual(80)
    expect(wrapLine(text, 80).length).toBeGreaterThan(0)
    // A bound against what grows with the text; what it takes is far less.
    expect(cpuMs() - start).toBeLessThan(6000 * timesSlower())
  },
)
