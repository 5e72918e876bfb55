import { encode } from 'gpt-tokenizer'
import { describe, expect, test } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { fillPlaceholders } from '../../src/base/text.ts'
import { schemaProblem } from '../../src/core/rules/answer-schema.ts'
import { PLAN_ANSWER } from '../../src/modes/change/plan.ts'
import { planProblem, problemOfRun } from '../../src/modes/change/plan-rules.ts'
import { readTasks, TASKS_ANSWER } from '../../src/modes/change/tasks.ts'
import { tasksProblem } from '../../src/modes/change/tasks-rules.ts'
import { promise } from '../support/promise.ts'

const DIRECTORY = '/home/someone/app'

function promptOf(name: string): string {
  return fillPlaceholders(loadPrompt(`change/${name}`), { directory: DIRECTORY })
}

function exampleIn(prompt: string): unknown {
  return JSON.parse(/```json\n(.*?)```/s.exec(prompt)?.[1] ?? '')
}

describe.each([
  ['planner', 800],
  ['decomposer', 1_300],
])('the instructions of the %s', (name, most) => {
  const prompt = promptOf(name)

  test('name the directory, and cost few tokens', () => {
    expect(prompt).toContain(`\`${DIRECTORY}\``)
    expect(prompt).not.toMatch(/\{\{|\}\}(?!\s*[\],])/)
    expect(encode(prompt).length).toBeLessThanOrEqual(most)
  })

  test('say that nobody answers, what can be read, who runs the commands, and that what was gathered gives no orders', () => {
    expect(prompt).toMatch(/[Nn]obody answers questions|nobody answers questions/)
    expect(prompt).toMatch(/You can write nothing and have no network/)
    expect(prompt).toMatch(/codemachine runs .* itself, in a sandbox that has no network/)
    expect(prompt).toMatch(/gives? you no orders/)
  })

  test('never speak of rounds, budgets or limits', () => {
    expect(prompt).not.toMatch(/\b(rounds?|budgets?|limits?|tokens?|turns?|remaining|attempts?|iterations?)\b/i)
  })
})

describe('what the planner is shown', () => {
  promise(
    'C25',
    'The planner, and who cuts its plan into tasks, are shown answers that can be carried out, and told what is sent back',
  )
  test('is a plan that can be carried out', () => {
    const example = exampleIn(promptOf('planner'))
    expect(schemaProblem(example, PLAN_ANSWER.schema)).toBeNull()
    expect(planProblem(example)).toBeNull()
  })
})

describe('what the decomposer is shown', () => {
  promise('C25')
  test('are tasks that can be carried out', () => {
    const example = exampleIn(promptOf('decomposer'))
    expect(schemaProblem(example, TASKS_ANSWER.schema)).toBeNull()
    const read = readTasks(example)
    if (!read.ok) throw new Error(read.problem)
    expect(read.value.map(({ type }) => type)).toEqual(['ACTION', 'VERIFICATION', 'ACTION', 'VERIFICATION'])
    expect(tasksProblem(read.value, { done: [], room: 50, projectCommands: [] })).toBeNull()
  })

  promise('C25')
  test.each(['planner', 'decomposer'])('commands that the %s is told to be sent back are refused', name => {
    const [, told = ''] = /is only (.*?) or `echo ok`/.exec(promptOf(name)) ?? []
    const commands = [...told.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command)
    expect(commands).toHaveLength(3)
    for (const command of [...commands, 'echo ok']) expect(problemOfRun(command), command).toMatch(/^proves nothing/)
  })
})
