import { expect, test } from 'vitest'
import {
  openPicker,
  type Picker,
  type PickerQuestion,
  type PickerResult,
  pickerKey,
  pickerLines,
  pickerPaste,
} from '../../../../src/doors/screen/composer/picker.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { keyNamed, PLAIN_THEME as theme } from './press.ts'

const AREA = { columns: 40, maxRows: 9, theme }

const QUESTION: PickerQuestion = {
  title: 'The turn is interrupted.',
  body: ['It was at work on T2.'],
  options: [
    { id: 'go-on', label: 'Go on' },
    { id: 'skip', label: 'Skip to the next', hint: '2 wait' },
    { id: 'stop', label: 'Stop' },
  ],
  freeText: 'Tell it something…',
}

function answer(question: PickerQuestion, ...chords: string[]): { picker: Picker; result: PickerResult | null } {
  return chords.reduce<{ picker: Picker; result: PickerResult | null }>(
    ({ picker }, chord) => pickerKey(picker, keyNamed(chord), AREA),
    { picker: openPicker(question), result: null },
  )
}

function shown(picker: Picker, columns = 40, maxRows = 9): string[] {
  const { lines, caret } = pickerLines(picker, { columns, maxRows, theme })
  for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
  expect(lines.length).toBeLessThanOrEqual(maxRows)
  if (caret === null) return lines
  const line = lines[caret.y] ?? ''
  return lines.with(caret.y, `${line.slice(0, caret.x)}|${line.slice(caret.x)}`)
}

test('an option is chosen with Enter, and reached with the arrows or by its number', () => {
  expect(answer(QUESTION, 'down', 'return').result).toEqual({ kind: 'chosen', id: 'skip' })
  expect(answer(QUESTION, 'up', 'up', 'return').result).toEqual({ kind: 'chosen', id: 'stop' })
  expect(answer(QUESTION, '3').result).toEqual({ kind: 'chosen', id: 'stop' })
  expect(answer(QUESTION, '9').result).toBeNull()
  expect(answer(QUESTION, 'escape').result).toEqual({ kind: 'closed' })
})

test('a digit only selects what is to be confirmed with Enter', () => {
  const question = { ...QUESTION, options: QUESTION.options.map(each => ({ ...each, confirms: true as const })) }
  expect(answer(question, '3').result).toBeNull()
  expect(answer(question, '3', 'return').result).toEqual({ kind: 'chosen', id: 'stop' })
})

test('d and Delete remove an option that stands for what can be removed', () => {
  const options = QUESTION.options.map(each => (each.id === 'skip' ? { ...each, removes: true as const } : each))
  const question = { title: 'Two wait.', options, at: 1 }
  expect(answer(question, 'd').result).toEqual({ kind: 'removed', id: 'skip' })
  expect(answer(question, 'delete').result).toEqual({ kind: 'removed', id: 'skip' })
  expect(answer(question, 'up', 'd').result).toBeNull()
  expect(answer({ ...question, freeText: 'Tell it', at: 0 }, 'd').picker.writing).toBe(true)
})

test('an answer of one’s own is written by typing it, or by choosing to', () => {
  expect(answer(QUESTION, 'n', 'o', 'return').result).toEqual({ kind: 'text', text: 'no' })
  expect(answer(QUESTION, '4', 'return', '1', 'shift+return', '2', 'return').result).toEqual({
    kind: 'text',
    text: '1\n2',
  })
  expect(answer(QUESTION, 'up', 'return', ' ', 'return').result).toBeNull()
})

test('Escape in the text goes back to the options and keeps what was written', () => {
  const { picker } = answer(QUESTION, 'n', 'o', 'escape')
  expect(shown(picker).at(-1)).toBe('❯ 4. Tell it something… no')
  expect(pickerKey(picker, keyNamed('escape'), AREA).result).toEqual({ kind: 'closed' })
  const again = pickerKey(picker, keyNamed('return'), AREA).picker
  expect(pickerKey(again, keyNamed('return'), AREA).result).toEqual({ kind: 'text', text: 'no' })
})

test('up from the text chooses among the options again', () => {
  expect(answer(QUESTION, 'x', 'up', 'return').result).toEqual({ kind: 'chosen', id: 'stop' })
})

test('where nothing may be written letters do nothing', () => {
  const { title, options } = QUESTION
  expect(answer({ title, options }, 'x', 'return').result).toEqual({ kind: 'chosen', id: 'go-on' })
  expect(pickerPaste(openPicker({ title, options }), 'x').writing).toBe(false)
})

test('a question without options is answered in writing', () => {
  const question = { title: 'Do you want to modify the plan?', options: [], freeText: 'Say how' }
  expect(answer(question, '1', 'return').result).toEqual({ kind: 'text', text: '1' })
  expect(answer(question, 'up', 'backspace', 'x', 'escape').result).toEqual({ kind: 'closed' })
})

test('a pasted log is an answer in full', () => {
  const picker = pickerPaste(openPicker(QUESTION), 'line\n'.repeat(40))
  expect(shown(picker).at(-1)).toBe('  › [40 lines pasted]|')
  expect(pickerKey(picker, keyNamed('return'), AREA).result).toEqual({ kind: 'text', text: 'line\n'.repeat(40) })
})

test('title, body and choices are shown with the chosen one marked', () => {
  expect(shown(answer(QUESTION, 'down').picker)).toEqual([
    'The turn is interrupted.',
    'It was at work on T2.',
    '  1. Go on',
    '❯ 2. Skip to the next  2 wait',
    '  3. Stop',
    '  4. Tell it something…',
  ])
})

test('more options than rows scroll with the chosen one', () => {
  const options = Array.from({ length: 20 }, (_, index) => ({ id: `${index}`, label: `Answer ${index}` }))
  const { picker } = answer({ title: 'Which one?', options }, ...Array<string>(10).fill('down'))
  expect(shown(picker, 20, 4)).toEqual(['Which one?', '↑    Answer 9', '❯    Answer 10', '↓    Answer 11'])
  expect(shown(picker, 20, 1)).toEqual(['❯    Answer 10'])
})

test('what does not fit into the rows is left out, the body first', () => {
  const question = { ...QUESTION, body: ['one', 'two', 'three', 'four', 'five'] }
  const { picker } = answer(question, 'o', 'k')
  expect(shown(picker, 40, 8)).toEqual([
    'The turn is interrupted.',
    'one',
    '…',
    '  1. Go on',
    '  2. Skip to the next  2 wait',
    '  3. Stop',
    '❯ 4. Tell it something…',
    '  › ok|',
  ])
  expect(shown(picker, 40, 3)).toEqual(['The turn is interrupted.', '❯ 4. Tell it something…', '  › ok|'])
  expect(shown(picker, 40, 1)).toEqual(['  › ok|'])
})

test('a hostile question steers nothing', () => {
  const picker = openPicker({
    title: '\x1b[2Jtitle',
    body: ['a\x9b1m\u202eb'],
    options: [{ id: 'x', label: 'l\x07\nabel', hint: '\x1b]0;' }],
  })
  expect(shown(picker)).toEqual(['␛[2Jtitle', 'a<U+009B>1m<U+202E>b', '❯ 1. l␇ ⏎ abel  ␛]0;'])
})
