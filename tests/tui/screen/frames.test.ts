import { expect, test } from 'vitest'
import { atLeastAsHigh, isSame } from '../../../src/tui/screen/frame.ts'
import { indented } from '../../../src/tui/screen/screen.tsx'

const frame = { lines: ['build X', '› '], caret: { x: 2, y: 1 } }

test('where there is less to show, what is typed in stays in its row', () => {
  expect(atLeastAsHigh(frame, 4)).toEqual({ lines: ['', '', 'build X', '› '], caret: { x: 2, y: 3 } })
  expect(atLeastAsHigh(frame, 2)).toBe(frame)
  expect(atLeastAsHigh({ lines: [], caret: null }, -3)).toEqual({ lines: [], caret: null })
})

test('a frame is the same only with its caret in the same cell', () => {
  expect(isSame(frame, { ...frame, lines: [...frame.lines] })).toBe(true)
  expect(isSame(frame, { ...frame, caret: { x: 3, y: 1 } })).toBe(false)
  expect(isSame(frame, { ...frame, lines: ['build Y', '› '] })).toBe(false)
})

test('what is broken into rows stays under where its words began', () => {
  expect(indented('ok     git     it is there, and new enough', 32)).toEqual([
    'ok     git     it is there, and',
    '               new enough',
  ])
  expect(indented('  - one two three', 10)).toEqual(['  - one', '    two', '    three'])
  expect(indented('no indent at all', 9)).toEqual(['no indent', 'at all'])
})
