import { expect, test } from 'vitest'
import type { EventOf } from '../../../src/core/events/events.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { EXECUTION_FOLDS, executionAtResume, ROUND } from '../../../src/modes/change/execution/fold.ts'
import type { ChangeWork } from '../../../src/modes/change/work.ts'
import { changeWith, check, record, task } from '../../support/change-work.ts'
import { ended, SESSION, worked } from '../../support/session-events.ts'

const session: SessionState = { ...emptyState(SESSION), modelInUse: 'qwen', providerInUse: 'local' }
const OUTPUT = {
  n: 1,
  name: 'T1',
  kind: 'json',
  file: 'outputs/1.json',
  bytes: 2,
  sha256: 'a',
} as unknown as EventOf<'output-kept'>['output']
const started = { type: 'round-started', round: 2 } as EventOf<'round-started'>
const one = (own: ChangeWork) => own.execution.tasks[0]
const IN_HAND = changeWith({ tasks: [record(task('T1'), { status: 'IN_PROGRESS' })], at: 0 })

test('an answer of a round that did not come to its end is none of the next one', () => {
  const answered = EXECUTION_FOLDS.task(
    IN_HAND,
    { type: 'answer-given', round: 1, name: 'T1', value: { outputs: {} }, output: OUTPUT },
    session,
  )
  expect(one(EXECUTION_FOLDS.task(answered, ended(1, worked), session))).toMatchObject({ status: 'COMPLETED' })
  const again = EXECUTION_FOLDS.task(answered, started, session)
  expect(one(EXECUTION_FOLDS.task(again, ended(2, worked), session))).toMatchObject({ status: 'IN_PROGRESS' })
})

test('who has done a task is told with the provider, the last one last, and each once', () => {
  const round = (own: ChangeWork, modelInUse: string | null, providerInUse: string | null) =>
    EXECUTION_FOLDS.task(own, ended(1, worked), { ...session, modelInUse, providerInUse })
  const both = round(round(IN_HAND, 'qwen', 'local'), 'gpt', null)
  expect(one(both)?.who).toBe('qwen from local, gpt')
  expect(one(round(both, 'qwen', 'local'))?.who).toBe('gpt, qwen from local')
})

test('a round that does not count uses up none of the 200', () => {
  const away = EXECUTION_FOLDS.task(IN_HAND, ended(1, { class: 'network', message: null }), session)
  expect([away.execution.rounds, one(away)?.rounds]).toEqual([0, 0])
  const done = EXECUTION_FOLDS.task(IN_HAND, ended(1, worked), session)
  expect([done.execution.rounds, one(done)?.rounds]).toEqual([1, 1])
})

test('a silent round that has done nothing is no attempt at mending', () => {
  const fixing = { attempt: 1, by: 'executor', earlier: [], sameFailures: 0, failure: '', hasChanged: false } as const
  const own = changeWith({ tasks: [record(check('T1', 'npm test'), { status: 'IN_PROGRESS' })], at: 0, fixing })
  const silent = (counts: boolean) =>
    EXECUTION_FOLDS.fixing(own, ended(1, { class: 'silent', message: null }, { counts }), session)
  expect(silent(false).execution.done).not.toContain(ROUND)
  expect(one(silent(false))?.attempts).toBe(0)
  expect(silent(true).execution.done).toContain(ROUND)
  expect(one(silent(true))?.attempts).toBe(1)
})

test('the words of a summary that did not come to its end are not shown', () => {
  const now = { ...session, running: { lastWords: 'It is' } } as unknown as SessionState
  const words = (outcome: Parameters<typeof ended>[1]) => EXECUTION_FOLDS.summary(IN_HAND, ended(1, outcome), now).words
  expect(words(worked)).toBe('It is')
  expect(words({ class: 'context-full', message: null })).toBeNull()
})

test('a session that goes on after its end has all attempts, rounds and refusals again, and nothing that is done is undone', () => {
  const { claim } = changeWith({}).execution
  const own = changeWith({
    tasks: [
      record(check('T1', 'npm test'), { status: 'COMPLETED', attempts: 2 }),
      record(check('T2', 'npm test'), { status: 'FAILED', why: 'It failed.', attempts: 5 }),
      record(task('T3'), { status: 'IN_PROGRESS', refusals: 2 }),
    ],
    claim: { ...claim, attempts: 5, refused: 'no' },
    fixing: { attempt: 5, by: 'executor', earlier: ['x'], sameFailures: 2, failure: 'f', hasChanged: true },
    refusals: 3,
    rounds: 200,
    limit: 'rounds',
  })
  const { execution } = executionAtResume(own, { kind: 'needs-person', reason: 'It failed.', hint: null })
  expect(execution).toMatchObject({
    claim: { attempts: 0, refused: null },
    fixing: { attempt: 1, sameFailures: 0, earlier: ['x'] },
    refusals: 0,
    rounds: 0,
    limit: null,
    isWritten: false,
  })
  expect(execution.tasks.map(({ status, attempts, refusals, why }) => [status, attempts, refusals, why])).toEqual([
    ['COMPLETED', 2, 0, null],
    ['PENDING', 0, 0, null],
    ['IN_PROGRESS', 0, 0, null],
  ])
})
