import { expect, test } from 'vitest'
import { TerminalOutput, TerminalRestorer } from '../../../../src/doors/screen/terminal/output.ts'
import { Screen } from './screen.ts'

function careFor(term = 'xterm-256color') {
  const screen = new Screen(80, 24)
  const output = new TerminalOutput({ stream: screen.stream, narrowing: 'breaks' })
  const done: string[] = []
  const care = new TerminalRestorer({
    output,
    term,
    writeNow: text => void done.push(text),
    rawModeOff: () => void done.push('raw mode off'),
  })
  return { screen, output, care, done }
}

test('the title is on one line, steers nothing, and is written only when it changes', async () => {
  const { screen, care } = careFor()
  care.setTitle('a\x07\x1b]0;b\nc')
  care.setTitle('a\x07\x1b]0;b\nc')
  care.setTitle('d')
  await screen.drawn()
  expect(screen.written).toBe('\x1b[22;0t\x1b]0;a␇␛]0;b ⏎ c\x07\x1b]0;d\x07')
})

test.each(['linux', 'dumb'])('a terminal of the kind %s gets no title', async term => {
  const { screen, care, done } = careFor(term)
  care.setTitle('a title')
  care.leave()
  await screen.drawn()
  expect(screen.written).toBe('')
  expect(done.join('')).not.toContain('23;0t')
})

test('only what was switched on is switched off, each screen having a keyboard mode of its own', () => {
  const { output, care, done } = careFor()
  output.write('\x1b[>1u\x1b[?1004h\x1b[<u\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[?25l')
  care.leave()
  expect(done[0]).toBe('\x1b[?2026l\x1b[0m\x1b[<u\x1b[?1049l\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h')
})

test('a terminal in which nothing was switched on keeps its keyboard mode and its screen', () => {
  const { care, done } = careFor()
  care.leave()
  expect(done).toEqual(['\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h', 'raw mode off'])
})

test('it is left once, whatever fails, and nothing is drawn after that', async () => {
  const { screen, output, care } = careFor()
  const failing = new TerminalRestorer({
    output,
    term: 'xterm',
    writeNow() {
      throw new Error('write EAGAIN')
    },
    rawModeOff() {
      throw new Error('read EIO')
    },
  })
  failing.leave()
  failing.leave()
  care.leave()
  output.write('a late frame')
  await screen.drawn()
  expect(screen.written).toBe('')
})
