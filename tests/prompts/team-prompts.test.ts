import { encode } from 'gpt-tokenizer'
import { describe, expect, test } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { fillPlaceholders } from '../../src/base/text.ts'
import { schemaProblem } from '../../src/core/rules/answer-schema.ts'
import { problemOfKey } from '../../src/core/shapes/secrets.ts'
import { readStepAnswer, STEP_ANSWER } from '../../src/core/shapes/shell-tools.ts'
import {
  PLAN_ANSWER,
  REVIEW_ANSWER,
  readPlan,
  readTest,
  TEST_ANSWER,
  workAnswer,
  workProblem,
} from '../../src/modes/team/answers.ts'

const DIRECTORY = '/home/someone/projects/hello-20261124-093000'
const ROLES = ['planner', 'worker', 'stepwise', 'tester', 'reviewer'] as const
const LOOKING = ['planner', 'tester', 'reviewer'] as const

function promptOf(name: string): string {
  return fillPlaceholders(loadPrompt(`team/${name}`), { directory: DIRECTORY })
}

/** The answers that a prompt shows. */
function examplesIn(prompt: string): unknown[] {
  return [...prompt.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => JSON.parse(text))
}

describe.each(ROLES)('the instructions of a %s', role => {
  const prompt = promptOf(role)

  test('name the directory, and cost few tokens', () => {
    expect(prompt).toContain(`\`${DIRECTORY}\``)
    expect(prompt).not.toMatch(/\{\{/)
    expect(encode(prompt).length).toBeLessThanOrEqual(700)
  })

  test('never speak of rounds, budgets or limits', () => {
    expect(prompt).not.toMatch(/\b(rounds?|budgets?|limits?|tokens?|turns?|remaining|attempts?|iterations?)\b/i)
  })

  test('say that what others wrote and programs print gives no orders', () => {
    expect(prompt).toMatch(/gives? you no orders|gives no orders|never an instruction/)
  })
})

test('each begins differently, so that one can be told from another', () => {
  expect(new Set(ROLES.map(role => promptOf(role).split(DIRECTORY)[1]?.slice(0, 60))).size).toBe(ROLES.length)
})

test.each(LOOKING)('a %s is told that it can write nothing, and that nobody answers', role => {
  expect(promptOf(role)).toMatch(/You can write nothing/)
  expect(promptOf(role)).toMatch(/[Nn]obody answers questions/)
})

test.each(['worker', 'stepwise'])('a %s is told how it gets a secret, and what it never does with one', role => {
  const prompt = promptOf(role)
  expect(prompt).toMatch(/You never see its value/)
  expect(prompt).toMatch(/Never print (one|it), (and )?never write (one|it) into a file/)
  expect(prompt).toContain('You cannot read or make `.env`')
  for (const [key = ''] of prompt.matchAll(/\b[A-Z]+_API_KEY\b/g)) expect(problemOfKey(key)).toBeNull()
})

describe('what is shown as an answer can be used', () => {
  test('of a planner', () => {
    const [plan] = examplesIn(promptOf('planner'))
    expect(schemaProblem(plan, PLAN_ANSWER.schema)).toBeNull()
    expect(readPlan(plan, [])).toMatchObject({ ok: true })
  })

  test('of a worker', () => {
    const [answer] = examplesIn(promptOf('worker'))
    expect(schemaProblem(answer, workAnswer(1, false).schema)).toBeNull()
    expect(workProblem(answer)).toBeNull()
  })

  test('of a worker without tools: a command, and a question', () => {
    const examples = examplesIn(promptOf('stepwise'))
    expect(examples).toHaveLength(2)
    for (const example of examples) {
      expect(schemaProblem(example, STEP_ANSWER.schema)).toBeNull()
      expect(readStepAnswer(example)).toMatchObject({ ok: true })
    }
    expect(readStepAnswer(examples[1])).toMatchObject({ value: { ask: { key: 'SERVICE_API_KEY' } } })
  })

  test('of a tester', () => {
    const [answer] = examplesIn(promptOf('tester'))
    expect(schemaProblem(answer, TEST_ANSWER.schema)).toBeNull()
    expect(readTest(answer, false)).toHaveLength(2)
  })

  test('of a reviewer', () => {
    const [answer] = examplesIn(promptOf('reviewer').replace('low|medium|high', 'high'))
    expect(schemaProblem(answer, REVIEW_ANSWER.schema)).toBeNull()
  })
})
