import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { TerminalOutput } from '../../../../src/doors/screen/terminal/output.ts'

const BEGIN = '\x1b[?2026h'
const END = '\x1b[?2026l'

function open() {
  const writes: string[] = []
  const stream = Object.assign(
    new Writable({
      decodeStrings: false,
      write(text, _, done) {
        writes.push(String(text))
        done()
      },
    }),
    { isTTY: true, columns: 80, rows: 24 },
  )
  return { writes, stream, output: new TerminalOutput({ stream, narrowing: 'breaks' }) }
}

test('what is printed waits for the frame that belongs to it, and both are one update', async () => {
  const { writes, output } = open()
  output.hold()
  output.write(`${BEGIN}printed${END}`)
  const { promise, resolve } = Promise.withResolvers<void>()
  output.write('frame', () => resolve())
  output.hold()
  expect(writes).toEqual([])
  output.frameDrawn()
  await promise
  expect(writes).toEqual([`${BEGIN}printedframe${END}`])
  output.write('more')
  expect(writes.at(-1)).toBe('more')
})

test('whoever waits for something that was kept back is told also when there is nothing to write', async () => {
  const { writes, output } = open()
  output.hold()
  const { promise, resolve } = Promise.withResolvers<void>()
  output.write('', () => resolve())
  output.release()
  await promise
  expect(writes).toEqual([])
})

test('what is kept back when the program falls is written before the terminal is restored', () => {
  const { writes, output } = open()
  output.hold()
  output.write('last words')
  expect(output.restoreSequence()).toMatch(/^last words/)
  output.release()
  expect(writes).toEqual([])
})

test('what is kept back when the window changes its size comes before anything is drawn for the new one', () => {
  const { writes, stream, output } = open()
  output.on('resize', () => output.write('new frame'))
  output.setFrame(['─'.repeat(80), '> '], { x: 2, y: 1 })
  output.frameDrawn()
  output.hold()
  output.write('printed')
  stream.columns = 40
  stream.emit('resize')
  const erased = '\x1b[1A\r\x1b[K\x1b[2G\x1b[J\r'
  expect(writes).toEqual([erased, `${BEGIN}printed${END}`, erased, 'new frame'])
})
