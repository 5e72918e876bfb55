import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  bufferOf,
  cleared,
  draftOf,
  EMPTY_BUFFER,
  expanded,
  paste,
  type TextBuffer,
  type,
} from '../../../../src/doors/screen/composer/buffer.ts'
import { editKey } from '../../../../src/doors/screen/composer/keys.ts'
import { graphemesOf } from '../../../../src/doors/screen/composer/text.ts'
import { cpuMs } from '../../../support/cpu-time.ts'
import { keyNamed } from './press.ts'

const COLUMNS = 12

function after(buffer: TextBuffer, ...chords: string[]): TextBuffer {
  return chords.reduce((each, chord) => editKey(each, keyNamed(chord), COLUMNS) ?? each, buffer)
}

function typed(text: string): TextBuffer {
  return type(EMPTY_BUFFER, text)
}

/** The text with a bar where the caret is. */
function shown({ text: { lines, row, column } }: TextBuffer): string {
  return lines.with(row, `${lines[row]?.slice(0, column)}|${lines[row]?.slice(column)}`).join('\n')
}

/** The same edits on an array of characters. */
interface Model {
  before: string[]
  after: string[]
}

const MODEL: Record<string, (model: Model) => Model> = {
  left: ({ before, after }) => ({ before: before.slice(0, -1), after: [...before.slice(-1), ...after] }),
  right: ({ before, after }) => ({ before: [...before, ...after.slice(0, 1)], after: after.slice(1) }),
  backspace: ({ before, after }) => ({ before: before.slice(0, -1), after }),
  delete: ({ before, after }) => ({ before, after: after.slice(1) }),
  'ctrl+a': ({ before, after }) => {
    const start = before.lastIndexOf('\n') + 1
    return { before: before.slice(0, start), after: [...before.slice(start), ...after] }
  },
  'ctrl+k': ({ before, after }) => {
    const end = after.indexOf('\n')
    return { before, after: end === -1 ? [] : after.slice(Math.max(1, end)) }
  },
  'ctrl+j': ({ before, after }) => ({ before: [...before, '\n'], after }),
}

const CHARACTERS = ['a', 'b', ' ', '世', '👩‍👩‍👧', 'é', '🇨🇭', '\u202e', '\t']

test('moves, erasing and killing do to a text what they do to a row of characters', () => {
  const edits = fc.array(fc.constantFrom(...CHARACTERS, ...Object.keys(MODEL)), { maxLength: 60 })
  fc.assert(
    fc.property(edits, sequence => {
      let buffer = EMPTY_BUFFER
      let model: Model = { before: [], after: [] }
      for (const edit of sequence) {
        const onModel = MODEL[edit]
        buffer = onModel === undefined ? type(buffer, edit) : after(buffer, edit)
        model = onModel === undefined ? { ...model, before: [...model.before, edit] } : onModel(model)
        // Two flags or marks side by side may be other characters than they were apart.
        model = { before: joined(model.before), after: joined(model.after) }
      }
      expect(shown(buffer)).toBe(`${model.before.join('')}|${model.after.join('')}`)
    }),
  )
})

function joined(characters: string[]): string[] {
  return characters
    .join('')
    .split(/(\n)/)
    .flatMap(piece => (piece === '\n' ? piece : [...graphemesOf(piece)]))
}

const KEYS =
  'left right home end up down backspace delete ctrl+w ctrl+u ctrl+k ctrl+y alt+y alt+b alt+f alt+d ctrl+_ ctrl+j'.split(
    ' ',
  )
const PIECE = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constant('x\n'.repeat(12)),
  fc.constant('y'.repeat(2_001)),
)

test('whatever is typed, pasted and pressed, the caret stays in the text and between two characters', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.tuple(fc.constantFrom('key'), fc.constantFrom(...KEYS)),
          fc.tuple(fc.constantFrom('type', 'paste'), PIECE),
        ),
        {
          maxLength: 40,
        },
      ),
      steps => {
        let buffer = EMPTY_BUFFER
        for (const [kind, what] of steps) {
          if (kind === 'key') buffer = after(buffer, what)
          else buffer = kind === 'type' ? type(buffer, what) : paste(buffer, what)
          const { lines, row, column } = buffer.text
          const line = lines[row] ?? 'no such line'
          expect(lines.join('\n').split('\n')).toEqual(lines)
          let end = 0
          for (const grapheme of graphemesOf(line)) if (end < column) end += grapheme.length
          expect(end).toBe(column)
        }
      },
    ),
  )
})

