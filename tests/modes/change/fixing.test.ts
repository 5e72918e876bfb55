import { expect, test } from 'vitest'
import {
  afterAttempt,
  nextAttempt,
  sameness,
  whyPlanner,
  withResult,
} from '../../../src/modes/change/execution/fixing.ts'
import type { ChangeWork } from '../../../src/modes/change/work.ts'
import { changeWith, check, record } from '../../support/change-work.ts'
import { ended, worked } from '../../support/session-events.ts'

const result = (tail: string, exitCode = 1) => ({ status: 'failed', exitCode, tree: 'a', tail })

/** A change in which a verification has failed so, after that many attempts. */
function failed(tail: string, attempts = 0, before: ChangeWork | null = null): ChangeWork {
  const spec = check('T2', 'npm test')
  const fixing = before?.execution.fixing ?? null
  return changeWith({
    tasks: [record(spec, { status: 'IN_PROGRESS', attempts, results: [result(tail)] })],
    at: 0,
    fixing,
  })
}

/** The attempt, and that its round has changed a file or none. */
function tried(own: ChangeWork, hasChanged: boolean): ChangeWork {
  const fixing = nextAttempt(own)
  const end = ended(1, worked, hasChanged ? {} : { treeBefore: 'a', treeAfter: 'a', changed: [], changedCount: 0 })
  return { ...own, execution: { ...own.execution, fixing: afterAttempt(fixing, end as never, 'I tried.') } }
}

test('the executor mends, until two attempts have left the same failure; then the planner does', () => {
  const first = tried(failed('1 failing'), true)
  expect(first.execution.fixing).toMatchObject({ attempt: 1, by: 'executor', sameFailures: 0 })
  const second = tried(failed('1 failing', 1, first), true)
  expect(second.execution.fixing).toMatchObject({ attempt: 2, by: 'executor', sameFailures: 1 })
  const third = nextAttempt(failed('1 failing', 2, second))
  expect(third).toMatchObject({ attempt: 3, by: 'planner', sameFailures: 2 })
  expect(whyPlanner(first, third)).toContain('2 attempts changed nothing, or left the same failure')
})

test('two attempts that change nothing go to the planner, too, though what is printed differs', () => {
  const first = tried(failed('1 failing'), false)
  const second = tried(failed('2 failing', 1, first), false)
  expect(nextAttempt(failed('3 failing', 2, second))).toMatchObject({ by: 'planner', sameFailures: 2 })
})

test('a failure that is another each time stays with the executor up to the last attempt', () => {
  let own = tried(failed('9 failing'), true)
  for (let attempts = 1; attempts < 4; attempts++) {
    own = tried(failed(`${9 - attempts} failing`, attempts, own), true)
    expect(own.execution.fixing).toMatchObject({ attempt: attempts + 1, by: 'executor' })
  }
  const last = nextAttempt(failed('1 failing', 4, own))
  expect(last).toMatchObject({ attempt: 5, by: 'planner', sameFailures: 0 })
  expect(whyPlanner(own, last)).toContain('last attempt')
})

test('what the planner has begun to mend it goes on mending', () => {
  const first = tried(failed('1 failing'), false)
  const second = tried(failed('1 failing', 1, first), false)
  const third = tried(failed('1 failing', 2, second), true)
  expect(nextAttempt(failed('something else', 3, third))).toMatchObject({ attempt: 4, by: 'planner', sameFailures: 0 })
})

test('another exit code is another failure, and a claim that is refused for the same reason the same', () => {
  const code = (exitCode: number, before: ChangeWork | null) => {
    const own = failed('not ok', 1, before)
    const tasks = own.execution.tasks.map(each => ({ ...each, results: [result('not ok', exitCode)] }))
    return { ...own, execution: { ...own.execution, tasks } }
  }
  const first = tried(code(1, null), true)
  expect(nextAttempt(code(1, first)).sameFailures).toBe(1)
  expect(nextAttempt(code(2, first)).sameFailures).toBe(0)
  const claim = (attempts: number, refused: string, before: ChangeWork | null) =>
    changeWith({
      claim: { ...changeWith({}).execution.claim, attempts, refused },
      fixing: before?.execution.fixing ?? null,
    })
  const refused = tried(claim(0, 'npm test failed', null), true)
  expect(nextAttempt(claim(1, 'npm test failed', refused)).sameFailures).toBe(1)
  expect(nextAttempt(claim(1, 'a review found this', refused)).sameFailures).toBe(0)
})

test('an attempt is told with how it ended, and how many files it has changed that are not named', () => {
  const fixing = nextAttempt(failed('not ok'))
  const end = ended(1, { class: 'context-full', message: null }, { changed: ['a', 'b'], changedCount: 5 })
  expect(afterAttempt(fixing, end as never, null).earlier).toEqual([
    'Attempt 1 changed a, b, and 3 more. It was cut off (context-full).',
  ])
})

test('what earlier attempts changed and said is kept for the next', () => {
  const own = tried(tried(failed('1 failing'), true), false)
  expect(own.execution.fixing?.earlier).toEqual([
    'Attempt 1 changed x. It said: I tried.',
    'Attempt 1 changed nothing. It said: I tried.',
  ])
})

test('a failure is the same whatever it took, and whenever it was', () => {
  const first =
    '\u001b[31mnot ok\u001b[39m 1 - adds\n  duration_ms 3.141\n at 2026-11-23T19:38:00.123Z in /tmp/x-1/test.js (12ms)'
  const again = 'not ok 1 - adds\n  duration_ms: 99.2\n at 2027-01-01T00:00:00.000Z in /tmp/y-2/test.js (1.5 s)'
  expect(sameness(first)).toBe(sameness(again))
  expect(sameness('2 failing')).not.toBe(sameness('1 failing'))
})

test('of results only the last six are kept, and the whole end of what was printed only of the last', () => {
  let results: Parameters<typeof withResult>[0] = []
  for (let n = 0; n < 9; n++) results = withResult(results, result('x'.repeat(4000), n))
  expect(results.map(({ exitCode }) => exitCode)).toEqual([3, 4, 5, 6, 7, 8])
  expect(results.map(({ tail }) => tail.length)).toEqual([400, 400, 400, 400, 400, 4000])
})
