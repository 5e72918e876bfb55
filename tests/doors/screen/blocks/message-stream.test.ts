import fc from 'fast-check'
import { Lexer } from 'marked'
import { describe, expect, test } from 'vitest'
import { finishedLength, MessageStream, splitBlocks } from '../../../../src/doors/screen/blocks/message-stream.ts'
import { hostileText } from '../hostile-text.ts'
import { wildMarkdown } from './terminal-lines.ts'

const markdown = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'A paragraph.',
        'of two\nlines',
        '- a\n- b',
        '1. one',
        '```js\n\nlet x\n```',
        '```',
        '# Head',
        '| a |',
      ),
      fc.constantFrom('', '\n', '\n\n', ' ', '  indented', '> quoted', '<!--\n\n-->'),
      hostileText,
    ),
    { maxLength: 12 },
  )
  .map(blocks => blocks.join('\n'))

/** Feeds a text in pieces that end where `cuts` say, and answers all that was printed, and what is left. */
function streamed(text: string, cuts: readonly number[]): { stream: MessageStream; printed: string } {
  const stream = new MessageStream()
  let printed = ''
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    printed += stream.advance(text.slice(0, cut))
    expect(printed + stream.rest).toBe(text.slice(0, cut))
  }
  return { stream, printed }
}

const cutText = markdown.chain(text =>
  fc.tuple(fc.constant(text), fc.array(fc.nat(text.length), { maxLength: 20 }), fc.nat(text.length)),
)

test('a paragraph is printed when the next one begins, and what goes on stays live', () => {
  const stream = new MessageStream()
  expect(stream.advance('One.\n\n')).toBe('')
  expect(stream.advance('One.\n\nTw')).toBe('One.\n\n')
  expect(stream.rest).toBe('Tw')
  expect(stream.advance('One.\n\nTwo')).toBe('')
  expect(stream.end('One.\n\nTwo.')).toEqual({ markdown: 'Two.', isRepeat: false })
})

test('nothing is printed twice and no character is lost, wherever the pieces end', () => {
  fc.assert(
    fc.property(cutText, ([text, cuts]) => {
      const { stream, printed } = streamed(text, cuts)
      expect(stream.end(text)).toEqual({ markdown: text.slice(printed.length), isRepeat: false })
    }),
  )
})

test('what is printed early are whole blocks: the rest does not change them', () => {
  fc.assert(
    fc.property(cutText, ([text, cuts]) => {
      const { printed } = streamed(text, cuts)
      expect(finishedLength(text)).toBeGreaterThanOrEqual(printed.length)
    }),
  )
})

test('a message that ends in the middle of what has been shown of it, or goes on after it, is printed to its end', () => {
  fc.assert(
    fc.property(cutText, markdown, ([text, cuts, until], more) => {
      const { stream, printed } = streamed(
        text.slice(0, until),
        cuts.filter(cut => cut <= until),
      )
      expect(printed + stream.end(text.slice(0, until) + more).markdown).toBe(text.slice(0, until) + more)
    }),
  )
})

test('one that came out otherwise than it was streamed is printed again, whole, and says so', () => {
  const stream = new MessageStream()
  stream.advance('The key is hunter2.\n\nNow')
  expect(stream.end('The key is [secret KEY].\n\nNow.')).toEqual({
    markdown: 'The key is [secret KEY].\n\nNow.',
    isRepeat: true,
  })
})

test('where nothing is printed yet, there is no again', () => {
  const stream = new MessageStream()
  stream.advance('hunter2')
  expect(stream.end('[secret KEY]')).toEqual({ markdown: '[secret KEY]', isRepeat: false })
})

test('white space at the end of a block that came out otherwise is no reason to print it again', () => {
  const streamOf = () => {
    const stream = new MessageStream()
    stream.advance('One.\n\n\nTwo')
    return stream
  }
  expect(streamOf().end('One.')).toEqual({ markdown: '', isRepeat: false })
  expect(streamOf().end('One.\n\nTwo')).toEqual({ markdown: '\n\nTwo', isRepeat: false })
  expect(streamOf().end('Uno.\n\nTwo')).toEqual({ markdown: 'Uno.\n\nTwo', isRepeat: true })
  expect(streamOf().end('One.x')).toEqual({ markdown: 'One.x', isRepeat: true })
})

const finished = (text: string) => text.slice(0, finishedLength(text))

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
          const length = finishedLength(rest)
          if (length > 0) pieces.push(...splitBlocks(rest.slice(0, length)))
          rest = rest.slice(length)
        }
        expect([...pieces, ...splitBlocks(rest)]).toEqual(splitBlocks(text))
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
      expect(splitBlocks(text).flatMap(kinds)).toEqual(kinds(text))
    }),
  )
})
