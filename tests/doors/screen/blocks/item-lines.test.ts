import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Item } from '../../../../src/core/events/items.ts'
import { liveItemLines } from '../../../../src/doors/screen/blocks/item-lines.ts'
import { hostileText } from '../hostile-text.ts'
import { sampleItems } from '../samples.ts'
import { dark, expectFitting, seen, widths, wildMarkdown } from './terminal-lines.ts'

const draw = (item: Item, text: string, { columns = 40, rows = 6 } = {}) =>
  liveItemLines({ item, text, startedAt: 0 }, { columns, theme: dark, rows, now: 42_000 })
const shown = (item: Item, text: string, rows = 6) => seen(draw(item, text, { rows }))

test('a running command is shown with its time and its newest lines', () => {
  expect(shown(sampleItems.command, 'a\nb\n\x1b[31mc\x1b[0m\n', 3)).toBe('$ npm test  0:42\n  b\n  c')
  expect(shown(sampleItems.command, 'a\nb\n', 1)).toBe('$ npm test  0:42')
  const command = 'one two three four five six seven eight nine ten'
  expect(shown({ ...sampleItems.command, command }, '')).toBe('$ one two three four five six…  0:42')
})

test('thoughts and messages are shown with their newest lines', () => {
  expect(shown(sampleItems.reasoning, '**One**\n\ntwo\nthree\nfour')).toBe('two\nthree\nfour')
  expect(shown(sampleItems['agent-message'], 'one\n\n- two\n- three', 2)).toBe('  • two\n  • three')
})

test('a thought that goes on is drawn as the Markdown that it is, as far as it has come', () => {
  expect(shown(sampleItems.reasoning, '**One**\n\n*two* and `three`\n**fo')).toBe('One\ntwo and three\n**fo')
})

test('a code block that grows is still one when its beginning is far away', () => {
  const text = `\`\`\`js\n${'# no heading\n'.repeat(2000)}`
  expect(shown(sampleItems['agent-message'], text, 2)).toBe('    # no heading\n    # no heading')
})

test('files and tools are named', () => {
  expect(shown(sampleItems['file-change'], '')).toBe('changing a.ts, b.ts, c.ts, d.ts  0:42')
  expect(shown(sampleItems['web-search'], '')).toBe('web search  vitest 5 pools  0:42')
})

test('whatever it is, it fits into the columns and rows', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(sampleItems)),
      fc.oneof(hostileText, wildMarkdown),
      fc.constantFrom(...widths),
      fc.integer({ min: 0, max: 9 }),
      (item, text, columns, rows) => {
        const wild: Item = item.kind === 'command' ? { ...item, command: text } : item
        const lines = draw(wild, text, { columns, rows })
        expectFitting(lines, columns)
        expect(lines.length).toBeLessThanOrEqual(rows)
      },
    ),
  )
})
