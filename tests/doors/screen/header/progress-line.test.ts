import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { TaskBoard } from '../../../../src/core/state/plan.ts'
import { progressLine } from '../../../../src/doors/screen/header/tasks.ts'
import type { Theme } from '../../../../src/doors/screen/terminal/theme.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { sampleEvents } from '../samples.ts'
import { BEGIN, coloured, forReader, plain, stateAfter } from './session.ts'

const HOUR = 3_600_000
const { 'round-started': started, 'round-ended': ended, waiting } = sampleEvents
const rounds = (count: number): SessionEvent[] => Array.from({ length: count }, () => [started, ended]).flat()

function tasks(done: number, total: number): TaskBoard {
  const all = Array.from({ length: total }, (_, i) => ({ id: `T${i}`, name: 'a', phase: null, done: i < done }))
  return { title: null, tasks: all, current: null }
}

/** The line of a session that has been worked on for two hours. */
function line(
  events: readonly SessionEvent[],
  board: TaskBoard | null,
  { columns = 80, theme = plain }: { columns?: number; theme?: Theme } = {},
): string | null {
  return progressLine({ state: stateAfter(events), board }, { columns, theme, now: BEGIN + 2 * HOUR })
}

test('before there are tasks there is no line', () => {
  expect([line(rounds(4), null), line(rounds(4), tasks(0, 0))]).toEqual([null, null])
})

test('how many tasks are done, and once three rounds have counted, how long the rest will take', () => {
  expect(line(rounds(2), tasks(7, 15))).toBe('▓▓▓▓▓▓▓▓▓░░░░░░░░░░░ 7/15 tasks')
  expect(line(rounds(3), tasks(7, 15))).toBe('▓▓▓▓▓▓▓▓▓░░░░░░░░░░░ 7/15 tasks · about 2 h 15 min left')
  expect(line(rounds(3), tasks(7, 15), { theme: forReader })).toBe('7 of 15 tasks done, about 2 h 15 min left')
})

test('rounds that did not count tell nothing', () => {
  const idle = rounds(4).map(event => (event.type === 'round-ended' ? { ...event, counts: false } : event))
  expect(line(idle, tasks(7, 15))).not.toContain('left')
})

test.each<[string, SessionEvent[], TaskBoard]>([
  ['nothing is done yet', [], tasks(0, 15)],
  ['all is done', [], tasks(15, 15)],
  ['it waits', [waiting], tasks(7, 15)],
  ['it is over', [sampleEvents['session-ended']], tasks(7, 15)],
])('there is no telling if %s', (_why, more, board) => {
  expect(line([...rounds(3), ...more], board)).not.toContain('left')
})

test('time for which it was held is no time that it was worked on', () => {
  const held = [...rounds(3), sampleEvents.paused]
  expect(line(held, tasks(7, 15))).toContain('· less than 5 min left')
})

test('on a narrow terminal the estimate goes first, then the bar', () => {
  expect(line(rounds(3), tasks(7, 15), { columns: 40 })).toBe('▓▓░░░ 7/15 tasks · about 2 h 15 min left')
  expect(line(rounds(3), tasks(7, 15), { columns: 39 })).toBe('▓▓▓▓▓▓▓▓▓░░░░░░░░░░░ 7/15 tasks')
  expect(line(rounds(3), tasks(7, 15), { columns: 15 })).toBe('7/15 tasks')
  expect(line(rounds(3), tasks(7, 15), { columns: 8 })).toBe('7/15 ta…')
})

test('the bar is full when all is done, and not before', () => {
  expect(line([], tasks(999, 1000))).toBe(`${'▓'.repeat(19)}░ 999/1,000 tasks`)
  expect(line([], tasks(1, 1))).toBe(`${'▓'.repeat(20)} 1/1 task`)
})

test('it is never wider than the terminal', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.nat(300),
      fc.nat(300),
      fc.constantFrom(plain, coloured, forReader),
      (columns, done, left, theme) => {
        const shown = line(rounds(3), tasks(done, done + left + 1), { columns, theme })
        expect(widthOf(shown ?? '')).toBeLessThanOrEqual(columns)
      },
    ),
  )
})
