import { expect, test } from 'vitest'
import type { TaskBoard } from '../../../../src/core/state/plan.ts'
import { progressOf, taskLines } from '../../../../src/doors/screen/header/tasks.ts'
import { boardNow } from '../../../../src/tell/words/plan.ts'
import * as goal from '../header/session.ts'
import { sampleEvents } from '../samples.ts'
import { ends, judged, leading, planned, starts, stateAfter, tasks } from './night.ts'

const { plain, forReader } = goal
/** What tasks.json says, with these done. */
const file = (...done: string[]): TaskBoard => ({
  title: null,
  tasks: tasks.map(task => ({ ...task, done: done.includes(task.id) })),
  current: tasks.find(({ id }) => !done.includes(id))?.id ?? null,
})

test('done is what codemachine has taken for it; what the file says beyond that is a claim', () => {
  const state = stateAfter(...planned, ...leading, judged('T1', 'done'), judged('T8', 'parked', 'It failed 5 times.'))
  const shown = boardNow(file('T1', 'T2', 'T8'), state)
  expect(shown?.tasks.map(({ done, claimed, parked }) => [done, claimed, parked])).toEqual([
    [true, undefined, undefined],
    [false, true, undefined],
    ...Array.from({ length: 5 }, () => [false, false, undefined]),
    [false, false, 'It failed 5 times.'],
  ])
  expect(shown?.current).toBe('T3')
})

test('at work is what agents have been given', () => {
  const state = stateAfter(...planned, ...leading, starts('backend-dev', 1, 'T5'))
  expect(boardNow(file(), state)?.current).toBe('T5')
})

test('while the leader looks at what was made, what comes next is shown, and nothing from before', () => {
  const ended = (agent: string, number: number) => ends(agent, number)
  const first = [...planned, ...leading, starts('backend-dev', 1, 'T1'), ended('backend-dev', 1)]
  expect(boardNow(file(), stateAfter(...first))?.current).toBe('T2')
  const second = [...first, starts('frontend-dev', 2, 'T2.1'), starts('backend-dev', 3, 'T4')]
  expect(boardNow(file(), stateAfter(...second))?.current).toBe('T2')
  const third = [...second, ended('frontend-dev', 2), ended('backend-dev', 3)]
  expect(boardNow(file('T4'), stateAfter(...third))?.current).toBe('T3')
  const all = tasks.slice(2).flatMap(({ id }, i) => [starts('qa-engineer', 10 + i, id), ends('qa-engineer', 10 + i)])
  expect(boardNow(file('T8'), stateAfter(...third, ...all))?.current).toBe('T8')
  const failed = { ...sampleEvents['round-started'], round: 3, agent: 'master-mind', part: 'orchestration' } as const
  expect(boardNow(file(), stateAfter(...third, failed))?.current, 'it is tried again').toBe('T1')
})

test('a plan that is gone from the disk is still shown, and a session that is no build as its file is', () => {
  const state = stateAfter(...planned)
  expect(boardNow(null, state)?.tasks.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id))
  expect(boardNow(goal.board, goal.stateAfter(goal.atWork))).toBe(goal.board)
})

test('the checklist tells claimed and parked tasks apart, also in words', () => {
  const state = stateAfter(...planned, ...leading, judged('T1', 'done'), judged('T8', 'parked', 'It failed 5 times.'))
  const board = boardNow(file('T1', 'T2'), state)
  const lines = (theme = plain) => taskLines({ board, plan: [] }, { columns: 80, rows: 20, theme })
  expect(lines().slice(0, 5)).toEqual([
    'Planning',
    '  ✔ T1  Choose the stack',
    'Building',
    '  ◐ T2  Create homepage component',
    '  ▸ T3  Create the cart',
  ])
  expect(lines().at(-1)).toBe('  ✘ T8  Say how it is run (parked: It failed 5 times.)')
  expect(lines(forReader)[3]).toBe('claimed: T2  Create homepage component')
  expect(progressOf(board)).toEqual(['1 of 8 tasks (1 claimed, 1 parked)', '1 of 8 tasks'])
})
