import { describe, expect, test } from 'vitest'
import { schemaProblem } from '../../../src/core/rules/answer-schema.ts'
import {
  PLAN_ANSWER,
  REVIEW_ANSWER,
  readPlan,
  readReview,
  readTest,
  readWork,
  sizeProblem,
  workAnswer,
  workProblem,
} from '../../../src/modes/team/answers.ts'
import type { PlannedStep } from '../../../src/modes/team/work.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { planOf, reviewOf, TeamPlay } from '../../support/team-session.ts'

/** Why answers were refused, which the round after each is told by the runner. */
const problemsIn = ({ events }: TeamPlay) => ofType(events, 'answer-refused').map(({ problem }) => problem)

const NONE: readonly PlannedStep[] = []
const step = (id: unknown, more: object = {}) => ({ id, description: 'Do it.', ...more })
const plan = (...steps: unknown[]) => ({ goal: 'A thing.', steps })

promise(
  'T4',
  'The answers of planner, worker, tester and reviewer are read or asked for again three times, with what is wrong with them',
)
describe('the answer of a planner', () => {
  test('is taken without the fields that it may leave out, and with those that it leaves empty', () => {
    expect(readPlan(plan(step(1), step(2, { network: null, needs: null })), NONE)).toEqual({
      ok: true,
      value: { goal: 'A thing.', steps: [step(1), step(2)] },
    })
    const full = plan(step(3, { network: true, needs: [] }), step(1, { network: false, needs: [3, 3] }))
    expect(readPlan(full, NONE)).toEqual({
      ok: true,
      value: plan(step(3, { network: true, needs: [] }), step(1, { network: false, needs: [3] })),
    })
    expect(schemaProblem(plan(step(1)), PLAN_ANSWER.accepts ?? {})).toBeNull()
    expect(schemaProblem(full, PLAN_ANSWER.schema)).toBeNull()
  })

  test.each([
    ['no steps', plan(), /at least one step/],
    ['1,000 steps', planOf(1_000), /has 1000 steps; give at most 50/],
    ['51 steps', planOf(51), /has 51 steps/],
    ['an id that is there twice', plan(step(1), step(1)), /`steps\[1\]` has the id 1 of a step before it/],
    ['an id that is no whole number', plan(step(1.5)), /whole number/],
    ['an id that is a text', plan(step('1')), /whole number/],
    ['an id below 1', plan(step(0)), /whole number from 1/],
    ['an id that has no end', plan(step(1e20)), /whole number/],
    ['no goal', { goal: '  ', steps: [step(1)] }, /`goal`/],
    ['a step without words', plan({ id: 1, description: ' ' }), /`description`/],
    [
      'a step of 5,000 characters',
      plan({ id: 1, description: 'x'.repeat(5_000) }),
      /5000 characters; 4000 are the most/,
    ],
    ['a step that needs a later one', plan(step(1, { needs: [2] }), step(2)), /needs 2, and no step before it/],
    ['a step that needs itself', plan(step(1, { needs: [1] })), /needs 1, and no step before it/],
    ['needs that are no list', plan(step(1, { needs: 1 })), /no list of ids/],
    ['a network that is a text', plan(step(1, { network: 'yes' })), /neither true nor false/],
    ['a step that is a text', plan('Do it.'), /`steps\[0\]`/],
  ])('is refused with %s', (_, value, problem) => {
    expect(readPlan(value, NONE)).toMatchObject({ ok: false, problem: expect.stringMatching(problem) })
  })

  test('may have 50 steps', () => {
    expect(readPlan(planOf(50), NONE)).toMatchObject({ ok: true })
  })

  test('that names its mistakes names ten of them', () => {
    const read = readPlan(plan(...Array.from({ length: 40 }, () => step('x'))), NONE)
    expect(read.ok ? '' : read.problem.split('\n')).toHaveLength(10)
  })

  test('may name steps that are done, as they are, as needed, and gives their ids to no others', () => {
    const done = [{ id: 3, description: 'Say hello.\n' }]
    expect(readPlan(plan(step(4, { needs: [3] })), done)).toMatchObject({ ok: true })
    expect(readPlan(plan({ id: 3, description: 'Say hello.' }, step(4)), done)).toMatchObject({ ok: true })
    expect(readPlan(plan(step(3)), done)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/the id 3 of a step that is done, and is another one; use ids from 4 on/),
    })
  })

  test('is cleaned of what steers a terminal', () => {
    const read = readPlan(
      { goal: 'A\u001b[2J thing\r\n', steps: [step(1, { description: ' \u202eDo it.\u0007' })] },
      NONE,
    )
    expect(read).toMatchObject({ value: { goal: 'A[2J thing', steps: [{ description: 'Do it.' }] } })
  })

  test('that can be used is asked for again three times, then a person is needed', async () => {
    const play = await TeamPlay.begin({ plan: () => plan() })
    expect(await play.run()).toMatchObject({ kind: 'needs-person' })
    expect(play.inputs('plan')).toHaveLength(4)
    expect(problemsIn(play)[0]).toContain('at least one step')
  })

  promise('T4')
  test('that is prose, or too large, is asked for again', async () => {
    const large = {
      goal: 'A thing.',
      steps: Array.from({ length: 50 }, (_, at) => step(at + 1, { description: 'x'.repeat(2_000) })),
    }
    const play = await TeamPlay.begin({
      options: { accept: 'auto' },
      plan: n => [0, 'First we do this.', large, planOf(1)][n],
    })
    expect(await play.run()).toEqual({ kind: 'done', verified: false })
    expect(problemsIn(play)[1]).toMatch(/as JSON; 61440 are the most/)
  })
})

