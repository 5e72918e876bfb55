import { describe, expect, test } from 'vitest'
import { type Checkout, fitting, testsNear } from '../../scripts/near-tests.ts'

const CHECKOUT: Checkout = {
  texts: new Map([
    ['src/run/gates.ts', `import { prompt } from './prompt.ts'`],
    ['src/run/prompt.ts', `const FILE = 'prompts/refused.md'`],
    ['src/records/queue.ts', ''],
    [
      'tests/run/gates.test.ts',
      `import { runGates } from '../../src/run/gates.ts'\npromise('D5', 'A gate that fails refuses done')`,
    ],
    ['tests/run/prompt.test.ts', `import { prompt } from '../../src/run/prompt.ts'`],
    ['tests/cli/proof.test.ts', `import { openRealScene } from '../support/real-scene.ts'\n  promise('D5')`],
    [
      'tests/records/queue.test.ts',
      `import { Queue } from '../../src/records/queue.ts'\npromise('Q1', 'The queue is read in order')`,
    ],
    ['tests/run/gates.long.test.ts', `import { runGates } from '../../src/run/gates.ts'`],
    ['tests/architecture/house.test.ts', ''],
  ]),
  durations: new Map([['tests/run/prompt.test.ts', 40]]),
}

function near(...changed: string[]): string[] {
  return testsNear(changed, CHECKOUT).map(({ path, distance }) => `${distance} ${path}`)
}

describe('the tests that a change can break', () => {
  test('are those that import it, by way of other files too, and those of the promises that they hold', () => {
    expect(near('src/run/prompt.ts')).toEqual([
      '1 tests/run/prompt.test.ts',
      '2 tests/run/gates.test.ts',
      '2 tests/cli/proof.test.ts',
      '3 tests/architecture/house.test.ts',
    ])
  })

  test('are the one that has changed itself, and those that hold the same promise', () => {
    expect(near('tests/cli/proof.test.ts')).toEqual([
      '0 tests/cli/proof.test.ts',
      '2 tests/run/gates.test.ts',
      '3 tests/architecture/house.test.ts',
    ])
  })

  test('are, of a prompt or a page, those of the files that name it', () => {
    expect(near('prompts/refused.md')).toContain('2 tests/run/prompt.test.ts')
    expect(near('prompts/refused.md')).not.toContain('1 tests/records/queue.test.ts')
  })
})

test('the nearest tests are run that take less than the time together, and one that has changed whatever it takes', () => {
  const tests = testsNear(['src/run/prompt.ts'], CHECKOUT)
  expect(fitting(tests, 1_000).chosen.map(({ path }) => path)).toEqual([
    'tests/run/prompt.test.ts',
    'tests/run/gates.test.ts',
  ])
  expect(fitting(tests, 1_000).left).toHaveLength(2)
  expect(fitting(testsNear(['tests/cli/proof.test.ts'], CHECKOUT), 0).chosen).toHaveLength(1)
})
