import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { TaskBoard } from '../../../../src/core/state/plan.ts'
import { estimatedLeft, progressOf } from '../../../../src/doors/screen/header/tasks.ts'
import { sampleEvents } from '../samples.ts'
import { BEGIN, stateAfter } from './session.ts'

const HOUR = 3_600_000
const { 'round-started': started, 'round-ended': ended, waiting } = sampleEvents
const rounds = (count: number): SessionEvent[] => Array.from({ length: count }, () => [started, ended]).flat()

function tasks(done: number, total: number): TaskBoard {
  const all = Array.from({ length: total }, (_, i) => ({ id: `T${i}`, name: 'a', phase: null, done: i < done }))
  return { title: null, tasks: all, current: null }
}

/** The estimate of a session that has been worked on for two hours. */
function left(events: readonly SessionEvent[], board: TaskBoard | null): string | null {
  return estimatedLeft(stateAfter(events), { board, own: null }, BEGIN + 2 * HOUR)
}

test('how many tasks are done; before there are tasks, nothing', () => {
  expect([progressOf(null), progressOf(tasks(0, 0))]).toEqual([null, null])
  expect(progressOf(tasks(999, 1_000))?.[0]).toBe('999 of 1,000 tasks')
  expect(progressOf(tasks(1, 1))?.[0]).toBe('1 of 1 task')
})

test('once three rounds have counted, how long the rest will take', () => {
  expect(left(rounds(2), tasks(7, 15))).toBe(null)
  expect(left(rounds(3), tasks(7, 15))).toBe('about 2 h 15 min left')
})

test('rounds that did not count tell nothing', () => {
  const idle = rounds(4).map(event => (event.type === 'round-ended' ? { ...event, counts: false } : event))
  expect(left(idle, tasks(7, 15))).toBe(null)
})

test.each<[string, SessionEvent[], TaskBoard]>([
  ['nothing is done yet', [], tasks(0, 15)],
  ['all is done', [], tasks(15, 15)],
  ['it waits', [waiting], tasks(7, 15)],
  ['it is over', [sampleEvents['session-ended']], tasks(7, 15)],
])('there is no telling if %s', (_why, more, board) => {
  expect(left([...rounds(3), ...more], board)).toBe(null)
})

test('time for which it was held is no time that it was worked on', () => {
  expect(left([...rounds(3), sampleEvents.paused], tasks(7, 15))).toBe('less than 5 min left')
})