test('what was pasted is sent as it came, control characters apart, wherever else was written', () => {
  const texts = fc.array(fc.tuple(fc.constantFrom('type', 'paste'), PIECE), { maxLength: 12 })
  fc.assert(
    fc.property(texts, pieces => {
      const buffer = pieces.reduce(
        (each, [kind, text]) => (kind === 'type' ? type(each, text) : paste(each, text)),
        EMPTY_BUFFER,
      )
      const sent = pieces.map(([, text]) =>
        text
          .replace(/\r\n?/g, '\n')
          .toWellFormed()
          .replace(/[^\n\t\P{Cc}]/gu, ''),
      )
      expect(expanded(buffer)).toBe(sent.join(''))
    }),
  )
})

test('a draft that went through a file is the same text with the caret in the same place', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('type', 'paste'), PIECE), { maxLength: 8 }),
      fc.nat(12),
      (pieces, moves) => {
        let buffer = pieces.reduce(
          (each, [kind, text]) => (kind === 'type' ? type(each, text) : paste(each, text)),
          EMPTY_BUFFER,
        )
        buffer = after(buffer, ...Array.from({ length: moves }, () => 'left'))
        const restored = bufferOf(JSON.parse(JSON.stringify(draftOf(buffer))))
        expect(expanded(restored)).toBe(expanded(buffer))
        expect(labelled(restored)).toBe(labelled(buffer))
      },
    ),
  )
})

function labelled(buffer: TextBuffer): string {
  return [...shown(buffer)].map(each => buffer.chips.get(each)?.label ?? each).join('')
}

test('a draft of a file that somebody changed puts the caret somewhere into the text', () => {
  expect(shown(bufferOf({ parts: ['ab'], caret: 99 }))).toBe('ab|')
  expect(shown(bufferOf({ parts: ['ab'], caret: -1 }))).toBe('|ab')
  expect(shown(bufferOf({ parts: ['é'], caret: 1 }))).toBe('é|')
  expect(shown(bufferOf({ parts: [{ pasted: 'short' }], caret: 0 }))).toBe('|short')
})

test('Ctrl+W takes a word with its punctuation, Alt+Backspace only its letters', () => {
  expect(shown(after(typed('run src/ui.ts'), 'ctrl+w'))).toBe('run |')
  expect(shown(after(typed('run src/ui.ts'), 'alt+backspace'))).toBe('run src/ui.|')
  expect(shown(after(typed('one\ntwo'), 'home', 'ctrl+w'))).toBe('|two')
})

test('words are moved over forwards and backwards, from line to line', () => {
  expect(shown(after(typed('one two\nthree'), 'alt+b', 'alt+b'))).toBe('one |two\nthree')
  expect(shown(after(typed('one two\nthree'), 'alt+b', 'alt+b', 'alt+f', 'ctrl+right'))).toBe('one two\nthree|')
  expect(shown(after(typed('one two'), 'ctrl+left', 'alt+d'))).toBe('one |')
})

test('kills that follow each other come back as one, others one by one with Alt+Y', () => {
  const killed = after(typed('one two three'), 'ctrl+w', 'ctrl+w')
  expect(shown(after(killed, 'ctrl+y'))).toBe('one two three|')
  const twice = after(killed, 'ctrl+a', 'ctrl+k')
  expect(shown(after(twice, 'ctrl+y'))).toBe('one |')
  expect(shown(after(twice, 'ctrl+y', 'alt+y'))).toBe('two three|')
  expect(shown(after(twice, 'ctrl+y', 'alt+y', 'alt+y'))).toBe('one |')
  expect(shown(after(twice, 'alt+y'))).toBe('|')
})

test('a kill backwards and one forwards around the caret join in the order of the text', () => {
  expect(shown(after(typed('one two'), 'left', 'left', 'left', 'ctrl+u', 'ctrl+k', 'ctrl+y'))).toBe('one two|')
})

