import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Item } from '../../../src/core/events/items.ts'
import type { LiveItem } from '../../../src/core/events/live-board.ts'
import { liveLines } from '../../../src/doors/screen/live.ts'
import { widthOf } from '../../../src/tell/words/cells.ts'
import { coloured, forReader, liveItem, NOW, plain } from './header/session.ts'
import { hostileText } from './hostile-text.ts'
import { sampleItems } from './samples.ts'
import { withoutColours } from './without-colours.ts'

const lines = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}`).join('\n\n')
const command = (name: string, output: string) =>
  liveItem({ ...sampleItems.command, command: name, status: 'running' } as Item, NOW - 42_000, output)
const message = (text: string) => liveItem(sampleItems['agent-message'], NOW, text)
const thought = (text: string) => liveItem(sampleItems.reasoning, NOW, text)

function shown(items: readonly LiveItem[], rows: number, columns = 60): string[] {
  return liveLines(items, { columns, rows, theme: plain, now: NOW }).map(line => line.trimEnd())
}

test('where there is room, all of it is there, the latest last', () => {
  expect(shown([thought('I look first.'), command('npm test', 'one\ntwo\n'), message('All is **well**.')], 10)).toEqual(
    ['I look first.', '$ npm test  0:42', '  one', '  two', '◆ All is well.'],
  )
})

test('where there is not, the latest message or command gets the most, and of the others there is a line or two', () => {
  const items = [command('make', 'a\nb\nc\nd\n'), message(lines(20)), thought('One.\nTwo.\nThree.')]
  expect(shown(items, 8)).toEqual(['$ make  0:42', '  d', '', '  line 19', '', '  line 20', 'Two.', 'Three.'])
  expect(shown(items, 3)).toEqual(['$ make  0:42', '  line 20', 'Three.'])
  expect(shown(items, 2)).toEqual(['  line 20', 'Three.'])
  expect(shown(items, 0)).toEqual([])
})

test('half of the rows are for the latest message, however much else runs', () => {
  const busy = [1, 2, 3, 4].map(i => command(`make ${i}`, 'a\nb\n'))
  expect(shown([...busy, message(lines(20))], 8)).toEqual([
    ...[1, 2, 3, 4].map(i => `$ make ${i}  0:42`),
    '',
    '  line 19',
    '',
    '  line 20',
  ])
})

test('of more than there are rows, the latest are there, and the others are counted', () => {
  const items = Array.from({ length: 9 }, (_, i) => command(`make ${i}`, ''))
  expect(shown(items, 4)).toEqual(['… 6 more running', '$ make 6  0:42', '$ make 7  0:42', '$ make 8  0:42'])
  expect(shown(items, 1)).toEqual(['$ make 8  0:42'])
})

test('the time of a command moves each second', () => {
  const later = liveLines([command('npm test', '')], { columns: 60, rows: 3, theme: plain, now: NOW + 1000 })
  expect(later).toEqual(['$ npm test  0:43'])
})

test('there are never more lines or wider ones than there is room for, and none steers the terminal', () => {
  const kinds = Object.keys(sampleItems) as Item['kind'][]
  const item = fc
    .tuple(fc.constantFrom(...kinds), hostileText, hostileText)
    .map(([kind, text, name]) =>
      liveItem(Object.assign({}, sampleItems[kind], { command: name, query: name, tool: name }), NOW, text),
    )
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 8 }),
      fc.integer({ min: 20, max: 200 }),
      fc.nat(12),
      fc.constantFrom(plain, coloured, forReader),
      (items, columns, rows, theme) => {
        const lines = liveLines(items, { columns, rows, theme, now: NOW })
        expect(lines.length).toBeLessThanOrEqual(rows)
        for (const line of lines) {
          expect(widthOf(line)).toBeLessThanOrEqual(columns)
          expect(withoutColours(line)).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
        }
      },
    ),
  )
})
