import { expect, test } from 'vitest'
import { Scrollback } from '../../../../src/doors/screen/screen/session-pane.ts'

test('what is finished is handed out once, as whole lines', () => {
  const scrollback = new Scrollback()
  expect(scrollback.isEmpty).toBe(true)
  scrollback.add(['one', ''])
  scrollback.add(['two'])
  expect(scrollback.take()).toBe('one\n\ntwo\n')
  expect(scrollback.isEmpty).toBe(true)
  expect(scrollback.take()).toBe('')
})

test('what waits for an editor to end is bounded, and it says how much is left out', () => {
  const scrollback = new Scrollback()
  for (let at = 1; at <= 12_000; at++) scrollback.add([`line ${at}`])
  const lines = scrollback.take().split('\n')
  expect(lines[0]).toBe('[… 7,000 lines more, in the log]')
  expect(lines[1]).toBe('line 7001')
  expect(lines.at(-2)).toBe('line 12000')
  expect(scrollback.take()).toBe('')
})
