import { expect, test } from 'vitest'
import { emptyState } from '../../../src/core/state/state.ts'
import { hasNoRounds, hasWorkLeft, limitOf, nextTask, withReasons } from '../../../src/modes/change/execution/queue.ts'
import { changeWith, check, record, task } from '../../support/change-work.ts'
import { SESSION } from '../../support/session-events.ts'

const session = { ...emptyState(SESSION), limits: { rounds: 9, timeMs: null, tokens: null } }
const finds = task('T1', { type: 'INFO_GATHERING', outputs: { place: 'where' } })
const uses = task('T2', { inputs: { where: 'T1.place' }, outputs: { done: 'what' } })

test('the next task is the first that is open and has what it builds on', () => {
  expect(nextTask({ tasks: [record(finds), record(uses)] })).toBe(0)
  expect(nextTask({ tasks: [record(finds, { status: 'COMPLETED' }), record(uses)] })).toBe(1)
  expect(nextTask({ tasks: [record(finds, { status: 'FAILED' }), record(uses), record(task('T3'))] })).toBe(2)
  expect(nextTask({ tasks: [record(finds, { status: 'FAILED' }), record(uses)] })).toBeNull()
})

test('a task whose input will not come says why, and so does one that needs that task', () => {
  const last = task('T3', { inputs: { it: 'T2.done' } })
  const tasks = withReasons([record(finds, { status: 'FAILED' }), record(uses), record(last), record(task('T4'))])
  expect(tasks.map(({ why }) => why)).toEqual([
    null,
    'It needs T1.place, and T1 failed.',
    'It needs T2.done, and T2 waits.',
    null,
  ])
})

test('a check waits where what it looks at was not done, and those of other tasks go on', () => {
  const made = record(task('T1'), { status: 'FAILED' })
  const waiting = record(task('T3', { inputs: { it: 'T9.gone' } }))
  const tasks = withReasons([
    made,
    record(check('T2', 'npm test')),
    waiting,
    record(check('T4', 'npm test')),
    record(check('T5', 'npm test')),
  ])
  expect(tasks.map(({ why }) => why)).toEqual([
    null,
    'It checks T1, and T1 failed.',
    'It needs T9.gone, but there is no such task.',
    'It checks T3, and T3 waits.',
    'It checks T3, and T3 waits.',
  ])
  expect(nextTask({ tasks })).toBeNull()
  const done = record(task('T6'), { status: 'COMPLETED' })
  expect(nextTask({ tasks: [...tasks, done, record(check('T7', 'npm test'))] })).toBe(6)
})

test('ids that begin alike are told apart', () => {
  const other = task('T1.1', { type: 'INFO_GATHERING', outputs: { place: 'where' } })
  const user = task('T9', { inputs: { where: 'T1.1.place' } })
  const tasks = [record(finds, { status: 'FAILED' }), record(other, { status: 'COMPLETED' }), record(user)]
  expect(nextTask({ tasks })).toBe(2)
})

test('the rounds of the person end the execution, and so do 200 of its own', () => {
  const own = changeWith({ tasks: [record(task('T1'))] })
  expect(hasNoRounds(own, { ...session, roundsUsed: 8 })).toBe(false)
  expect(hasNoRounds(own, { ...session, roundsUsed: 9 })).toBe(true)
  const unlimited = { ...session, limits: { rounds: null, timeMs: null, tokens: null }, roundsUsed: 500 }
  expect(hasNoRounds(changeWith({ rounds: 199 }), unlimited)).toBe(false)
  expect(hasNoRounds(changeWith({ rounds: 200 }), unlimited)).toBe(true)
})

test('it is a limit only where there is work left', () => {
  const full = { ...session, roundsUsed: 9 }
  expect(limitOf(changeWith({ tasks: [record(task('T1'))] }), full)).toBe('rounds')
  expect(limitOf(changeWith({ tasks: [record(task('T1'), { status: 'FAILED' })] }), full)).toBeNull()
  expect(limitOf(changeWith({ tasks: [record(task('T1'), { status: 'COMPLETED' })] }), full)).toBeNull()
  const refused = { attempts: 1, refused: 'no', work: changeWith({}).execution.claim.work }
  const done = [record(task('T1'), { status: 'COMPLETED' as const })]
  expect(limitOf(changeWith({ tasks: done, claim: refused }), full)).toBe('rounds')
  expect(limitOf(changeWith({ tasks: done, claim: { ...refused, attempts: 5 } }), full)).toBeNull()
})

test('a plan that was changed when 50 tasks had been made is not carried out', () => {
  const own = changeWith({ version: 7, made: 50, tasks: [record(task('T1'), { status: 'COMPLETED' })] })
  expect(limitOf(own, session)).toBe('tasks')
  expect(limitOf({ ...own, execution: { ...own.execution, made: 49 } }, session)).toBeNull()
})

test('there is work left until all tasks are done and the claim of it is accepted, or nothing more can be tried', () => {
  const accepted = { ...session, claim: { state: 'accepted', by: [], tree: 'a', verified: true, results: [] } as const }
  const done = [
    record(task('T1'), { status: 'COMPLETED' as const }),
    record(check('T2', 'x'), { status: 'COMPLETED' as const }),
  ]
  expect(hasWorkLeft(changeWith({ tasks: done }), accepted)).toBe(false)
  expect(hasWorkLeft(changeWith({ tasks: done }), session)).toBe(true)
  const claim = { ...changeWith({}).execution.claim, attempts: 5, refused: 'no' }
  expect(hasWorkLeft(changeWith({ tasks: done, claim }), session)).toBe(false)
  expect(hasWorkLeft(changeWith({ tasks: [record(task('T1'), { status: 'FAILED' })] }), session)).toBe(false)
  expect(hasWorkLeft(changeWith({ tasks: [record(task('T1'))], limit: 'rounds' }), session)).toBe(false)
})
