import fc from 'fast-check'
import { Lexer } from 'marked'
import { describe, expect, test } from 'vitest'
import { finishedPart, partsOf } from '../../../src/tui/blocks/message-stream.ts'
import { wildMarkdown } from './terminal-lines.ts'

const finished = (text: string) => text.slice(0, finishedPart(text))

describe('what is finished of a text that grows', () => {
  test.each([
    ['a paragraph that may go on', 'one\ntwo', ''],
    ['a paragraph with a blank line behind it, but nothing after', 'one\n\n', ''],
    ['a paragraph, when the next has begun', 'one\n\nt', 'one\n\n'],
    ['a list, whose items may be far apart', '- a\n\n- b\n\n  c\n\n-', ''],
    ['a list, when a paragraph follows', '- a\n\n- b\n\nc', '- a\n\n- b\n\n'],
    ['a list, when something follows that may become an item', '1. a\n\n2', ''],
    ['a list, when a number follows that is none', '1. a\n\n2026 was\n', '1. a\n\n'],
    ['a code block with blank lines', 'x\n\n```js\na\n\nb\n\nc', 'x\n\n'],
    ['a code block that is closed', '```js\na\n\nb\n```\n\nx', '```js\na\n\nb\n```\n\n'],
    ['a code block with a shorter fence in it', '````\n```\n\nb\n', ''],
    ['a code block in a list', '- a\n  ```\n  b\n\nc\n  ```\n\nd', '- a\n  ```\n  b\n\nc\n  ```\n\n'],
    ['code that is moved in', '    a\n\n    b\n\n    c', ''],
    ['a table', '|a|\n|-|\n|b|\n', ''],
    ['HTML with blank lines', '<pre>\n\na\n\nb', ''],
    ['HTML that is closed', '<pre>\n\na\n</pre>\n\nb', '<pre>\n\na\n</pre>\n\n'],
    ['lines that end in CRLF', 'a\r\n\r\nb', 'a\r\n\r\n'],
  ])('%s', (_, text, expected) => {
    expect(finished(text)).toBe(expected)
  })

  test('stays finished, however the text goes on', () => {
    fc.assert(
      fc.property(wildMarkdown, wildMarkdown, (start, more) => {
        expect(finished(start + more).startsWith(finished(start))).toBe(true)
      }),
    )
  })

  test('cut off as it comes, leaves the same pieces as the whole', () => {
    fc.assert(
      fc.property(wildMarkdown, fc.integer({ min: 1, max: 9 }), (text, step) => {
        const pieces: string[] = []
        let rest = ''
        for (let i = 0; i < text.length; i += step) {
          rest += text.slice(i, i + step)
          const length = finishedPart(rest)
          if (length > 0) pieces.push(...partsOf(rest.slice(0, length)))
          rest = rest.slice(length)
        }
        expect([...pieces, ...partsOf(rest)]).toEqual(partsOf(text))
      }),
    )
  })
})

test('the pieces are read as the whole is', () => {
  const block = fc.constantFrom(
    ...['one\ntwo', '# a', '- a\n- b', '- a\n\n  b\n\n- c', '1. a\n   - b', '> a\n> b', '```js\na\n\nb\n```', '---'],
    ...['|a|b|\n|-|-|\n|c|d|', '<div>\nx\n</div>', '~~~\n```\n\n~~~', '* [x] a', 'a\n===', '    code\n\n    more'],
  )
  const kinds = (text: string) =>
    new Lexer({ gfm: true }).lex(text).flatMap(({ type, raw }) => (type === 'space' ? [] : [`${type} ${raw.trim()}`]))
  fc.assert(
    fc.property(fc.array(block, { maxLength: 8 }), blocks => {
      const text = blocks.join('\n\n')
      expect(partsOf(text).flatMap(kinds)).toEqual(kinds(text))
    }),
  )
})