test('Ctrl+K at the end of a line and Ctrl+U at its start take the newline', () => {
  expect(shown(after(typed('one\ntwo'), 'ctrl+u', 'ctrl+u'))).toBe('one|')
  expect(shown(after(typed('one\ntwo'), 'up', 'end', 'ctrl+k'))).toBe('one|two')
})

test('undo takes back typing word by word, and every other edit by itself', () => {
  const words = [...'one two'].reduce(type, EMPTY_BUFFER)
  expect(shown(after(words, 'ctrl+_'))).toBe('one |')
  expect(shown(after(words, 'ctrl+_', 'ctrl+_'))).toBe('|')
  expect(shown(after(words, 'ctrl+w', 'ctrl+_'))).toBe('one two|')
  expect(shown(after(words, 'backspace', 'backspace', 'ctrl+_'))).toBe('one two|')
  expect(shown(after(words, ...Array<string>(9).fill('ctrl+_')))).toBe('|')
})

test('up and down go by rows of the screen and keep to their column over a short row', () => {
  const text = typed('a long line of words\nb\nlast line')
  expect(shown(after(text, 'up'))).toBe('a long line of words\nb|\nlast line')
  expect(shown(after(text, 'up', 'up'))).toBe('a long line of words|\nb\nlast line')
  expect(shown(after(text, 'up', 'up', 'up'))).toBe('a long li|ne of words\nb\nlast line')
  expect(shown(after(text, 'up', 'up', 'up', 'down', 'down', 'down'))).toBe('a long line of words\nb\nlast line|')
})

test('up from below the end of a row that goes on in the next one leads into that row', () => {
  expect(shown(after(typed('hi wonderfull'), 'up'))).toBe('hi| wonderfull')
})

test('a mark that is written behind a chip is no part of it', () => {
  const marked = type(paste(EMPTY_BUFFER, 'x\n'.repeat(11)), '\u0301')
  expect(labelled(after(marked, 'backspace'))).toBe('[11 lines pasted]|')
})

test('a large paste is one thing: moved over, taken away and brought back as a whole', () => {
  const pasted = 'line\n'.repeat(312)
  const buffer = after(type(paste(typed('see '), pasted), ' now'), 'left', 'left', 'left', 'left', 'left')
  expect(labelled(buffer)).toBe('see |[312 lines pasted] now')
  expect(labelled(after(buffer, 'right'))).toBe('see [312 lines pasted]| now')
  const without = after(buffer, 'delete')
  expect(expanded(without)).toBe('see  now')
  expect(expanded(after(without, 'ctrl+_'))).toBe(`see ${pasted} now`)
  expect(labelled(after(buffer, 'right', 'alt+b', 'alt+f'))).toBe('see [312 lines pasted]| now')
})

test('a long line is counted in characters, and a small paste is text', () => {
  expect(labelled(paste(EMPTY_BUFFER, 'x'.repeat(48_213)))).toBe('[48,213 characters pasted]|')
  expect(labelled(paste(EMPTY_BUFFER, 'one\r\ntwo\x1b[31m\0\ud800'))).toBe('one\ntwo[31m\ufffd|')
  expect(labelled(paste(EMPTY_BUFFER, 'x\n'.repeat(10)))).toBe(`${'x\n'.repeat(10)}|`)
})

test('a killed chip can be yanked into the next text', () => {
  const pasted = 'line\n'.repeat(11)
  const next = cleared(after(paste(EMPTY_BUFFER, pasted), 'ctrl+u'))
  expect(expanded(after(next, 'ctrl+y'))).toBe(pasted)
  expect(cleared(paste(EMPTY_BUFFER, pasted)).chips.size).toBe(0)
})

test('10 MB are pasted, read and sent within a second', () => {
  const huge = 'some text of a log line\r\n'.repeat(420_000)
  const start = cpuMs()
  const buffer = type(paste(EMPTY_BUFFER, huge), 'x')
  expect(labelled(after(buffer, 'left'))).toBe('[420,000 lines pasted]|x')
  expect(expanded(buffer)).toHaveLength(huge.length - 420_000 + 1)
  expect(cpuMs() - start).toBeLessThan(1_000)
})
