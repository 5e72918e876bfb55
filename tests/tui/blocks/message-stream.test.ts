import fc from 'fast-check'
import { expect, test } from 'vitest'
import { finishedPart, MessageStream } from '../../../src/tui/blocks/message-stream.ts'
import { hostileText } from '../hostile-text.ts'

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
  expect(stream.end('One.\n\nTwo.')).toEqual({ markdown: 'Two.', isAgain: false })
})

test('nothing is printed twice and no character is lost, wherever the pieces end', () => {
  fc.assert(
    fc.property(cutText, ([text, cuts]) => {
      const { stream, printed } = streamed(text, cuts)
      expect(stream.end(text)).toEqual({ markdown: text.slice(printed.length), isAgain: false })
    }),
    { numRuns: 500 },
  )
})

test('what is printed early are whole blocks: the rest does not change them', () => {
  fc.assert(
    fc.property(cutText, ([text, cuts]) => {
      const { printed } = streamed(text, cuts)
      expect(finishedPart(text)).toBeGreaterThanOrEqual(printed.length)
    }),
    { numRuns: 500 },
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
    isAgain: true,
  })
})

test('where nothing is printed yet, there is no again', () => {
  const stream = new MessageStream()
  stream.advance('hunter2')
  expect(stream.end('[secret KEY]')).toEqual({ markdown: '[secret KEY]', isAgain: false })
})

test('white space at the end of a block that came out otherwise is no reason to print it again', () => {
  const streamOf = () => {
    const stream = new MessageStream()
    stream.advance('One.\n\n\nTwo')
    return stream
  }
  expect(streamOf().end('One.')).toEqual({ markdown: '', isAgain: false })
  expect(streamOf().end('One.\n\nTwo')).toEqual({ markdown: '\n\nTwo', isAgain: false })
  expect(streamOf().end('Uno.\n\nTwo')).toEqual({ markdown: 'Uno.\n\nTwo', isAgain: true })
  expect(streamOf().end('One.x')).toEqual({ markdown: 'One.x', isAgain: true })
})
