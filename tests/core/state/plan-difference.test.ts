import { expect, test } from 'vitest'
import { compareTasks, isSamePlan, type RawTasks } from '../../../src/core/state/plan-difference.ts'
import { promise } from '../../support/promise.ts'

/** Tasks as a file has them: `T1 Sing`, `T1! Sing` if it is done. */
function plan(...tasks: readonly (string | Readonly<Record<string, unknown>>)[]): RawTasks {
  return new Map(
    tasks.map(each => {
      if (typeof each !== 'string') return [String(each.id), each]
      const [head = '', ...name] = each.split(' ')
      const id = head.replace('!', '')
      return [id, { id, name: name.join(' '), done: head.endsWith('!') }]
    }),
  )
}

promise('O102', 'A change of the plan is told by tasks, and is put back over no later change')
test('a change of the plan is told task by task: new ones, other words, moved, open again, done, gone', () => {
  const before = plan('T1! Sing', 'T2 Dance', 'T3 Write the docs', 'T4 Rest')
  const after = plan('T1 Sing', 'T3 Write the manual', 'T2! Dance', 'T5 Measure')
  expect(compareTasks(before, after)).toEqual([
    { id: 'T1', name: 'Sing', how: ['reopened'] },
    { id: 'T3', name: 'Write the manual', how: ['renamed', 'moved'], was: 'Write the docs', behind: 'T1' },
    { id: 'T2', name: 'Dance', how: ['done'] },
    { id: 'T5', name: 'Measure', how: ['added'] },
    { id: 'T4', name: 'Rest', how: ['removed'] },
  ])
})

test('what else a task asks for is told by the names of its fields, in whatever order they stand', () => {
  const before = plan({ id: 'T1', name: 'Sing', done: false, details: { key: 'C', loud: true }, phase: 'Building' })
  const same = plan({ phase: 'Building', details: { loud: true, key: 'C' }, done: false, name: 'Sing', id: 'T1' })
  expect(compareTasks(before, same)).toEqual([])
  const other = plan({ id: 'T1', name: 'Sing', done: false, details: { key: 'D' }, files: ['a'], phase: 'Building' })
  expect(compareTasks(before, other)).toEqual([
    { id: 'T1', name: 'Sing', how: ['rewritten'], fields: ['details', 'files'] },
  ])
})

test('of tasks in another order the fewest are told to have moved', () => {
  const moves = (before: string, after: string) =>
    compareTasks(plan(...before.split(' ')), plan(...after.split(' '))).map(({ id, behind }) => [id, behind])
  expect(moves('A B C D', 'B C D A')).toEqual([['A', 'D']])
  expect(moves('A B C D', 'D A B C')).toEqual([['D', null]])
  expect(moves('A B C D', 'A X C B D')).toEqual([
    ['X', undefined],
    ['C', 'X'],
  ])
  expect(moves('A B C D', 'D C B A')).toHaveLength(3)
  expect(moves('A B C D', 'B D')).toEqual([
    ['A', undefined],
    ['C', undefined],
  ])
})

test('a plan is the same where only codemachine has written of its tasks: done, parked', () => {
  const before = plan('T1 Sing', 'T2! Dance')
  expect(isSamePlan(before, plan({ id: 'T1', name: 'Sing', done: false, parked: 'too hard' }, 'T2 Dance'))).toBe(true)
  expect(isSamePlan(before, plan('T2! Dance', 'T1 Sing'))).toBe(false)
  expect(isSamePlan(before, plan('T1 Sing'))).toBe(false)
})

test('two plans of as many tasks as there may be are compared in a moment', () => {
  const ids = Array.from({ length: 2_000 }, (_, index) => `T${index}`)
  const reversed = compareTasks(plan(...ids), plan(...ids.toReversed()))
  expect(reversed).toHaveLength(1_999)
})
