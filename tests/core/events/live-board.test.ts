import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LiveEvent } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import { LiveBoard } from '../../../src/core/events/live-board.ts'
import { recorded, sampleEvents, sampleItems } from '../../doors/screen/samples.ts'

const command: Item = { ...sampleItems.command, id: 'c1', status: 'running', output: '' }
const message: Item = { ...sampleItems['agent-message'], id: 'm1', text: '' }
const started = (item: Item): LiveEvent => ({ type: 'item-started', round: 1, item })
const output = (text: string, item = 'c1'): LiveEvent => ({ type: 'output-delta', round: 1, item, text })
const words = (text: string, item = 'm1', source: 'agent-message' | 'reasoning' | 'plan' = 'agent-message') =>
  ({ type: 'text-delta', round: 1, item, source, text }) as const

function boardAfter(events: readonly LiveEvent[]): LiveBoard {
  const board = new LiveBoard()
  for (const [i, event] of events.entries()) board.live(event, 1000 + i)
  return board
}

function completed(board: LiveBoard, item: Item): void {
  for (const event of recorded([{ type: 'item-completed', round: 1, item }])) board.event(event)
}

test('what codex does is there from its start to its end, each with its own words', () => {
  const board = boardAfter([
    started(message),
    started(command),
    words('All '),
    output('one\n'),
    words('is'),
    output('two\n'),
  ])
  expect(board.items).toMatchObject([
    { item: message, startedAt: 1000, text: 'All is', dropped: 0 },
    { item: command, startedAt: 1001, text: 'one\ntwo\n', dropped: 0 },
  ])
  completed(board, message)
  expect(board.items.map(({ item }) => item.id)).toEqual(['c1'])
  completed(board, command)
  expect(board.items).toEqual([])
})

test('what a person has typed is not something that codex does', () => {
  expect(boardAfter([started(sampleItems['user-message'])]).items).toEqual([])
})

test('one who came too late to see it start sees it go on, and learns later what it is', () => {
  const board = boardAfter([words('Hm', 'r1', 'reasoning'), output('ok')])
  expect(board.items).toMatchObject([
    { item: { kind: 'reasoning', id: 'r1' }, text: 'Hm' },
    { item: { kind: 'command', id: 'c1', command: '' }, text: 'ok' },
  ])
  board.live(started(command), 2000)
  expect(board.items).toMatchObject([{}, { item: command, startedAt: 1001, text: 'ok' }])
})

test('words that come after the end bring nothing back', () => {
  const board = boardAfter([started(command)])
  completed(board, command)
  const { revision } = board
  board.live(output('late'), 3000)
  expect([board.items, board.revision]).toEqual([[], revision])
})

test.each([
  'round-ended',
  'review-started',
  'review-ended',
  'session-ended',
  'turn-continued',
  'round-started',
  'session-resumed',
] as const)('nothing goes on after %s', type => {
  const board = boardAfter([started(command), started(message)])
  completed(board, command)
  for (const event of recorded([sampleEvents[type]])) board.event(event)
  expect(board.items).toEqual([])
  board.live(started(command), 3000)
  board.live(output('of the next round'), 3000)
  expect(board.items).toMatchObject([{ item: { id: 'c1' }, text: 'of the next round' }])
})

test('the revision tells whether anything has changed, and the items stay the same object until one comes or goes', () => {
  const board = boardAfter([started(command)])
  const { revision, items } = board
  for (const event of recorded([sampleEvents.usage])) board.event(event)
  board.live({ type: 'still-waiting', leftMs: 1 }, 1)
  board.live(output(''), 1)
  expect(board.revision).toBe(revision)
  board.live(output('x'), 1)
  expect(board.revision).toBeGreaterThan(revision)
  expect(board.items).toBe(items)
})

test('of a message the first 64 Ki characters are there, of an output the last 16 Ki, however they come', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.nat(30_000).map(length => 'x'.repeat(length)),
    ),
    {
      maxLength: 12,
    },
  )
  fc.assert(
    fc.property(pieces, pieces => {
      const all = pieces.join('')
      const board = boardAfter([started(message), started(command), ...pieces.flatMap(p => [words(p), output(p)])])
      expect(board.items).toMatchObject([
        { text: all.slice(0, 65_536), dropped: Math.max(0, all.length - 65_536) },
        { text: all.slice(-16_384), dropped: Math.max(0, all.length - 16_384) },
      ])
    }),
  )
})

test('what is kept begins and ends with whole characters', () => {
  const all = `${'🙂'.repeat(32_767)}x🙂${'🙂'.repeat(8_191)}x`
  const board = boardAfter([started(message), started(command), words(all), output(all)])
  expect(board.items.map(({ text }) => text.isWellFormed())).toEqual([true, true])
  expect(board.items.map(({ text, dropped }) => text.length + dropped)).toEqual([all.length, all.length])
})

test('what comes after a gap is not put behind what came before it', () => {
  const board = boardAfter([started(message), words(`${'x'.repeat(65_535)}🙂`), words('y')])
  expect(board.items).toMatchObject([{ text: 'x'.repeat(65_535), dropped: 3 }])
})

test('what an agent was saying when a person told it something is dropped, and nothing of the others', () => {
  const board = new LiveBoard()
  const says = (item: string, instance?: string) =>
    ({
      type: 'text-delta',
      round: 1,
      item,
      source: 'agent-message',
      text: 'And',
      ...(instance && { instance }),
    }) as const
  for (const event of [says('m'), says('m', 'a-1'), says('m', 'b-1')]) board.live(event, 0)
  const steered = { type: 'steered', round: 1, text: 'x', delivered: true } as const
  for (const event of recorded([{ ...steered, agent: 'a-1' }])) board.event(event)
  expect(board.items.map(({ instance }) => instance)).toEqual([undefined, 'b-1'])
  for (const event of recorded([steered])) board.event(event)
  expect(board.items.map(({ instance }) => instance)).toEqual(['b-1'])
})