describe('the answer of a worker', () => {
  test('is asked for by a name of its step, and may leave out what has to pass', () => {
    const { name, schema, accepts = {} } = workAnswer(7, false)
    expect(name).toBe('step-7')
    expect(schemaProblem({ done: true, thoughts: 'Made.', checks: [] }, schema)).toBeNull()
    expect(schemaProblem({ done: true, thoughts: 'Made.' }, accepts)).toBeNull()
    expect(schemaProblem({ done: true, thoughts: 'Made.', checks: null }, accepts)).toBeNull()
    for (const wrong of [
      { done: 'yes', thoughts: '' },
      { thoughts: '' },
      { done: true },
      { done: true, thoughts: '', checks: [1] },
    ])
      expect(schemaProblem(wrong, accepts)).not.toBeNull()
  })

  test('without tools counts as done only with nothing more to run and nobody to ask', () => {
    const said = { done: true, thoughts: 'Made.' }
    expect(readWork({ ...said, command: '', ask_human: null })).toEqual({ ...said, checks: [] })
    expect(readWork({ ...said, command: 'ls' }).done).toBe(false)
    expect(readWork({ ...said, command: '', ask_human: { question: '?', key_name: 'A', storage: 'env' } }).done).toBe(
      false,
    )
  })

  test('names at most five commands, none of them long', () => {
    const said = { done: true, thoughts: 'Made.' }
    expect(workProblem({ ...said, checks: Array(5).fill('true') })).toBeNull()
    expect(workProblem({ ...said, checks: Array(6).fill('true') })).toMatch(/at most 5/)
    expect(workProblem({ ...said, checks: ['x'.repeat(1_001)] })).toMatch(/more than 1000 characters/)
    expect(readWork({ ...said, checks: ['  node --test ', ' '] }).checks).toEqual(['node --test'])
  })
})

test('ways to test it are at most ten, and those that cannot be run here say why', () => {
  const way = (command: string, ends: boolean, network: boolean) => ({
    for: 'x',
    command,
    ends_by_itself: ends,
    needs_network: network,
  })
  const commands = [way('a', true, false), way('b', false, false), way('c', true, true), way(' ', true, false)]
  expect(readTest({ commands }, false).map(({ command, why }) => [command, why])).toEqual([
    ['a', null],
    ['b', 'does not end by itself'],
    ['c', 'needs the network'],
  ])
  expect(readTest({ commands }, true).map(({ why }) => why)).toEqual([null, 'does not end by itself', null])
  expect(readTest({ commands: Array(30).fill(way('a', true, false)) }, false)).toHaveLength(10)
})

describe('the answer of a reviewer', () => {
  test('is exactly what was asked for', () => {
    const review = reviewOf('low', 'medium', 'high')
    expect(schemaProblem(review, REVIEW_ANSWER.schema)).toBeNull()
    expect(readReview(review)).toEqual(review)
    const wrong = [
      { ...(review as object), more: 1 },
      { overall_assessment: 'Fine.', issues: [] },
      {
        overall_assessment: 'Fine.',
        issues: [{ type: 'bug', description: 'x', severity: 'critical' }],
        suggestions: [],
      },
      { overall_assessment: 'Fine.', issues: 'none', suggestions: [] },
    ]
    for (const each of wrong) expect(schemaProblem(each, REVIEW_ANSWER.schema)).not.toBeNull()
  })

  promise('T4')
  test('that is too large is asked for again', () => {
    expect(sizeProblem({ ...(reviewOf() as object), suggestions: ['x'.repeat(70_000)] })).toMatch(
      /Say it in fewer words/,
    )
    expect(sizeProblem(reviewOf('high'))).toBeNull()
  })
})
