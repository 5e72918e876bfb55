import { describe, expect, test } from 'vitest'
import {
  countFailure,
  countTasks,
  emptyPlan,
  isHeldToAllGates,
  type PlanTask,
  tasksNamed,
} from '../../../src/core/state/plan.ts'

const taskNamed = (id: string): PlanTask => ({
  id,
  name: 'x',
  phase: null,
  wasMovedFromGates: false,
  done: false,
  failures: 2,
  failedIn: 7,
  parked: null,
  workedIn: 0,
  givenTo: {},
})

describe('a request is about the tasks that it names at its beginning', () => {
  const plan = Array.from({ length: 12 }, (_, i) => taskNamed(`T${i + 1}`))
  const eleven = plan.slice(0, 11).map(({ id }) => id)
  test.each<[string, readonly string[]]>([
    ['T1: Go.', ['T1']],
    ['T2, T3.1: Go.', ['T2', 'T3.1 of T3']],
    ['T1 and T2: go; T3 follows', ['T1', 'T2']],
    ['T1, T1: go', ['T1']],
    ['\n  T3 go on', ['T3']],
    ['T3 T4 go on', ['T3']],
    ['T3 go on\nT4: later', ['T3']],
    ['**T1**  [T2]...: go', ['T1', 'T2']],
    ['T1.2.3: deep', ['T1.2.3 of T1']],
    [`${eleven.slice(1).join(' ')}: all`, eleven.slice(1)],
    [`${eleven.join(' ')}: too many`, []],
    ['T1 is fine: go', []],
    ['Go on: T1', []],
    ['T99: go', []],
    ['', []],
  ])('%j: %j', (request, about) => {
    const named = tasksNamed(request, plan).map(({ id, task }) => (id === task.id ? id : `${id} of ${task.id}`))
    expect(named).toEqual(about)
  })
})

test('the end of a round says how many tasks are done, and names the first 20 that are left', () => {
  const tasks = Array.from({ length: 25 }, (_, i) => ({ id: `T${i}`, name: 'n'.repeat(i * 20), done: i < 2 }))
  const { left = [], ...counted } = countTasks({ tasks }).tasks ?? {}
  expect(counted).toEqual({ done: 2, total: 25 })
  expect(left.map(each => each.slice(0, 3).trim())).toEqual(tasks.slice(2, 22).map(({ id }) => id))
  expect(Math.max(...left.map(each => each.length))).toBeLessThan(230)
  expect(countTasks({ tasks: [] })).toEqual({})
})

test('a task that is judged twice for a round has failed once', () => {
  expect([7, 8].map(round => countFailure(taskNamed('T1'), round))).toEqual([2, 3])
})

test('what is tested and run is held to every gate', () => {
  expect(['Planning', 'Building', 'Testing', 'Runtime', null].map(isHeldToAllGates)).toEqual([
    false,
    false,
    true,
    true,
    false,
  ])
})

test('a plan that is not there yet is let go unless a person wants to see it', () => {
  const empty = { state: 'none', broken: null, tasks: [], judged: false, isCutOff: false, passedGates: [] }
  expect(emptyPlan(true)).toEqual({ ...empty, asksPerson: true, isLetGo: false })
  expect(emptyPlan(false)).toEqual({ ...empty, asksPerson: false, isLetGo: true })
})
